"""The two kinds of caller: hosts, and the sessions that hosts open."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from muniment_server.domain.classification import Classification, Integrity, Label
from muniment_server.domain.ids import AgentNumber, HostKeyId, SessionId, TenantNumber
from muniment_server.domain.items import ItemKind
from muniment_server.domain.limits import FOREVER, KnownRoom


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """The holder of a host key: acts for one tenant, up to a ceiling."""

    tenant: TenantNumber
    host_key_id: HostKeyId
    ceiling: Classification
    only_service: str | None = None
    """The one service whose methods it may call, as `SessionService`. None: it may call those of all."""
    integrity: Integrity = Integrity.TRUSTED
    """UNTRUSTED: it may neither open trusted sessions nor touch those of others."""


@dataclass(frozen=True, slots=True)
class SessionIdentity:
    """The holder of a session token.

    The taint was read from the database at the start of the call, and chooses the connection. The session predicate of
    each statement verifies it.
    """

    tenant: TenantNumber
    session_id: SessionId
    taint: Label
    agent: AgentNumber
    """For fair turns between agents, and their rates. No statement relies on it."""
    calls_per_second: int
    """The agent's limit."""
    memory_ttl: timedelta = FOREVER
    passage_ttl: timedelta = FOREVER
    """How long the agent's items without an expire time live."""
    read_only: bool = False
    """Whether it may call only what writes no item. For good: it was opened so."""
    room: KnownRoom = field(default_factory=KnownRoom, compare=False)
    """Of the agent at this taint: after a raise there is another."""

    def time_to_live(self, kind: ItemKind) -> timedelta:
        """How long an item without an expire time lives."""
        match kind:
            case ItemKind.MEMORY:
                return self.memory_ttl
            case ItemKind.PASSAGE:
                return self.passage_ttl
        return FOREVER
