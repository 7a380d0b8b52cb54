"""The walls a call passes, outermost first. Each is one class; `Server` says how they stand."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from typing import NoReturn

import grpc
from google.protobuf.message import DecodeError, Message

from muniment_server.domain.errors import (
    Conflict,
    DeadlineExceeded,
    EgressViolation,
    FieldViolation,
    InvalidArgument,
    InvalidPageToken,
    MethodUnknown,
    MunimentError,
    PrincipalNotAllowed,
    Refusal,
    SessionNotFound,
    StaleSession,
    TaintChanged,
    Unauthenticated,
    Unavailable,
)
from muniment_server.domain.records import HostIdentity, SessionIdentity
from muniment_server.monitor import egress, status
from muniment_server.monitor.authentication import Credentials, bearer_token
from muniment_server.monitor.call import CallContext, Proceed
from muniment_server.monitor.policy import Method
from muniment_server.monitor.store import Store
from muniment_server.monitor.validation import Rules
from muniment_server.postgres.driver_errors import place_of

_LOG = logging.getLogger("muniment.calls")
_MOST_RUNS = 4
"""Levels only rise, and there are four of them."""


class TellErrors:
    """Turns every error into a status of the fixed table, and logs codes and reasons, never what was sent."""

    def __call__(self, call: CallContext, proceed: Proceed) -> Message:
        begun = time.monotonic()
        try:
            return proceed(call)
        except Exception as error:  # noqa: BLE001 - the one place where what nobody foresaw becomes INTERNAL
            self._refuse(call, error, begun)

    def _refuse(self, call: CallContext, error: Exception, begun: float) -> NoReturn:
        code, reason = status.told(error)
        incident = uuid.uuid4() if code is grpc.StatusCode.INTERNAL else None
        took = round((time.monotonic() - begun) * 1000)
        if incident is None:
            _LOG.info("%s %s %s %d ms", call.method.name, code.name, reason, took)
        else:
            _LOG.error(
                "%s INTERNAL %s incident %s\n%s", call.method.name, type(error).__name__, incident, place_of(error)
            )
        call.grpc_context.abort_with_status(status.status_of(error, incident=incident))
        raise AssertionError("abort returns never")


class Gate:
    """Closed until the walls in the database are seen to stand, and while they do not: no call of ours passes."""

    def __init__(self) -> None:
        self.open = False

    def __call__(self, call: CallContext, proceed: Proceed) -> Message:
        if not self.open:
            raise Unavailable
        return proceed(call)


class Authenticate:
    """Finds out who is calling."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def __call__(self, call: CallContext, proceed: Proceed) -> Message:
        call.token = bearer_token(call.grpc_context)
        call.principal = self._credentials.principal(call.token, call.lifetime)
        return proceed(call)


class FollowTaint:
    """Runs the call again where the taint now is, when the store finds it is not where it was.

    A refusal that no statement has vouched for may rest on a remembered session: it is confirmed first, so
    that a closed session is UNAUTHENTICATED whatever else is wrong with its call.

    A stream is not run again: what it has taken cannot be had a second time. Of one, the store says StaleSession
    before it begins, and only then.
    """

    _UNCONFIRMED = (InvalidArgument, InvalidPageToken, TaintChanged, SessionNotFound, MethodUnknown)

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def __call__(self, call: CallContext, proceed: Proceed) -> Message:
        last: MunimentError = TaintChanged()
        for _ in range(_MOST_RUNS):
            try:
                return proceed(call)
            except StaleSession:
                call.principal = self._look(call)
            except Conflict as conflict:
                if call.method.takes_stream:
                    raise
                last = conflict
            except self._UNCONFIRMED as refusal:
                found = self._confirm(call, refusal)
                if found == call.principal or call.method.takes_stream:
                    raise
                call.principal = found
        raise last

    def _confirm(self, call: CallContext, refusal: MunimentError) -> SessionIdentity | HostIdentity:
        try:
            return self._look(call)
        except Unauthenticated as gone:
            gone.progress = refusal.progress
            raise

    def _look(self, call: CallContext) -> SessionIdentity | HostIdentity:
        if not isinstance(call.principal, SessionIdentity):
            assert call.principal is not None
            return call.principal
        assert call.token is not None
        return self._credentials.fresh_session(call.token, call.lifetime)


class Authorize:
    """Holds the caller against the method's policy. What is not allowed is denied, and audited."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, call: CallContext, proceed: Proceed) -> Message:
        if not self._allowed(call):
            assert call.principal is not None
            self._store.record_wrong_principal(call.principal, call.call)
            raise PrincipalNotAllowed
        return proceed(call)

    @staticmethod
    def _allowed(call: CallContext) -> bool:
        if isinstance(call.principal, SessionIdentity):
            return call.method.for_sessions
        return isinstance(call.principal, HostIdentity) and call.method.for_hosts


class Validate:
    """Receives the request, parses it and judges it by the rules of the contract."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def __call__(self, call: CallContext, proceed: Proceed) -> Message:
        call.request = self._stream(call) if call.method.takes_stream else self._one(call)
        return proceed(call)

    def _one(self, call: CallContext) -> Message:
        if call.request_bytes is None:
            call.request_bytes = call.receive()
        if call.request_bytes is None:
            raise InvalidArgument(FieldViolation("", "is missing: send one message"))
        return self._judged(call.method, call.request_bytes)

    def _stream(self, call: CallContext) -> Iterator[Message]:
        """Each message is judged when its turn comes: the servicer has what came before it."""
        while (message := call.receive()) is not None:
            if call.lifetime.remaining() == 0:
                raise DeadlineExceeded
            yield self._judged(call.method, message)

    def _judged(self, method: Method, message: bytes) -> Message:
        try:
            request = method.parse(message)
        except DecodeError:
            raise InvalidArgument(FieldViolation("", "is not a message of this method")) from None
        self._rules.check(method.request_type, message)
        return request


class GuardEgress:
    """Lets no labelled message above the caller out, be it an answer or the detail of a refusal.

    It can only fire when a wall below is broken.
    """

    def __call__(self, call: CallContext, proceed: Proceed) -> Message:
        try:
            response = proceed(call)
        except Refusal as refusal:
            for detail in status.details(refusal):
                self._guard(call, detail)
            raise
        self._guard(call, response)
        return response

    @staticmethod
    def _guard(call: CallContext, message: Message) -> None:
        principal = call.principal
        limit = principal.taint if isinstance(principal, SessionIdentity) else call.host.ceiling
        if not egress.may_leave(message, limit):
            _LOG.critical("%s: an answer above the caller's level was held back", call.method.name)
            raise EgressViolation
