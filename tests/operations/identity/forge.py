"""Tokens with a signature of ours, whatever they say."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm, get_default_algorithms

ISSUER, AUDIENCE, SUBJECT = "https://login.example", "muniment", "chatbot"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
STRANGERS = rsa.generate_private_key(public_exponent=65537, key_size=2048)
_WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)
SECRET = b"0123456789abcdef0123456789abcdef"


def rsa_jwk(key: rsa.RSAPrivateKey, **members: Any) -> dict[str, Any]:
    return {**json.loads(RSAAlgorithm.to_jwk(key.public_key())), **members}


def jwks() -> dict[str, Any]:
    """The keys of the issuer, and entries that must verify nothing."""
    octets = {"kty": "oct", "k": _encoded(SECRET), "kid": "shared", "alg": "HS256"}
    return {
        "keys": [
            rsa_jwk(RSA_KEY, kid="rsa", use="sig"),
            {**json.loads(ECAlgorithm.to_jwk(EC_KEY.public_key())), "kid": "ec", "use": "sig"},
            octets,
            rsa_jwk(_WEAK, kid="weak"),
            rsa_jwk(STRANGERS, kid="encrypts", use="enc"),
            rsa_jwk(STRANGERS, kid="twice"),
            rsa_jwk(RSA_KEY, kid="twice"),
        ]
    }


def pem() -> bytes:
    """The public key, as a confused verifier might take it for a secret."""
    return RSA_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def claims(**changed: Any) -> dict[str, Any]:
    """Claims that are accepted, but for what is *changed*. None leaves one out."""
    now = int(time.time())
    said = {"iss": ISSUER, "aud": AUDIENCE, "sub": SUBJECT, "iat": now, "exp": now + 300, **changed}
    return {name: value for name, value in said.items() if value is not None}


def token(
    said: Mapping[str, Any] | str | None = None, *, key: Any = RSA_KEY, signs: str = "RS256", **header: Any
) -> str:
    """A token. A *header* of None leaves the member out. Claims that are a text are sent as they are."""
    named = {"alg": signs, "kid": "rsa", "typ": "JWT", **header}
    head = json.dumps({name: value for name, value in named.items() if value is not None})
    return signed(
        head, json.dumps(claims() if said is None else said) if not isinstance(said, str) else said, key, signs
    )


def signed(head: str, body: str, key: Any, signs: str) -> str:
    """A token of these texts."""
    signing = f"{_encoded(head.encode())}.{_encoded(body.encode())}"
    if signs == "none":
        signature = b""
    elif signs == "HS256":
        signature = hmac.new(key, signing.encode(), hashlib.sha256).digest()
    else:
        signature = get_default_algorithms()[signs].sign(signing.encode(), key)
    return f"{signing}.{_encoded(signature)}"


def write_keys(path: Path, keys: Mapping[str, Any] | None = None) -> None:
    """Replace the file of the issuer's keys."""
    part = path.with_suffix(".new")
    part.write_text(json.dumps(keys or jwks()))
    part.replace(path)


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
