"""The interceptors that every call passes, outermost first: see `in_order`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, cast

from google.protobuf.message import Message

from muniment_server.domain.classification import Integrity, Label
from muniment_server.domain.errors import (
    DeadlineExceeded,
    EgressViolation,
    FieldViolation,
    InvalidArgument,
    MunimentError,
    PrincipalNotAllowed,
    SessionReadOnly,
    Unauthenticated,
)
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.monitor import egress, status
from muniment_server.monitor.authentication import Credentials
from muniment_server.monitor.call import Call, Interceptor, Proceed
from muniment_server.monitor.gate import Gate
from muniment_server.monitor.policy import Flow, Method
from muniment_server.monitor.retry import RetryOnTaintChange
from muniment_server.monitor.validation import Validator

_LOG = logging.getLogger("muniment.calls")


def in_order(
    gate: Gate, credentials: Credentials, validator: Validator, *, counts: Interceptor, refuses_when_full: Interceptor
) -> tuple[Interceptor, ...]:
    """The interceptors, outermost first. The servicer is behind the last one.

    Errors are mapped outside of everything that may raise. The gate is closed before anything asks the database.
    Retries repeat everything that depends on the taint. Behind the filter, nothing can be added to a response
    but the integrity of its session.
    """
    return (
        MapErrors(),
        counts,
        gate,
        Authenticate(credentials),
        RetryOnTaintChange(credentials),
        Authorize(),
        Validate(validator),
        EgressFilter(),
        StateIntegrity(),
        refuses_when_full,
    )


class MapErrors:
    """Turns every error into a status of the fixed table, which says nothing of what was sent."""

    def __call__(self, call: Call, proceed: Proceed) -> Message:
        try:
            return proceed(call)
        except Exception as error:  # noqa: BLE001 - the one place where unforeseen errors become INTERNAL
            call.error = error
            call.grpc_context.abort_with_status(status.status_of(error, incident=call.request_id))
            raise AssertionError("abort_with_status always raises") from None


class Authenticate:
    """Finds out who is calling."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def __call__(self, call: Call, proceed: Proceed) -> Message:
        if call.token is None:
            raise Unauthenticated
        call.principal = self._credentials.principal(call.token, call.deadline)
        return proceed(call)


class Authorize:
    """Checks the caller against the policy of the method. A denied call leaves an audit row."""

    def __call__(self, call: Call, proceed: Proceed) -> Message:
        assert call.principal is not None
        if denial := _denial(call.method, call.principal):
            call.scopes.record_denial(call.principal, call.method, status.code_of(denial)[1], call.deadline)
            raise denial
        return proceed(call)


class Validate:
    """Receives the request, parses it, and checks it against the rules of the contract."""

    def __init__(self, validator: Validator) -> None:
        self._validator = validator

    def __call__(self, call: Call, proceed: Proceed) -> Message:
        call.request = self._stream(call) if call.method.takes_stream else self._one(call)
        return proceed(call)

    def _one(self, call: Call) -> Message:
        if call.request_bytes is None:
            call.request_bytes = call.receive()
        if call.request_bytes is None:
            raise InvalidArgument(FieldViolation("", "is missing: send one message"))
        return self._validator.parse(call.method.request_type, call.request_bytes)

    def _stream(self, call: Call) -> Iterator[Message]:
        """Each message is checked when the servicer asks for it: it already has those before."""
        while (message := call.receive()) is not None:
            if call.deadline.remaining() == 0:
                raise DeadlineExceeded
            yield self._validator.parse(call.method.request_type, message)


class EgressFilter:
    """Holds back every message with a label above the caller: responses, and the details of errors."""

    def __call__(self, call: Call, proceed: Proceed) -> Message:
        limit = _limit(call)
        try:
            response = proceed(call)
        except MunimentError as error:
            for detail in status.details(error):
                self._check(call, detail, limit)
            raise
        self._check(call, response, limit)
        return response

    @staticmethod
    def _check(call: Call, message: Message, limit: Label) -> None:
        if not egress.may_leave(message, limit):
            _LOG.critical("%s: withheld a message whose label is missing or above the caller", call.method.name)
            raise EgressViolation


class StateIntegrity:
    """States in the response of a session that it has the session's integrity, whatever its entries have.

    Which entries there are, and in which order, depends on everything that the session can see.
    """

    def __call__(self, call: Call, proceed: Proceed) -> Message:
        response: Any = proceed(call)
        if isinstance(call.principal, SessionIdentity) and egress.says_integrity(response):
            response.integrity = call.principal.taint.integrity
        return cast(Message, response)


def _denial(method: Method, principal: HostIdentity | SessionIdentity) -> MunimentError | None:
    """Why *principal* may not call *method*, whatever it asks."""
    if not method.allows(principal):
        return PrincipalNotAllowed()
    if isinstance(principal, SessionIdentity) and principal.read_only and method.flow is Flow.WRITE:
        return SessionReadOnly()
    return None


def _limit(call: Call) -> Label:
    """What may flow to the caller. A host sees what untrusted contexts wrote: it decides who is shown it."""
    principal = call.principal
    return (
        principal.taint if isinstance(principal, SessionIdentity) else Label.of(call.host.ceiling, Integrity.UNTRUSTED)
    )
