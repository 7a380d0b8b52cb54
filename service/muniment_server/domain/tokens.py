"""Bearer tokens: 256 random bits that name their tenant in clear, stored only as SHA-256."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

SECRET_BYTES = 32
_FORM = re.compile(r"mun_(?P<kind>[hs])_(?P<tenant>[1-9][0-9]{0,18})_[A-Za-z0-9_-]{43}", re.ASCII)
_LARGEST_TENANT = 2**63 - 1


class TokenKind(StrEnum):
    """Whose credential a token is."""

    HOST = "h"
    SESSION = "s"


@dataclass(frozen=True, slots=True)
class Token:
    """What of a presented token may be looked up. The text itself is not kept."""

    kind: TokenKind
    tenant: int
    hash: bytes


def mint(kind: TokenKind, *, tenant: int, secret: bytes) -> str:
    """A new token. *secret* is SECRET_BYTES random bytes."""
    return f"mun_{kind}_{tenant}_{base64.urlsafe_b64encode(secret).rstrip(b'=').decode()}"


def digest(text: str) -> bytes:
    """What the database keeps of a token. At 256 bits of entropy no salt or stretching is needed."""
    return hashlib.sha256(text.encode()).digest()


def parse(text: str) -> Token | None:
    """The token in *text*; None when it is not of the form."""
    match = _FORM.fullmatch(text)
    if match is None or int(match["tenant"]) > _LARGEST_TENANT:
        return None
    return Token(kind=TokenKind(match["kind"]), tenant=int(match["tenant"]), hash=digest(text))
