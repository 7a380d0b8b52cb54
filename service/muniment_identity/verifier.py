"""Whether a JWT stands for a host key. In each worker, on its serving thread: no database and no network is asked.

PyJWT verifies the signature and the times, and refuses `crit`; what it is lenient about is refused here. The algorithm
is that of the key, never that of the token. A token that names or brings its own key (`jku`, `x5u`, `jwk`, `x5c`) is
verified by those of its issuer like any other. (RFC 8725)
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import jwt
from cryptography import x509
from jwt.utils import base64url_decode

from muniment_identity.file import CERTIFICATE, KEY_SECONDS, Identity, Keys, Known
from muniment_server.domain import tokens
from muniment_server.domain.ids import TenantNumber
from muniment_server.domain.tokens import Token, TokenKind
from muniment_server.monitor.authentication import Credential

_MOST_BYTES = 4096
_MOST_AUDIENCES = 16
_MOST_SECONDS = 24 * 3600
"""How far ahead a token may expire."""
_SKEW_SECONDS = 30
"""How much the clocks of issuer and server may differ."""
_MOST_REMEMBERED = 10_000
_FORM = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+", re.ASCII)
_TYPES = {"", "jwt", "jose", "at+jwt", "application/at+jwt"}


@dataclass(frozen=True, slots=True)
class _Verified:
    token: Token
    expires: float


class Verifier(Credential):
    """Reads credentials: bearer tokens of ours, and the JWTs and certificates of identities."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """*path*: the file of the refresher. *clock* counts seconds since the epoch."""
        self._path = path
        self._clock = clock
        self._stamp: object = None
        self._issued = _Issued(Known())
        self._verified: OrderedDict[bytes, _Verified] = OrderedDict()
        """The JWTs that were verified with what the file says now, by their hashes."""

    def of_certificate(self, certificate: bytes) -> Token | None:
        """What stands for its SPIFFE id in the database. None if it is that of no identity, or of several."""
        self._read_again()
        spiffe_id = _spiffe_id(certificate)
        return None if spiffe_id is None else self._issued.certified(spiffe_id)

    def of_text(self, text: str) -> Token | None:
        """What stands for the credential in the database. None if it is malformed, invalid or expired."""
        if (token := tokens.parse(text)) is not None or len(text) > _MOST_BYTES:
            return token
        self._read_again()
        digest = hashlib.sha256(text.encode(errors="replace")).digest()
        found = self._verified.get(digest) or self._issued.verified(text, self._clock())
        if found is None or found.expires <= self._clock():
            return None
        self._verified[digest] = found
        if len(self._verified) > _MOST_REMEMBERED:
            self._verified.popitem(last=False)
        return found.token

    def _read_again(self) -> None:
        """Take what stands in the file, if it has changed. While it cannot be read, what was read before counts."""
        try:
            found = self._path.stat()
            stamp = found.st_ino, found.st_mtime_ns, found.st_size
            if stamp != self._stamp:
                self._issued, self._stamp, self._verified = _Issued(Known.read(self._path)), stamp, OrderedDict()
        except (OSError, ValueError, jwt.PyJWTError):
            pass


@lru_cache(_MOST_REMEMBERED)
def _spiffe_id(certificate: bytes) -> str | None:
    """The SPIFFE id in a certificate. None if it has no URI, or several."""
    try:
        names = x509.load_pem_x509_certificate(certificate).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
        uris = names.value.get_values_for_type(x509.UniformResourceIdentifier)
    except (ValueError, x509.ExtensionNotFound):
        return None
    return uris[0] if len(uris) == 1 else None


class _Issued:
    """The identities, with the keys that verify their tokens."""

    def __init__(self, known: Known) -> None:
        self._by_subject: defaultdict[str, list[Identity]] = defaultdict(list)
        for identity in known.identities:
            self._by_subject[identity.subject].append(identity)
        self._keys = {place: _by_id(keys) for place, keys in known.keys.items()}
        self._last = {place: keys.fetched + KEY_SECONDS for place, keys in known.keys.items()}

    def verified(self, text: str, now: float) -> _Verified | None:
        """The identity of a JWT, and until when. None if there is not exactly one."""
        try:
            return self._checked(text, now)
        except (_Refused, ValueError, RecursionError, jwt.PyJWTError):
            return None

    def certified(self, spiffe_id: str) -> Token | None:
        """The identity whose certificates have this id. None if there is not exactly one."""
        named = [each for each in self._by_subject.get(spiffe_id, ()) if each.keys == CERTIFICATE]
        return _token(named[0]) if len(named) == 1 else None

    def _checked(self, text: str, now: float) -> _Verified:
        if (parts := _FORM.fullmatch(text)) is None:
            raise _Refused
        header, claims = (_json(part) for part in parts.groups())
        identity = self._identity(claims)
        if now > self._last.get(identity.keys, 0.0):
            raise _Refused
        key = _named(self._keys[identity.keys], header)
        if not _is_for_access(header.get("typ", "")):
            raise _Refused
        jwt.decode(text, key, algorithms=[key.algorithm_name], audience=identity.audience, leeway=_SKEW_SECONDS)
        return _Verified(_token(identity), min(_expiry(claims, now), self._last[identity.keys]))

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        """The identity that the claims name, which are not verified yet. So strangers cause no costly verification."""
        subject, audiences = claims.get("sub"), claims.get("aud")
        if isinstance(audiences, str):
            audiences = [audiences]
        if not isinstance(subject, str) or not isinstance(audiences, list) or len(audiences) > _MOST_AUDIENCES:
            raise _Refused
        named = [each for each in self._by_subject.get(subject, ()) if each.is_named(claims.get("iss"), audiences)]
        if len(named) != 1:
            raise _Refused
        return named[0]


def _token(identity: Identity) -> Token:
    return Token(TokenKind.HOST, TenantNumber(identity.tenant), bytes.fromhex(identity.key_hash))


class _Refused(Exception):
    """The token stands for no identity."""


def _by_id(keys: Keys) -> Mapping[str, jwt.PyJWK]:
    """The keys by their ids. An id that two have is none."""
    named: defaultdict[str, list[jwt.PyJWK]] = defaultdict(list)
    for key in keys.keys:
        named[key["kid"]].append(jwt.PyJWK(dict(key)))
    return {kid: same[0] for kid, same in named.items() if len(same) == 1}


def _named(keys: Mapping[str, jwt.PyJWK], header: Mapping[str, Any]) -> jwt.PyJWK:
    """The key that a header names. Some issuers have a single one, and name none."""
    if "kid" not in header and len(keys) == 1:
        return next(iter(keys.values()))
    kid = header.get("kid")
    if not isinstance(kid, str) or kid not in keys:
        raise _Refused
    return keys[kid]


def _is_for_access(kind: object) -> bool:
    """Whether a token of this `typ` may be a credential: one for logging out, for instance, is not."""
    return isinstance(kind, str) and kind.lower() in _TYPES


def _expiry(claims: Mapping[str, Any], now: float) -> float:
    """Until when the token is accepted. All times must be whole numbers."""
    for name in ("exp", "nbf", "iat"):
        if name in claims and type(claims[name]) is not int:
            raise _Refused
    expiry = int(claims["exp"]) if "exp" in claims else 0
    if not now - _SKEW_SECONDS < expiry <= now + _MOST_SECONDS:
        raise _Refused
    return float(expiry + _SKEW_SECONDS)


def _json(part: str) -> Mapping[str, Any]:
    """The object in a part of a token. Raises ValueError, also if it has a member twice: readers would differ."""
    found = json.loads(base64url_decode(part), object_pairs_hook=_unique, parse_constant=_no_number)
    if not isinstance(found, dict):
        raise _Refused
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused
    return found


def _no_number(_: str) -> NoReturn:
    raise _Refused
