"""A call before a thread is taken for it.

grpc's synchronous server waits for the message of a call on a thread of its pool, for as long as the caller likes: a
few callers who send headers and nothing more would stop everybody. Here the message is received on grpc's serving
thread, which calls back when it has arrived, so no thread waits for it. A call can also be refused without a thread.

grpc has no public interface for this. Its private names are used in this module only;
tests/calls/transport/test_incoming.py fails if a new version of grpc changes what they mean.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeAlias

import grpc
from grpc import _server as internals
from grpc._cython import cygrpc  # type: ignore[attr-defined]

from muniment_server.domain.tokens import Token
from muniment_server.monitor.call import InTurn
from muniment_server.monitor.status import status_of
from muniment_server.postgres.driver_errors import location_of
from muniment_server.telemetry import worker_metrics as metrics
from muniment_server.transport.call_log import REQUEST_ID, CallRecord

_LOG = logging.getLogger("muniment.server")
_Serialize: TypeAlias = Callable[[Any], bytes]
Behavior: TypeAlias = "Callable[[Incoming, grpc.ServicerContext], Any]"
"""Serves one call: returns its answer, or aborts."""


class Rejection:
    """Why a call is refused without a thread, and the status that says so, which takes long to make."""

    __slots__ = ("error", "status")

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.status = status_of(error)


def nothing() -> None:
    """The next message of a call that has none."""
    return None


def in_its_turn(scope: AbstractContextManager[Any]) -> AbstractContextManager[Any]:
    """*scope* as it is: the call has its turn until it ends."""
    return scope


class Incoming:
    """One call, from the arrival of its headers to its end."""

    __slots__ = ("_event", "_respond", "_serialize", "_state", "in_turn", "next_message", "record", "token")

    def __init__(self, respond: Callable[..., None], event: Any, state: Any, serialize: _Serialize | None) -> None:
        self._respond = respond
        self._event = event
        self._state = state
        self._serialize = serialize
        self.token: Token | None = None
        """The credential, once it has been read."""
        self.next_message: Callable[[], bytes | None] = nothing
        """Its next message; None at the end. Waits for those of a stream; that of any other call has arrived."""
        self.in_turn: InTurn = in_its_turn
        """Makes a scope wait for the turn of the call."""
        self.record: CallRecord | None = None
        """Its record in the call log. None for health checks."""

    @property
    def peer(self) -> Callable[[], str]:
        """A function that returns the caller's address. Not a bound method: the call's record keeps it: a cycle."""
        return partial(_address, self._event.call)

    @property
    def metadata(self) -> Sequence[tuple[str, str | bytes]]:
        """The metadata that the caller sent."""
        return self._event.invocation_metadata or ()

    def certificate(self) -> bytes | None:
        """The certificate that the caller has shown, in PEM. None without one."""
        return certificate_in(cygrpc.auth_context(self._event.call))

    def receive(self, arrived: Callable[[bytes | None], None]) -> None:
        """Start to receive the next message. Returns at once.

        *arrived* is called on the serving thread, with the message, or with None if there is none. It must not block.
        """
        state = self._state
        received = internals._receive_message(state, self._event.call, None)

        def done(event: Any) -> Any:
            result = received(event)
            with state.condition:
                message, state.request = state.request, None
            self.guarded(lambda: arrived(message))
            return result

        with state.condition:
            if internals._is_rpc_state_active(state):
                self._event.call.start_server_batch((cygrpc.ReceiveMessageOperation(0),), done)
                state.due.add(internals._RECEIVE_MESSAGE_TOKEN)
                return
        arrived(None)

    def on_end(self, callback: Callable[[], None]) -> bool:
        """Have *callback* called when the call has ended and its answer has been sent. False: it has ended already."""
        with self._state.condition:
            if self._state.callbacks is None:
                return False
            self._state.callbacks.append(callback)
            return True

    def run(self, behavior: Behavior, sending: Callable[[int], None] = lambda _: None) -> None:
        """Run the call on this thread: send what *behavior* returns, or the status with which it aborts.

        *sending* is called with the size of the answer in bytes before it is sent.
        """

        def serialize(response: Any) -> bytes:
            answer: bytes = self._serialize(response) if self._serialize else response
            sending(len(answer))
            return answer

        self._state.context.run(self._respond, self._event, self._state, behavior, lambda: self, None, serialize)

    def refuse(self, rejection: Rejection) -> None:
        """End the call with the status of *rejection*. Returns at once."""
        state, status = self._state, rejection.status
        trailers = tuple(status.trailing_metadata)
        if self.record is not None:
            trailers += ((REQUEST_ID, self.record.request_id),)
            self.record.failed(rejection.error)
        with state.condition:
            if internals._is_rpc_state_active(state):
                state.code, state.details = status.code, status.details.encode()
                state.trailing_metadata = trailers
                internals._abort(state, self._event.call, None, b"")

    def record_end(self) -> None:
        """Keep how the call ended, unless that has been done."""
        if self.record is not None:
            self.record.ended(self._state.code or grpc.StatusCode.OK)

    def record_canceled(self) -> None:
        """Keep that the caller ended the call before it ran."""
        if self.record is not None:
            self.record.ended(grpc.StatusCode.CANCELLED)

    def cancel(self) -> None:
        """Cut the caller off."""
        metrics.CUT_OFF.inc()
        self._event.call.cancel()

    def guarded(self, do: Callable[[], None]) -> None:
        """Do something for the call. If that fails, cut it off; the thread goes on, since it serves others, too."""
        try:
            do()
        except Exception as error:  # noqa: BLE001 - whatever it is, the server must go on
            _LOG.error("a call could not be dispatched: %s\n%s", type(error).__name__, location_of(error))
            self.cancel()


def certificate_in(properties: Mapping[Any, Any] | None) -> bytes | None:
    """The certificate among what grpc says of a peer. The names that grpc reads in it end at the first null."""
    names = ("x509_pem_cert", b"x509_pem_cert")
    found = next((properties[name] for name in names if name in properties), None) if properties else None
    return bytes(found[0]) if found else None


def _address(call: Any) -> str:
    """The address of the caller of grpc's *call*, as grpc writes it."""
    peer: str | bytes = call.peer()
    return peer.decode("utf-8", "replace") if isinstance(peer, bytes) else peer


class Arrivals(ThreadPoolExecutor):
    """What grpc takes for its thread pool: it submits each call here, on its serving thread."""

    def __init__(self, arrived: Callable[[Incoming, Any], None]) -> None:
        """*arrived* is called with each call and the behavior of its handler. It must not block."""
        super().__init__(1)
        self._arrived = arrived

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Take over a call. Returns None, by which grpc knows that it need not count it."""
        respond, event, state, behavior, _, _, serialize = args
        call = Incoming(respond, event, state, serialize)
        call.guarded(lambda: self._arrived(call, behavior))
