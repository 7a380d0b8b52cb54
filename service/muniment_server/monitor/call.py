"""One call on its way through the interceptors: an argument everywhere, never a global."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import grpc
from google.protobuf.message import Message

from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.domain.tokens import Token
from muniment_server.monitor.audit_scope import AuditScope
from muniment_server.monitor.host_scope import HostScope
from muniment_server.monitor.paging import Pager
from muniment_server.monitor.policy import Method
from muniment_server.monitor.scopes import Scopes
from muniment_server.monitor.session_scope import SessionScope
from muniment_server.postgres.deadline import Deadline

_NO_DEADLINE = 365 * 24 * 3600.0
"""grpc reports a number near 2**63 if the caller set no deadline."""


@dataclass(slots=True)
class CallContext:
    """One call. Interceptors fill in what those behind them need.

    The scopes that a servicer opens are those of the authenticated principal: it cannot ask for another one.
    """

    method: Method
    grpc_context: grpc.ServicerContext
    receive: Callable[[], bytes | None]
    """Waits for the next message; None at the end. Only called once the caller is known to be allowed."""
    deadline: Deadline
    scopes: Scopes
    token: Token | None = None
    principal: HostIdentity | SessionIdentity | None = None
    request_bytes: bytes | None = None
    """The one message of a call that is not a stream. Kept, so that the call can be run again."""
    request: Message | Iterator[Message] | None = None

    @property
    def session(self) -> SessionIdentity:
        """The caller of a method for sessions."""
        assert isinstance(self.principal, SessionIdentity)
        return self.principal

    @property
    def host(self) -> HostIdentity:
        """The caller of a method for hosts."""
        assert isinstance(self.principal, HostIdentity)
        return self.principal

    def session_scope(self) -> AbstractContextManager[SessionScope]:
        """What the calling session may do."""
        return self.scopes.of_session(self.session, self.method, self.deadline)

    def host_scope(self) -> AbstractContextManager[HostScope]:
        """What the calling host may do."""
        return self.scopes.of_host(self.host, self.method, self.deadline)

    def audit_scope(self) -> AbstractContextManager[AuditScope]:
        """What the calling host may read of the audit log."""
        return self.scopes.of_auditor(self.host, self.deadline)

    def close_session(self) -> None:
        """Close the calling session."""
        self.scopes.close_own_session(self.session, self.deadline)

    def pager(self, *filters: object) -> Pager:
        """Makes and reads the page tokens of this method, for this caller and these filters."""
        assert self.token is not None
        taint = self.principal.taint if isinstance(self.principal, SessionIdentity) else None
        return Pager(self.token.hash, self.method.name, filters, taint)


Proceed = Callable[[CallContext], Message]
"""The rest of the way: the interceptors behind this one, and the servicer."""


class Interceptor(Protocol):
    """A step that every call passes: it lets the call proceed, or raises."""

    def __call__(self, call: CallContext, proceed: Proceed) -> Message:
        """Return the response of the rest of the way."""
        ...


def seconds_left(context: grpc.ServicerContext) -> float | None:
    """Seconds until the caller's deadline, or None if there is none."""
    remaining: float | None = context.time_remaining()
    return remaining if remaining is not None and remaining < _NO_DEADLINE else None
