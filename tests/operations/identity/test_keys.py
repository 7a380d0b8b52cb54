"""How keys are fetched: whatever is at the URL, it costs bounded time and memory."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
import time

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from muniment_identity import keys
from muniment_identity.file import Identity, Keys, Known
from muniment_identity.keys import UnusableKeys, fetched, is_refused, keys_at, usable
from muniment_identity.refresher import Refresher
from muniment_identity.verifier import Verifier
from tests.operations.identity import forge
from tests.support.certificates import make


class _Answers(http.server.BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        match self.path:
            case "/redirect":
                self.send_response(302)
                self.send_header("location", "/jwks")
                self.end_headers()
            case "/large":
                self._send(b" " * 70_000)
            case "/slow":
                self.send_response(200)
                self.end_headers()
                with contextlib.suppress(OSError):
                    while not self.server.is_over.wait(0.05):  # type: ignore[attr-defined]
                        self.wfile.write(b" ")
            case "/jwks":
                self._send(json.dumps(forge.jwks()).encode())
            case _:
                self.send_error(503)

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    make(folder, "keys", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:TRUE")
    return folder


@pytest.fixture
def url(folder, monkeypatch):
    """A server over https."""
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "keys.pem"))
    handler = type("Answers", (_Answers,), {"asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.is_over = threading.Event()  # type: ignore[attr-defined]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "keys.pem", folder / "keys.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://localhost:{server.server_port}"
    server.is_over.set()  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


def test_keys_are_fetched_and_only_those_that_verify_are_kept(url):
    assert [key["kid"] for key in keys_at(f"{url}/jwks")] == ["rsa", "ec", "twice", "twice"]


@pytest.mark.parametrize("path", ["/redirect", "/large", "/absent"])
def test_what_is_no_plain_answer_is_refused(url, path):
    with pytest.raises(UnusableKeys, match=r"status 302|more than 65536 bytes|status 503"):
        keys_at(f"{url}{path}")


def test_an_answer_that_never_ends_is_cut_off(url, monkeypatch):
    monkeypatch.setattr(keys, "_SECONDS", 0.3)

    with pytest.raises((UnusableKeys, OSError)):
        keys_at(f"{url}/slow")


def test_a_server_with_another_certificate_is_not_trusted(url, folder, monkeypatch):
    make(folder, "other")
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "other.pem"))

    with pytest.raises(ssl.SSLCertVerificationError):
        keys_at(f"{url}/jwks")


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254", "0.0.0.0", "224.0.0.1"]
)
def test_no_issuer_is_where_clouds_keep_the_secrets_of_machines(address):
    assert is_refused(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7", "::1", "93.184.215.14"])
def test_an_issuer_may_be_within_the_company(address):
    assert not is_refused(address)


def test_the_address_is_checked_before_anything_is_sent(monkeypatch):
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("169.254.169.254", 443))])

    with pytest.raises(UnusableKeys, match="link-local"):
        fetched("https://login.example/jwks")


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"keys": 7}', b'{"keys": [7]}', b"[" * 50_000, b"\xff"])
def test_what_is_no_jwks_is_refused(text):
    with pytest.raises(UnusableKeys):
        usable(text)


def _large(bits: int, exponent: int) -> dict[str, str]:
    """A key that costs milliseconds to verify by."""
    numbers = rsa.RSAPublicNumbers(exponent, (1 << bits) - 1)
    return {**RSAAlgorithm.to_jwk(numbers.public_key(), as_dict=True), "kid": "large"}


@pytest.mark.parametrize(
    "key",
    [
        forge.rsa_jwk(forge.RSA_KEY, kid="rsa", alg="none"),
        forge.rsa_jwk(forge.RSA_KEY, kid="rsa", alg="HS256"),
        forge.rsa_jwk(forge.RSA_KEY, kid="rsa", alg=[]),
        _large(16384, 65537),
        _large(2048, (1 << 2047) - 1),
    ],
    ids=["none", "HS256", "list", "16384 bits", "a long exponent"],
)
def test_a_key_that_verifies_nothing_does_not_hide_the_others(key):
    assert [each["kid"] for each in usable(json.dumps({"keys": [key, *forge.jwks()["keys"][:1]]}).encode())] == ["rsa"]


def test_members_that_are_no_text_are_not_kept():
    """A worker could not read them again, if they are deep enough."""
    key = json.dumps(forge.rsa_jwk(forge.RSA_KEY, kid="rsa"))[:-1] + ', "y": ' + "[" * 900 + "]" * 900 + "}"

    (kept,) = usable(f'{{"keys": [{key}]}}'.encode())

    assert set(kept) == {"kty", "kid", "n", "e"}


def test_the_addresses_of_a_host_share_the_time(monkeypatch):
    """Whoever answers for its name may name thousands that are silent."""
    silent = [(2, 1, 6, "", ("192.0.2.1", 443))] * 1000
    monkeypatch.setattr(keys, "_SECONDS", 0.3)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: silent)
    monkeypatch.setattr("socket.create_connection", lambda *_, timeout: _is_silent(timeout))
    since = time.monotonic()

    with pytest.raises(TimeoutError):
        fetched("https://login.example/jwks")

    assert time.monotonic() - since < 10


def _is_silent(seconds):
    time.sleep(min(seconds, 0.1))
    raise TimeoutError


def test_a_private_key_is_not_copied():
    private = {**forge.rsa_jwk(forge.RSA_KEY, kid="rsa"), "d": "AQAB", "p": "AQAB"}

    (kept,) = usable(json.dumps({"keys": [private]}).encode())

    assert set(kept) == {"kty", "kid", "n", "e"}


# --- The verifier, beside a refresher that is not there


@pytest.fixture
def verifier(tmp_path):
    """It, and what its clock says."""
    now = [time.time()]
    known = Identity(1, "00" * 32, forge.ISSUER, forge.AUDIENCE, forge.SUBJECT, "/keys")
    Known((known,), {"/keys": Keys(usable(json.dumps(forge.jwks()).encode()), now[0])}).write(tmp_path / "file")
    return Verifier(tmp_path / "file", clock=lambda: now[0]), now


def test_a_worker_uses_no_keys_older_than_a_day(verifier):
    reads, now = verifier
    assert reads.of_text(forge.token()) is not None

    now[0] += 24 * 3600 + 1

    assert reads.of_text(forge.token(forge.claims(iat=None, exp=int(now[0]) + 300))) is None


def test_a_token_that_was_verified_counts_until_it_expires(verifier):
    reads, now = verifier
    text = forge.token(forge.claims(exp=int(now[0]) + 100))
    assert reads.of_text(text) is not None

    now[0] += 131

    assert reads.of_text(text) is None


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"identities": [{}], "keys": {}}'])
def test_a_worker_goes_on_with_what_it_has_read(verifier, tmp_path, content):
    reads, _ = verifier
    assert reads.of_text(forge.token()) is not None
    if content is None:
        (tmp_path / "file").unlink()
    else:
        (tmp_path / "file").write_bytes(content)

    assert reads.of_text(forge.token(forge.claims(more=1))) is not None


# --- The refresher


class _NoDatabases:
    names = ("",)

    def __iter__(self):
        return iter(())


class _Issuer:
    """Keys at a place, which may be away; and the time."""

    def __init__(self) -> None:
        self.now, self.is_away, self.asked = 1_000_000.0, False, 0

    def keys(self, _: str) -> list[dict[str, str]]:
        self.asked += 1
        if self.is_away:
            raise UnusableKeys("status 503")
        return [{"kid": "a"}]


@pytest.fixture
def issuer():
    return _Issuer()


@pytest.fixture
def refresher(tmp_path, issuer):
    made = Refresher(_NoDatabases(), tmp_path / "file", keys_at=issuer.keys, clock=lambda: issuer.now)  # type: ignore[arg-type]
    made._of_server[""] = [Identity(1, "00", "https://login.example", "muniment", "chatbot", "https://login.example")]
    return made


def test_keys_outlive_an_outage_of_a_day_and_no_longer(refresher, issuer, tmp_path):
    refresher.refresh()
    issuer.is_away = True

    issuer.now += 24 * 3600 - 1
    refresher.refresh()
    assert Known.read(tmp_path / "file").keys == {"https://login.example": Keys([{"kid": "a"}], 1_000_000.0)}
    issuer.now += 2
    refresher.refresh()
    assert Known.read(tmp_path / "file").keys == {}


def test_an_issuer_is_asked_at_its_own_pace(refresher, issuer):
    for _ in range(150):
        issuer.now += 2
        refresher.refresh()
    assert issuer.asked == 1
    issuer.is_away = True
    for _ in range(150):
        issuer.now += 2
        refresher.refresh()
    assert issuer.asked <= 1 + 300 // 30 + 1


@pytest.mark.parametrize("left", [[], [{"kty": "oct", "kid": "shared", "k": "AA"}]])
def test_an_issuer_that_withdraws_its_last_key_has_none(tmp_path, left):
    """It is not away: it says that the key counts no longer."""
    now, place = [1_000_000.0], str(tmp_path / "keys")
    forge.write_keys(tmp_path / "keys")
    made = Refresher(_NoDatabases(), tmp_path / "file", clock=lambda: now[0])  # type: ignore[arg-type]
    made._of_server[""] = [Identity(1, "00", "i", "a", "s", place)]
    made.refresh()
    assert Known.read(tmp_path / "file").keys[place].keys

    forge.write_keys(tmp_path / "keys", {"keys": left})
    now[0] += 11
    made.refresh()

    assert Known.read(tmp_path / "file").keys == {place: Keys([], now[0])}


@pytest.mark.parametrize("place", ["https://login.example:99999/jwks", "https://[bad/jwks", "https://a..b/", "/a\0b"])
def test_a_place_that_is_none_does_not_end_the_refresher(tmp_path, place):
    """Else a mistake of one tenant, or what its issuer sends, would keep new keys from the identities of all others."""
    forge.write_keys(tmp_path / "keys")
    made = Refresher(_NoDatabases(), tmp_path / "file")  # type: ignore[arg-type]
    made._of_server[""] = [Identity(1, "00", "i", "a", "s", at) for at in (place, str(tmp_path / "keys"))]

    made.refresh()

    assert Known.read(tmp_path / "file").keys.keys() == {str(tmp_path / "keys")}


def test_keys_of_an_identity_that_is_added_again_are_fetched_again(refresher, issuer, tmp_path):
    named = refresher._of_server[""]
    for count in (1, 0, 1):
        refresher._of_server[""] = named[:count]
        refresher.refresh()

    assert issuer.asked == 2
    assert Known.read(tmp_path / "file").keys


def test_until_every_database_has_answered_the_file_stands(tmp_path, issuer):
    before = Known((Identity(1, "00", "i", "a", "s", "/k"),), {"/k": Keys([], issuer.now)})
    before.write(tmp_path / "file")

    Refresher(_NoDatabases(), tmp_path / "file", keys_at=issuer.keys, clock=lambda: issuer.now).refresh()  # type: ignore[arg-type]

    assert Known.read(tmp_path / "file") == before
