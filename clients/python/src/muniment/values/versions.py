"""Versions of items."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from muniment.values.levels import Classification


@dataclass(frozen=True, slots=True)
class NewerBelow:
    """Says that a version at a lower level is newer than the one that is shown. Of several, the newest."""

    classification: Classification
    update_time: datetime


@dataclass(frozen=True, slots=True)
class ItemVersion:
    """The version of an item at one level. Notes and blocks have no tags."""

    content: str = field(repr=False)
    tags: tuple[str, ...] = field(repr=False)
    classification: Classification
    etag: str
    update_time: datetime
    expire_time: datetime | None
