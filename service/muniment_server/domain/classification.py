"""Labels, and which way data may flow: a label is a level of classification with an integrity.

Labels are compared only here: they are not in one order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, IntEnum
from typing import TypeVar

_V = TypeVar("_V")


class Classification(IntEnum):
    """A sensitivity level. A higher level dominates a lower one. The numbers are those of the contract."""

    PUBLIC = 1
    INTERNAL = 2
    CONFIDENTIAL = 3
    RESTRICTED = 4

    def can_flow_to(self, target: Classification) -> bool:
        """Whether data at this level may reach *target* (Denning's lattice; Bell-LaPadula's simple security rule)."""
        return self <= target


class Integrity(IntEnum):
    """Whether only trusted contexts had a part in something. The numbers are those of the contract."""

    UNTRUSTED = 0
    TRUSTED = 1

    def can_flow_to(self, target: Integrity) -> bool:
        """Whether data of this integrity may reach *target*: what is trusted may reach all (Biba)."""
        return self >= target


class Label(Enum):
    """A level with an integrity: what a session is tainted with, and what it writes.

    The number says which version of a name shadows the others: the level counts first, then the integrity. It is no
    order of flow, so labels have no `<`: ask `can_flow_to`.
    """

    PUBLIC_TRUSTED = 1
    PUBLIC = 2
    INTERNAL_TRUSTED = 3
    INTERNAL = 4
    CONFIDENTIAL_TRUSTED = 5
    CONFIDENTIAL = 6
    RESTRICTED_TRUSTED = 7
    RESTRICTED = 8

    level: Classification
    """How sensitive it is."""
    integrity: Integrity
    """Whether it is trusted."""
    role: str
    """The database role, and the schema, of this label."""

    def __init__(self, number: int) -> None:
        # Attributes, since each call asks for them a dozen times: making a member from its number takes long.
        self.level = Classification((number + 1) // 2)
        self.integrity = Integrity(number % 2)
        self.role = f"muniment_{self.name.lower()}"

    __hash__ = object.__hash__  # Enum's own hashes the name, in Python

    @classmethod
    def of(cls, level: Classification, integrity: Integrity) -> Label:
        """The label of *level* and *integrity*."""
        return cls(2 * level - integrity)

    @property
    def is_trusted(self) -> bool:
        """Whether its integrity is TRUSTED."""
        return self.integrity is Integrity.TRUSTED

    @property
    def chain(self) -> int:
        """The number of its chain of seals: that of the level, and 4 more for a trusted label."""
        return self.level + 4 * self.is_trusted

    def can_flow_to(self, target: Label) -> bool:
        """Whether data of this label may reach *target*: both its level and its integrity may."""
        return self.level.can_flow_to(target.level) and self.integrity.can_flow_to(target.integrity)


LABELS_OF_CHAINS: Mapping[int, Label] = {label.chain: label for label in Label}
"""The label of each chain of seals."""


def join(labels: Iterable[Label]) -> Label:
    """The least label that all *labels* can flow to: PUBLIC_TRUSTED if there are none (Denning 1976)."""
    level, integrity = Classification.PUBLIC, Integrity.TRUSTED
    for label in labels:
        level, integrity = max(level, label.level), min(integrity, label.integrity)
    return Label.of(level, integrity)


def meet(one: Classification, other: Classification) -> Classification:
    """The greatest level that both *one* and *other* dominate."""
    return min(one, other)


def unshadowed(versions: Mapping[Label, _V]) -> _V:
    """The version that shadows the others: the one with the highest number. *versions* is not empty."""
    return versions[max(versions, key=lambda label: label.value)]


def strictly_below(versions: Mapping[Label, _V], label: Label) -> dict[Label, _V]:
    """The versions with labels that may flow to *label*, without its own."""
    return {own: version for own, version in versions.items() if own.can_flow_to(label) and own is not label}
