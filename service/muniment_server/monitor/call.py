"""What is known of one call on its way through the walls. An argument everywhere, never a global."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import grpc
from google.protobuf.message import Message

from muniment_server.domain.records import HostIdentity, SessionIdentity
from muniment_server.domain.tokens import Token
from muniment_server.monitor.paging import Pager
from muniment_server.monitor.policy import Method
from muniment_server.postgres.deadline import Call, Lifetime

_FOREVER = 365 * 24 * 3600.0
"""grpc says a number near 2**63 where the caller set no deadline."""


@dataclass(slots=True)
class CallContext:
    """One call. Each wall fills in what the ones behind it need."""

    method: Method
    grpc_context: grpc.ServicerContext
    receive: Callable[[], bytes | None]
    """Waits for the next message of the call, None at its end: only for callers who may call."""
    request_bytes: bytes | None = None
    """The message of a call that is no stream: such a call may be run again."""
    lifetime: Lifetime = field(default_factory=Lifetime)
    token: Token | None = None
    principal: HostIdentity | SessionIdentity | None = None
    request: Message | Iterator[Message] | None = None

    @property
    def session(self) -> SessionIdentity:
        """The caller, of a method for sessions."""
        assert isinstance(self.principal, SessionIdentity)
        return self.principal

    @property
    def host(self) -> HostIdentity:
        """The caller, of a method for hosts."""
        assert isinstance(self.principal, HostIdentity)
        return self.principal

    @property
    def call(self) -> Call:
        """What the store knows of the call."""
        return Call(self.method.name, self.lifetime)

    def pager(self, *filters: object) -> Pager:
        """Makes and reads the page tokens of this method for this caller."""
        assert self.token is not None
        taint = self.principal.taint if isinstance(self.principal, SessionIdentity) else None
        return Pager(self.token.hash, self.method.name, filters, taint)


Proceed = Callable[[CallContext], Message]
"""The rest of the way: the walls behind this one, and the servicer."""


class Wall(Protocol):
    """Something a call passes on its way: it lets the call proceed, or raises."""

    def __call__(self, call: CallContext, proceed: Proceed) -> Message:
        """Return the response of the rest of the way."""
        ...


def seconds_left(context: grpc.ServicerContext) -> float | None:
    """Seconds until the caller's deadline; None when there is none."""
    remaining: float | None = context.time_remaining()
    return remaining if remaining is not None and remaining < _FOREVER else None
