"""Which tokens a server accepts, and which it refuses: all of them real calls."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode

import grpc
import jwt
import pytest

from muniment_identity.file import KEY_SECONDS, Identity, Keys, Known
from muniment_identity.verifier import Verifier
from tests.operations.identity import forge
from tests.operations.identity.conftest import code_of
from tests.operations.identity.forge import EC_KEY, RSA_KEY, SECRET, STRANGERS, claims, rsa_jwk, token

pytestmark = pytest.mark.usefixtures("chatbot")
HOUR = 3600


def soon(seconds: int) -> int:
    return int(time.time()) + seconds


GOOD = {
    "by RSA": lambda: token(),
    "by an elliptic curve": lambda: token(key=EC_KEY, signs="ES256", kid="ec"),
    "one of several audiences": lambda: token(claims(aud=["other", forge.AUDIENCE])),
    "an access token": lambda: token(typ="at+jwt"),
    "of no type": lambda: token(typ=None),
    "other claims": lambda: token(claims(groups=["a", "b"], admin=True, tenant="other")),
    "not yet valid, within the skew": lambda: token(claims(nbf=soon(15), iat=soon(15))),
    "expired, within the skew": lambda: token(claims(exp=soon(-15))),
    "a key of its own in the header, which is ignored": lambda: token(jwk=rsa_jwk(STRANGERS, kid="rsa")),
}

BAD = {
    # Confusion of algorithms
    "alg none": lambda: token(key=None, signs="none"),
    "alg None": lambda: token(key=None, signs="none", alg="None"),
    "alg none with a signature": lambda: token(alg="none"),
    "no alg": lambda: token(alg=None),
    "the public key as a secret": lambda: token(key=forge.pem(), signs="HS256"),
    "a shared secret of the JWKS": lambda: token(key=SECRET, signs="HS256", kid="shared"),
    "an empty secret": lambda: token(key=b"", signs="HS256"),
    "an algorithm that is not the key's": lambda: token(signs="RS512"),
    "PSS by a key for RS256": lambda: token(signs="PS256"),
    "alg of the other key": lambda: token(alg="ES256"),
    "a list as alg": lambda: token(alg=["RS256"]),
    # Other keys
    "the signature of a stranger": lambda: token(key=STRANGERS),
    "jwk": lambda: token(key=STRANGERS, jwk=rsa_jwk(STRANGERS, kid="rsa")),
    "jwk, and no kid": lambda: token(key=STRANGERS, kid=None, jwk=rsa_jwk(STRANGERS)),
    "jku": lambda: token(key=STRANGERS, jku="https://evil.example/jwks.json"),
    "x5u": lambda: token(key=STRANGERS, x5u="https://evil.example/chain.pem"),
    "x5c": lambda: token(key=STRANGERS, x5c=["MIIB"]),
    "no kid": lambda: token(kid=None),
    "an unknown kid": lambda: token(kid="other"),
    "kid as a path": lambda: token(key=b"", signs="HS256", kid="../../../../dev/null"),
    "kid as SQL": lambda: token(key=STRANGERS, kid="' OR 1=1 --"),
    "kid as a number": lambda: token(kid=1),
    "kid as an object": lambda: token(kid={"rsa": 1}),
    "kid that two keys have": lambda: token(kid="twice"),
    "kid that two keys have, of the other": lambda: token(key=STRANGERS, kid="twice"),
    "a key for encryption": lambda: token(key=STRANGERS, kid="encrypts"),
    "a key of 1024 bits": lambda: token(key=forge._WEAK, kid="weak"),
    # Other services, issuers, subjects
    "audience of another service": lambda: token(claims(aud="billing")),
    "no audience": lambda: token(claims(aud=None)),
    "an empty list of audiences": lambda: token(claims(aud=[])),
    "an audience that begins alike": lambda: token(claims(aud="muniment.evil.example")),
    "a list in the list of audiences": lambda: token(claims(aud=[[forge.AUDIENCE]])),
    "an object as audience": lambda: token(claims(aud={forge.AUDIENCE: 1})),
    "100 audiences": lambda: token(claims(aud=[forge.AUDIENCE, *map(str, range(100))])),
    "another issuer": lambda: token(claims(iss="https://evil.example")),
    "an issuer that begins alike": lambda: token(claims(iss=forge.ISSUER + ".evil.example")),
    "an issuer with a slash more": lambda: token(claims(iss=forge.ISSUER + "/")),
    "an issuer in capitals": lambda: token(claims(iss=forge.ISSUER.upper())),
    "no issuer": lambda: token(claims(iss=None)),
    "a list of issuers": lambda: token(claims(iss=[forge.ISSUER])),
    "another subject": lambda: token(claims(sub="billing")),
    "no subject": lambda: token(claims(sub=None)),
    "a number as subject": lambda: token(claims(sub=7)),
    "a list of subjects": lambda: token(claims(sub=[forge.SUBJECT])),
    "a subject in capitals": lambda: token(claims(sub="Chatbot")),
    "a subject with a space": lambda: token(claims(sub="chatbot ")),
    "a subject with a null": lambda: token(claims(sub="chatbot\0")),
    "a subject of full width": lambda: token(claims(sub="ｃｈａｔｂｏｔ")),
    "a subject with a zero width joiner": lambda: token(claims(sub="chat\u200dbot")),
    "a subject in Cyrillic": lambda: token(claims(sub="сhatbot")),
    "a subject with a combining mark": lambda: token(claims(sub="chatbot\u0307")),
    "a subject with half a surrogate": lambda: token(claims(sub="chatbot\ud800")),
    # Time
    "expired": lambda: token(claims(exp=soon(-60))),
    "no exp": lambda: token(claims(exp=None)),
    "exp as text": lambda: token(claims(exp=str(soon(300)))),
    "exp as a fraction": lambda: token(claims(exp=soon(300) + 0.5)),
    "exp true": lambda: token(claims(exp=True)),
    "exp infinite": lambda: token(json.dumps(claims(exp=0)).replace('"exp": 0', '"exp": Infinity')),
    "exp beyond all numbers": lambda: token(json.dumps(claims(exp=0)).replace('"exp": 0', '"exp": 1e999')),
    "exp not a number": lambda: token(json.dumps(claims(exp=0)).replace('"exp": 0', '"exp": NaN')),
    "valid for two days": lambda: token(claims(exp=soon(48 * HOUR))),
    "valid for an age": lambda: token(claims(exp=10**30)),
    "not yet valid": lambda: token(claims(nbf=soon(120))),
    "nbf as text": lambda: token(claims(nbf="0")),
    "issued in the future": lambda: token(claims(iat=soon(120))),
    # Form
    "a claim twice": lambda: token(json.dumps(claims())[:-1] + ', "sub": "chatbot"}'),
    "a member of the header twice": lambda: forge.signed(
        '{"alg": "none", "alg": "RS256", "kid": "rsa"}', json.dumps(claims()), RSA_KEY, "RS256"
    ),
    "crit": lambda: token(crit=["exp"]),
    "crit that is unknown": lambda: token(crit=["x"], x=1),
    "an unencoded body": lambda: token(crit=["b64"], b64=False),
    "nested": lambda: token(token(), cty="JWT"),
    "a token of another kind": lambda: token(typ="logout+jwt"),
    "a list as typ": lambda: token(typ=["JWT"]),
    "a list of claims": lambda: token("[]"),
    "claims that are no JSON": lambda: token("{"),
    "claims 2,000 deep": lambda: token('{"a":' + "[" * 2000 + "]" * 2000 + "}"),
    "5,000 bytes": lambda: token(claims(more="x" * 5000)),
    "no signature": lambda: token().rpartition(".")[0] + ".",
    "two parts": lambda: token().rpartition(".")[0],
    "encrypted, in five parts": lambda: token() + ".x.x",
    "another body": lambda: _with_another_body(token()),
    "a letter of the signature changed": lambda: token()[:-9] + ("A" if token()[-9] != "A" else "B") + "AAAAAAAA",
    "padded": lambda: token() + "==",
    "a space within": lambda: token().replace(".", ". ", 1),
    "as JSON": lambda: json.dumps({"payload": "x", "signatures": []}),
    "a host key's hash": lambda: "mun_h_1_" + "A" * 43,
}


def _with_another_body(good: str) -> str:
    head, _, signature = good.split(".")
    body = urlsafe_b64encode(json.dumps(claims(admin=True)).encode()).rstrip(b"=").decode()
    return f"{head}.{body}.{signature}"


@pytest.mark.parametrize("kind", GOOD)
def test_a_token_of_the_identity_is_accepted(as_caller, kind):
    assert code_of(as_caller(GOOD[kind]())) is grpc.StatusCode.OK


@pytest.mark.parametrize("kind", BAD)
def test_any_other_token_is_refused(as_caller, kind):
    assert code_of(as_caller(BAD[kind]())) is grpc.StatusCode.UNAUTHENTICATED


def test_a_token_is_accepted_no_longer_than_the_keys_that_verify_it(tmp_path):
    """Also one that was verified before, and whose refresher has died."""
    now = int(time.time())
    identity = Identity(1, "00" * 32, forge.ISSUER, forge.AUDIENCE, forge.SUBJECT, "keys.json")
    last = now + HOUR / 2
    Known([identity], {"keys.json": Keys([rsa_jwk(RSA_KEY, kid="rsa")], last - KEY_SECONDS)}).write(tmp_path / "known")
    clock = [float(now)]
    verifier, text = Verifier(tmp_path / "known", lambda: clock[0]), token(claims(exp=now + HOUR))

    accepted = verifier.of_text(text)
    clock[0] = last + 1

    assert accepted is not None
    assert verifier.of_text(text) is None


def test_a_lenient_verifier_accepts_some_of_them():
    """So the table is not refused for a mistake in it: PyJWT alone takes these for good."""
    accepted = {kind for kind, make in BAD.items() if _is_accepted_by_pyjwt(make())}

    assert accepted >= {"a claim twice", "exp as text", "exp as a fraction", "valid for two days", "5,000 bytes"}


def _is_accepted_by_pyjwt(text: str) -> bool:
    try:
        jwt.decode(text, RSA_KEY.public_key(), algorithms=["RS256"], audience=forge.AUDIENCE, issuer=forge.ISSUER)
    except (jwt.PyJWTError, OverflowError, ValueError):
        return False
    return True
