"""The two tiers of notes, how a host configures them, and how much of a tier's budget is used."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from muniment_server.domain.classification import Label

SEPARATOR = "\n§\n"
"""Joins the notes of a tier, and counts toward the budget."""


class Tier(IntEnum):
    """One of an agent's two sets of notes. The numbers are those of the contract and of the tables."""

    MEMORY = 1
    """The agent's own notes. Items of other kinds are stored with this number, too."""
    USER = 2
    """The user profile."""


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """The settings of an agent's two tiers. Limits are in Unicode code points. None means not stated."""

    memory_enabled: bool | None = None
    user_profile_enabled: bool | None = None
    memory_char_limit: int | None = None
    user_char_limit: int | None = None


DEFAULT_MEMORY_SETTINGS = MemorySettings(
    memory_enabled=True, user_profile_enabled=True, memory_char_limit=2200, user_char_limit=1375
)


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a tier's budget the notes that a session sees take up, in code points of the prompt."""

    tier: Tier
    used_chars: int
    limit_chars: int

    @property
    def percent(self) -> int:
        """Rounded down. May exceed 100."""
        if self.limit_chars:
            return self.used_chars * 100 // self.limit_chars
        return 100 if self.used_chars else 0


@dataclass(frozen=True, slots=True)
class BudgetEntry:
    """One note that takes up budget."""

    note_id: str
    length_chars: int
    preview: str
    own_level: bool
    label: Label
