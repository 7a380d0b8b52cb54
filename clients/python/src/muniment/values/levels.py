"""Levels and kinds of items."""

from __future__ import annotations

from enum import IntEnum


class NamedEnum(IntEnum):
    """Numbers of the contract that print as their names."""

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)


class Classification(NamedEnum):
    """A sensitivity level. A higher level dominates a lower one."""

    PUBLIC = 1
    INTERNAL = 2
    CONFIDENTIAL = 3
    RESTRICTED = 4

    def can_flow_to(self, target: Classification) -> bool:
        """Whether data at this level may reach *target*."""
        return self <= target


class Integrity(NamedEnum):
    """Whether only what hosts vouch for had a part in something. TRUSTED flows to UNTRUSTED, never back."""

    UNTRUSTED = 0
    TRUSTED = 1


class ItemKind(NamedEnum):
    """A kind of item."""

    MEMORY = 1
    NOTE = 2
    BLOCK = 3
    PASSAGE = 4
