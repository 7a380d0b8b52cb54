"""Versions of items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from muniment.values.levels import Classification, Integrity


@dataclass(frozen=True, slots=True)
class NewerBelow:
    """Says that a version at a lower level is newer than the one that is shown. Of several, the newest."""

    classification: Classification
    update_time: datetime
    integrity: Integrity = Integrity.UNTRUSTED


@dataclass(frozen=True, slots=True)
class ItemVersion:
    """The version of an item at one level, or what it has replaced there. Notes and blocks have no tags."""

    content: str = field(repr=False)
    tags: tuple[str, ...] = field(repr=False)
    classification: Classification
    etag: str
    update_time: datetime
    expire_time: datetime | None
    replaced: bool
    """Whether a newer revision has replaced it: only in lists with revisions."""
    integrity: Integrity = Integrity.UNTRUSTED


@dataclass(frozen=True, slots=True)
class VersionPage:
    """One page of versions. *classification* is the highest level among them, PUBLIC if there are none."""

    versions: tuple[ItemVersion, ...]
    next_page_token: str = field(repr=False)
    classification: Classification
    integrity: Integrity = Integrity.UNTRUSTED
    """That of the session: what is shown depends on all that it sees."""

    def __iter__(self) -> Iterator[ItemVersion]:
        return iter(self.versions)

    def __len__(self) -> int:
        return len(self.versions)
