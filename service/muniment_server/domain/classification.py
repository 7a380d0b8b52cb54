"""The classification lattice: which way data may flow."""

from __future__ import annotations

from enum import IntEnum


class Classification(IntEnum):
    """A sensitivity level. A higher level dominates a lower one. Numbers are those of the contract."""

    PUBLIC = 1
    INTERNAL = 2
    CONFIDENTIAL = 3
    RESTRICTED = 4

    def can_flow_to(self, target: Classification) -> bool:
        """Whether data at this level may reach *target* (Denning's lattice; Bell-LaPadula's simple rule)."""
        return self <= target

    @property
    def role(self) -> str:
        """The database role, and the schema, of this level."""
        return f"muniment_{self.name.lower()}"
