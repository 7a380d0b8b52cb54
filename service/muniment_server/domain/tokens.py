"""Bearer tokens: `mun_s_7_<secret>_<checksum>`. Only their SHA-256 is stored.

The kind and the tenant's number are in clear text; the secret is 256 random bits. The checksum is the CRC-32 of all
that stands before it: a mistyped token is refused without the database, and scanners for leaked secrets find no others.
Tokens of version 0.1 have no checksum and stay valid.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from dataclasses import dataclass
from enum import StrEnum

from muniment_server.domain import base64url
from muniment_server.domain.ids import TenantNumber

_FORM = re.compile(
    r"(?P<checked>mun_(?P<kind>[hs])_(?P<tenant>[1-9][0-9]{0,18})_[A-Za-z0-9_-]{43})(?:_(?P<checksum>[0-9a-f]{8}))?",
    re.ASCII,
)
_MAX_TENANT = 2**63 - 1


class TokenKind(StrEnum):
    """The kind of principal that a token identifies."""

    HOST = "h"
    SESSION = "s"


_KINDS = {kind.value: kind for kind in TokenKind}


@dataclass(frozen=True, slots=True)
class Token:
    """The parts of a token that identify it in the database. The text itself is not kept."""

    kind: TokenKind
    tenant: TenantNumber
    hash: bytes


def mint(kind: TokenKind, *, tenant: TenantNumber, secret: bytes) -> str:
    """A new token. *secret* is SECRET_BYTES random bytes."""
    checked = f"mun_{kind}_{tenant}_{base64url.encode(secret)}"
    return f"{checked}_{_checksum(checked)}"


def digest(text: str) -> bytes:
    """The hash that the database stores. With 256 bits of entropy, neither salt nor stretching is needed."""
    return hashlib.sha256(text.encode()).digest()


def parse(text: str) -> Token | None:
    """The token in *text*, or None if it is malformed."""
    match = _FORM.fullmatch(text)
    if match is None or int(match["tenant"]) > _MAX_TENANT:
        return None
    checked, kind, tenant, checksum = match.groups()
    if checksum is not None and checksum != _checksum(checked):
        return None
    return Token(kind=_KINDS[kind], tenant=TenantNumber(int(tenant)), hash=digest(text))


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"
