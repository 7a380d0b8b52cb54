"""The classification lattice: which way data may flow.

Levels are compared only here: a later lattice may not be a total order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
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

    @property
    def role(self) -> str:
        """The database role, and the schema, of this level."""
        return f"muniment_{self.name.lower()}"


def join(levels: Iterable[Classification]) -> Classification:
    """The least level that dominates all *levels*: PUBLIC if there are none (Denning 1976)."""
    return max(levels, default=Classification.PUBLIC)


def meet(one: Classification, other: Classification) -> Classification:
    """The greatest level that both *one* and *other* dominate."""
    return min(one, other)


def unshadowed(versions: Mapping[Classification, _V]) -> _V:
    """The version that shadows the others: the one at the highest level. *versions* is not empty."""
    return versions[max(versions)]


def strictly_below(versions: Mapping[Classification, _V], level: Classification) -> dict[Classification, _V]:
    """The versions at levels that *level* strictly dominates."""
    return {own: version for own, version in versions.items() if own.can_flow_to(level) and own is not level}
