"""One call on its way through the interceptors: an argument everywhere, never a global."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import grpc
from google.protobuf.message import Message

from muniment_server.domain.classification import Classification, Integrity, Label, meet
from muniment_server.domain.ids import AgentNumber, SessionId
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.domain.tokens import Token
from muniment_server.monitor.audit_scope import AuditScope
from muniment_server.monitor.host_scope import HostScope
from muniment_server.monitor.paging import Pager
from muniment_server.monitor.policy import Flow, Method, PolicyViolation
from muniment_server.monitor.scopes import Scopes
from muniment_server.monitor.session_scope import SessionScope
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline

_NO_DEADLINE = 365 * 24 * 3600.0
"""grpc reports a number near 2**63 if the caller set no deadline."""
_CLOSING_SECONDS = 5.0
_LABEL_PREFIXES = ("", "source_")
"""The beginnings of the two fields of a request that name a label: a level and an integrity."""

InTurn: TypeAlias = Callable[[AbstractContextManager[Any]], AbstractContextManager[Any]]
"""Makes a scope wait for the turn of its call, unless the call has it until its end."""


@dataclass(slots=True)
class Call:
    """One call. Interceptors fill in what those behind them need. A servicer does not see it: see CallContext."""

    method: Method
    grpc_context: grpc.ServicerContext
    receive: Callable[[], bytes | None]
    """Returns the next message, or None at the end. Only a stream waits for its messages."""
    deadline: Deadline
    scopes: Scopes
    token: Token | None
    """The credential as the caller sent it. None if it is missing or malformed."""
    in_turn: InTurn
    request_id: str = ""
    """The id of the call in the log."""
    principal: HostIdentity | SessionIdentity | None = None
    request_bytes: bytes | None = None
    """The one message of a call that is not a stream. Kept, so that the call can be run again."""
    request: Message | Iterator[Message] | None = None
    error: Exception | None = None
    """Why the call was refused, for the log."""

    @property
    def host(self) -> HostIdentity:
        """The caller of a method for hosts."""
        assert isinstance(self.principal, HostIdentity)
        return self.principal

    def for_servicer(self) -> CallContext:
        """The same call, as its servicer sees it."""
        assert self.token is not None
        assert self.principal is not None
        labels = list(_labels(self.request)) if self.method.declared.uses_own_session else ()
        return CallContext(self.scopes, self.method, self.deadline, self.token, self.principal, self.in_turn, labels)


def _labels(request: object) -> Iterator[Label]:
    """The labels that *request* names."""
    for of in _LABEL_PREFIXES:
        if level := getattr(request, f"{of}classification", 0):
            yield Label.of(Classification(level), Integrity(getattr(request, f"{of}integrity", 0)))


class CallContext:
    """What a servicer sees of its call: it opens the scopes of the authenticated principal, and no others.

    Neither the call itself nor grpc's context is in its reach: it can change nothing that an interceptor relies on.
    """

    __slots__ = ("_deadline", "_ended", "_in_turn", "_labels", "_method", "_principal", "_scopes", "_token")

    def __init__(
        self,
        scopes: Scopes,
        method: Method,
        deadline: Deadline,
        token: Token,
        principal: HostIdentity | SessionIdentity,
        in_turn: InTurn,
        labels: Sequence[Label],
    ) -> None:
        self._scopes = scopes
        self._method = method
        self._deadline = deadline
        self._token = token
        self._principal = principal
        self._in_turn = in_turn
        self._labels = labels
        self._ended = False

    def end(self) -> None:
        """End the context with its call: whoever keeps it opens no scope in the name of this caller."""
        self._ended = True

    @property
    def principal(self) -> HostIdentity | SessionIdentity:
        """The authenticated caller."""
        return self._principal

    def session_scope(self) -> AbstractContextManager[SessionScope]:
        """What the calling session may do."""
        return self._in_turn(self._scopes.of_session(self._session(), self._method, self._deadline))

    def host_scope(self) -> AbstractContextManager[HostScope]:
        """What the calling host may do."""
        return self._scopes.of_host(self._host(), self._method, self._deadline)

    def eraser_scope(self) -> AbstractContextManager[HostScope]:
        """What the calling host may erase by its erasure."""
        return self._in_turn(self._scopes.of_host(self._host(), self._method, self._deadline, role=roles.ERASER))

    def own_session_scope(
        self, session_id: SessionId, label: Label, *, writes: bool = False
    ) -> AbstractContextManager[SessionScope]:
        """What a session may do that the host has opened for this call: with one of the labels of its request, if any.

        Never above the host's ceiling. A noun that opened the session with another label finds it stale.
        """
        host = self._host()
        if not self._method.declared.uses_own_session or (self._labels and label not in self._labels):
            raise PolicyViolation(f"{self._method.name} uses a session of its own, or one with another label")
        label = Label.of(meet(label.level, host.ceiling), label.integrity)
        session = SessionIdentity(host.tenant, session_id, label, AgentNumber(0), 0)
        flow = Flow.WRITE if writes else Flow.READ
        return self._scopes.of_session(session, replace(self._method, flow=flow), self._deadline)

    def closing_scope(self) -> AbstractContextManager[HostScope]:
        """The same as `host_scope`, for what must be done even after the caller has canceled the call."""
        return self._scopes.of_host(self._host(), self._method, Deadline(_CLOSING_SECONDS))

    def audit_scope(self) -> AbstractContextManager[AuditScope]:
        """What the calling host may read of the audit log."""
        return self._scopes.of_auditor(self._host(), self._deadline)

    def close_session(self) -> None:
        """Close the calling session."""
        self._scopes.close_own_session(self._session(), self._deadline)

    def pager(self, *filters: object) -> Pager:
        """Makes and reads the page tokens of this method, for this caller and these filters."""
        taint = self._principal.taint if isinstance(self._principal, SessionIdentity) else None
        return Pager(self._token.hash, self._method.name, filters, taint)

    def _session(self) -> SessionIdentity:
        if self._ended or not isinstance(self._principal, SessionIdentity):
            raise PolicyViolation(f"{self._method.name} opens the scope of a session after the call, or for a host")
        return self._principal

    def _host(self) -> HostIdentity:
        if self._ended or not isinstance(self._principal, HostIdentity):
            raise PolicyViolation(f"{self._method.name} opens the scope of a host after the call, or for a session")
        return self._principal


Proceed = Callable[[Call], Message]
"""The rest of the way: the interceptors behind this one, and the servicer."""


class Interceptor(Protocol):
    """A step that every call passes: it lets the call proceed, or raises."""

    def __call__(self, call: Call, proceed: Proceed) -> Message:
        """Return the response of the rest of the way."""
        ...


def seconds_left(context: grpc.ServicerContext) -> float | None:
    """Seconds until the caller's deadline, or None if there is none."""
    remaining: float | None = context.time_remaining()
    return remaining if remaining is not None and remaining < _NO_DEADLINE else None
