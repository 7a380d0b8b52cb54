"""Etags and page tokens: opaque to callers, and of no use to anyone but the one they were made for."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import FieldViolation, InvalidArgument, InvalidPageToken, TaintChanged
from muniment_server.domain.records import Version

DEFAULT_PAGE_SIZE = 50
LARGEST_PAGE_SIZE = 250
DEFAULT_RESULTS = 10
MOST_RESULTS = 100
PAGE_BYTES = 3 * 1024 * 1024
"""No response is larger: a page ends early instead."""

_MAC_BYTES = 16
_ETAG_BYTES = 16 + 4


NEWEST = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))
"""Where a list that goes from the newest to the oldest begins."""


def before(last: Sequence[str] | None) -> tuple[datetime, UUID]:
    """Where a list from the newest to the oldest goes on, after the time and id that a page token names."""
    return (datetime.fromisoformat(last[0]), UUID(last[1])) if last else NEWEST


def page_size(asked: int) -> int:
    """How many to return in one page."""
    return min(asked or DEFAULT_PAGE_SIZE, LARGEST_PAGE_SIZE)


def max_results(asked: int) -> int:
    """How many results a search returns at most."""
    return min(asked or DEFAULT_RESULTS, MOST_RESULTS)


def etag(version: Version) -> str:
    """The name of a version, made of its item's id and its revision and of nothing that others move."""
    return base64.urlsafe_b64encode(version.item_id.bytes + version.revision.to_bytes(4)).rstrip(b"=").decode()


def etag_of_text(text: str) -> str:
    """The name of a text, made of it alone."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def version_of(text: str) -> Version | None:
    """The version that an etag names; None for the empty one. Raises InvalidArgument for what is none of ours."""
    if not text:
        return None
    raw = _unbase64(text)
    if raw is None or len(raw) != _ETAG_BYTES or raw[16] > 0x7F:
        raise InvalidArgument(FieldViolation("etag", "must be an etag of this service"))
    return Version(UUID(bytes=raw[:16]), int.from_bytes(raw[16:]))


@dataclass(frozen=True, slots=True)
class Pager:
    """Makes and reads the page tokens of one method, filter, credential and taint."""

    credential: bytes
    """The hash of the caller's bearer token: the HMAC key, equal in every worker, with nothing to configure."""
    method: str
    filters: Sequence[object]
    taint: Classification | None = None

    def token(self, *last: str) -> str:
        """The token for the page after the item that *last* names."""
        body = json.dumps([self.taint, *last], ensure_ascii=False, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._mac(body) + body).rstrip(b"=").decode()

    def last(self, token: str) -> list[str] | None:
        """What the token names; None for the first page. Raises InvalidPageToken, TaintChanged for another taint's."""
        if not token:
            return None
        raw = _unbase64(token) or b""
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(body)):
            raise InvalidPageToken
        taint, *last = json.loads(body)
        if taint != self.taint:
            raise TaintChanged
        return [str(part) for part in last]

    def _mac(self, body: bytes) -> bytes:
        context = json.dumps([self.method, *self.filters], ensure_ascii=False).encode()
        return hmac.digest(self.credential, hashlib.sha256(context).digest() + body, "sha256")[:_MAC_BYTES]


def _unbase64(text: str) -> bytes | None:
    """The bytes behind *text*; None unless *text* is just how we would write them."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == text else None
