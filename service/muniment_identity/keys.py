"""Gets the public keys of an issuer, as a JWKS (RFC 7517), from an https URL or a file.

Whatever is at the URL costs bounded time and memory: no redirect is followed, no proxy is used, and link-local
addresses, where clouds keep the secrets of machines, are refused.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from muniment_identity.file import Jwk
from muniment_server.process.input_files import read_file

_SECONDS = 5.0
_MOST_BYTES = 64 * 1024
_MOST_KEYS = 64
_RSA_BITS = range(2048, 8192 + 1)
_MOST_EXPONENT = 2**32
"""No RSA key has a public exponent beyond. To verify by a larger key, or exponent, would take milliseconds."""
_PUBLIC = ("kty", "kid", "alg", "crv", "n", "e", "x", "y")
"""The members that are kept, if they are text. A private key that an issuer publishes by mistake is not copied."""
_KINDS = ("RSA", "EC", "OKP")
"""No `oct`: a secret that is shared proves nothing of who signed."""
_ALGORITHMS = (
    None, "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "ES256K",
    "EdDSA",
)  # fmt: skip
_USES = (None, "sig", "jwt-svid")


class UnusableKeys(Exception):
    """The keys cannot be had. The text says why, and quotes nothing that was received."""


def keys_at(place: str) -> Sequence[Jwk]:
    """The keys at *place* that may verify tokens. Raises UnusableKeys, and whatever else reading and parsing raise."""
    return usable(fetched(place) if place.startswith("https:") else read_file(Path(place), _MOST_BYTES))


def usable(text: bytes) -> Sequence[Jwk]:
    """The keys in a JWKS that may verify tokens. Empty if the issuer has withdrawn them all. Raises UnusableKeys."""
    try:
        return [_public(key) for key in json.loads(text)["keys"][:_MOST_KEYS] if _is_usable(key)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnusableKeys('it is not a JWKS: {"keys": [...]}') from None


def _public(key: Jwk) -> dict[str, Any]:
    return {name: key[name] for name in _PUBLIC if isinstance(key.get(name), str)}


def _is_usable(key: Jwk) -> bool:
    if key.get("kty") not in _KINDS or key.get("use") not in _USES or not isinstance(key.get("kid"), str):
        return False
    if key.get("alg") not in _ALGORITHMS:
        return False
    try:
        public = jwt.PyJWK(_public(key)).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return False
    if not isinstance(public, RSAPublicKey):
        return True
    return public.key_size in _RSA_BITS and public.public_numbers().e < _MOST_EXPONENT


def fetched(url: str) -> bytes:
    """What is at an https URL. Raises UnusableKeys, OSError or HTTPException."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 443
    with _connected(host, port) as connection:
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        connection.request("GET", path, headers={"accept": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise UnusableKeys(f"the answer has status {response.status}")
        body = response.read(_MOST_BYTES + 1)
    if len(body) > _MOST_BYTES:
        raise UnusableKeys(f"the answer has more than {_MOST_BYTES} bytes")
    return body


@contextlib.contextmanager
def _connected(host: str, port: int) -> Iterator[http.client.HTTPConnection]:
    """A connection, which is shut down after a while whatever the other side sends."""
    context = ssl.create_default_context()
    tls = context.wrap_socket(_socket(host, port), server_hostname=host, do_handshake_on_connect=False)
    cut_off = threading.Timer(_SECONDS, _shut_down, [tls])
    cut_off.daemon = True
    cut_off.start()
    connection = http.client.HTTPConnection(host, port)
    connection.sock = tls
    try:
        with contextlib.closing(tls), contextlib.closing(connection):
            tls.do_handshake()
            yield connection
    finally:
        cut_off.cancel()


def _socket(host: str, port: int) -> socket.socket:
    """A connection to the first address of *host* that accepts one. It may have thousands of addresses."""
    failure: OSError = OSError(f"{host} has no address")
    end_by = time.monotonic() + _SECONDS
    for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        if is_refused(str(address[0])):
            raise UnusableKeys("the host has a link-local, multicast or unspecified address")
        if (seconds := end_by - time.monotonic()) <= 0:
            break
        try:
            connected = socket.create_connection((str(address[0]), port), timeout=seconds)
        except OSError as error:
            failure = error
        else:
            connected.settimeout(_SECONDS)
            return connected
    raise failure


def is_refused(address: str) -> bool:
    """Whether no issuer may be at *address*."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped
    return parsed.is_link_local or parsed.is_multicast or parsed.is_unspecified


def _shut_down(tls: ssl.SSLSocket) -> None:
    """End what is read from it. Its own method would change what the other thread reads with."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(tls, socket.SHUT_RDWR)
