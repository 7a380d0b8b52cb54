"""Base64 for tokens and etags: URL-safe, without padding, and with exactly one encoding for each value."""

from __future__ import annotations

import base64
import binascii


def encode(raw: bytes) -> str:
    """The encoding of *raw*."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes | None:
    """The bytes that *text* encodes. None if *text* is not their canonical encoding."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if encode(raw) == text else None
