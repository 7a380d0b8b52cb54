"""Pages, results and etags: their sizes, and how they are written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from muniment_server.domain import base64url
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.ids import ItemId
from muniment_server.domain.items import Version

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 250
DEFAULT_RESULTS = 10
MAX_RESULTS = 100
NEWEST = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))
"""The start of a list that goes from newest to oldest."""

NO_VERSION = Version(ItemId(UUID(int=0)), 0)
"""The version that is current where none is visible: revisions count from 1."""

_ETAG_BYTES = 16 + 4


def before(last: Sequence[str] | None) -> tuple[datetime, UUID]:
    """Where a list from newest to oldest continues: after the time and id that a page token names."""
    return (datetime.fromisoformat(last[0]), UUID(last[1])) if last else NEWEST


def page_size(requested: int) -> int:
    """The size of one page."""
    return min(requested or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)


def max_results(requested: int) -> int:
    """The maximum number of results of a search."""
    return min(requested or DEFAULT_RESULTS, MAX_RESULTS)


def etag(version: Version) -> str:
    """The etag of a version, made only of its item's id and revision: nothing that other levels can change."""
    return base64url.encode(version.item_id.bytes + version.revision.to_bytes(4))


def etag_of_text(text: str) -> str:
    """The etag of a text: a hash of it."""
    return base64url.encode(hashlib.sha256(text.encode()).digest())


def version_of(text: str, *, field: str = "etag") -> Version | None:
    """The version that an etag names, or None if it is empty. Raises InvalidArgument if it is malformed."""
    if not text:
        return None
    raw = base64url.decode(text)
    if raw is None or len(raw) != _ETAG_BYTES or raw[16] > 0x7F:
        raise InvalidArgument(FieldViolation(field, "must be an etag of this service"))
    return Version(ItemId(UUID(bytes=raw[:16])), int.from_bytes(raw[16:]))
