"""Running a call again when the taint is not what it was when the call began."""

from __future__ import annotations

from google.protobuf.message import Message

from muniment_server.domain.errors import (
    Conflict,
    InvalidArgument,
    InvalidPageToken,
    MethodUnknown,
    MunimentError,
    SessionNotFound,
    StaleSession,
    StorageFull,
    TaintChanged,
    Unauthenticated,
)
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.monitor.authentication import Credentials
from muniment_server.monitor.call import Call, Proceed

_MAX_RUNS = 5
"""Including the first. A taint rises three times at most, and loses its trust once."""


class RetryOnTaintChange:
    """Runs a call again at the current taint, once a statement has found the session stale.

    A refusal that no statement has confirmed may rest on a cached session. The session is read again first, so that
    a closed one gets UNAUTHENTICATED whatever else is wrong with its call.

    A stream is not run again, since its messages cannot be received twice. Its store raises StaleSession before the
    first message, or not at all.
    """

    _UNCONFIRMED = (InvalidArgument, InvalidPageToken, TaintChanged, SessionNotFound, MethodUnknown, StorageFull)

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def __call__(self, call: Call, proceed: Proceed) -> Message:
        last: MunimentError = TaintChanged()
        for _ in range(_MAX_RUNS):
            try:
                return proceed(call)
            except StaleSession:
                call.principal = self._current(call)
            except Conflict as conflict:
                if call.method.takes_stream:
                    raise
                last = conflict
            except self._UNCONFIRMED as refusal:
                current = self._confirmed(call, refusal)
                if current == call.principal or call.method.takes_stream:
                    raise
                call.principal = current
        raise last

    def _confirmed(self, call: Call, refusal: MunimentError) -> SessionIdentity | HostIdentity:
        try:
            return self._current(call)
        except Unauthenticated as ended:
            ended.detail = refusal.detail
            raise

    def _current(self, call: Call) -> SessionIdentity | HostIdentity:
        """The principal as the database has it now."""
        if not isinstance(call.principal, SessionIdentity):
            assert call.principal is not None
            return call.principal
        assert call.token is not None
        return self._credentials.current(call.token, call.deadline)
