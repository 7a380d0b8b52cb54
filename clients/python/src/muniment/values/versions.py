"""Versions of items."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from muniment.values.levels import Classification


@dataclass(frozen=True, slots=True)
class NewerBelow:
    """Says that a version at a lower level is newer than the one that is shown. Of several, the newest."""

    classification: Classification
    update_time: datetime
