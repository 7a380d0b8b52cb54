"""What is kept of each call: metrics, a line in the log if it was refused or all calls are logged, and its trace.

A line says who called, what, how it ended and how long it took. It never says what was sent or answered.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

import grpc
from prometheus_client import Counter, Histogram

from muniment_server.domain.errors import MunimentError
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.monitor.policy import Method
from muniment_server.monitor.status import code_of
from muniment_server.postgres.driver_errors import location_of
from muniment_server.telemetry import worker_metrics as metrics
from muniment_server.telemetry.logs import fields
from muniment_server.telemetry.repeats import Repeats
from muniment_server.telemetry.traces import CallTrace, Tracer

REQUEST_ID = "request-id"
"""The trailer with the id of a call in the log. Random: a counter would show callers how many other calls there are."""
_ID_DIGITS = 24
_IDS_AT_ONCE = 256
_LOG = logging.getLogger("muniment.calls")
Principal = HostIdentity | SessionIdentity


class CallLog:
    """The log of the calls of one server."""

    def __init__(self, *, logs_all: bool, tracer: Tracer | None = None) -> None:
        """*logs_all* writes a line for every call, not only for refusals. *tracer* makes traces; without one, none."""
        self.tracer = tracer
        self._logs_all = logs_all
        self._repeats = Repeats()
        self._unused_ids: list[str] = []

    def expect(self, methods: Iterable[Method]) -> None:
        """Show the metrics of *methods* from the start."""
        for method in methods:
            _counters(method.path, method.name, method.takes_stream)

    def begin(self, method: Method, peer: Callable[[], str]) -> CallRecord:
        """A call of *method* has arrived. For grpc's serving thread only."""
        counters = _counters(method.path, method.name, method.takes_stream)
        counters.started.inc()
        if not self._unused_ids:
            self._unused_ids = _random_ids()
        return CallRecord(self, counters, method, peer, self._unused_ids.pop())

    def report_repeats(self) -> None:
        """Log how often refusals were repeated. To be called every second."""
        for key, count in self._repeats.ended():
            _LOG.info("refused again", extra=fields(**dict(key), times=count))

    def end(self, record: CallRecord, code: grpc.StatusCode, reason: str, error: BaseException | None) -> None:
        """A call has ended. *reason* is empty if it succeeded."""
        seconds = time.monotonic() - record.begun
        record.counters.handled(code).inc()
        record.counters.seconds.observe(seconds)
        if record.principal is not None:
            metrics.calls_of_tenant(record.principal.tenant).inc()
        if reason:
            metrics.REFUSED.labels(record.method.name, code.name, reason).inc()
        if record.trace is not None:
            record.trace.end(code.name, reason)
        if self._logs_all or (reason and self._is_new(record, code, reason)):
            self._write(record, code, reason, error, seconds)

    def _is_new(self, record: CallRecord, code: grpc.StatusCode, reason: str) -> bool:
        """Whether a refusal repeats no other. A fault never does: its incident must be in the log."""
        key = tuple({"code": code.name, "reason": reason, **_identity(record.principal)}.items())
        return code is grpc.StatusCode.INTERNAL or self._repeats.is_first(key)

    @staticmethod
    def _write(
        record: CallRecord, code: grpc.StatusCode, reason: str, error: BaseException | None, seconds: float
    ) -> None:
        is_fault = code is grpc.StatusCode.INTERNAL
        _LOG.log(
            logging.ERROR if is_fault else logging.INFO,
            "fault" if is_fault else "refused" if reason else "served",
            extra=fields(
                method=record.method.name,
                code=code.name,
                reason=reason or None,
                ms=round(seconds * 1000),
                request_id=record.request_id,
                trace_id=record.trace.trace_id if record.trace is not None else None,
                peer=record.peer(),
                **_identity(record.principal),
                cause=error.cause if isinstance(error, MunimentError) and error.cause else None,
                fault=type(error).__name__ if is_fault else None,
                stack="\n" + location_of(error) if is_fault and error is not None else None,
            ),
        )


class CallRecord:
    """One call, until it has ended."""

    __slots__ = ("_has_ended", "_log", "begun", "counters", "method", "peer", "principal", "request_id", "trace")

    def __init__(
        self, log: CallLog, counters: Counters, method: Method, peer: Callable[[], str], request_id: str
    ) -> None:
        self._log = log
        self._has_ended = False
        self.counters = counters
        self.method = method
        self.peer = peer
        self.begun = time.monotonic()
        self.request_id = request_id
        self.principal: Principal | None = None
        """Its caller, once known."""
        self.trace: CallTrace | None = None
        """Its trace, if it is sampled. Only a call that has its turn has one: refusals stay cheap."""

    def begin_trace(self, metadata: Sequence[tuple[str, str | bytes]]) -> None:
        """Begin the trace of the call, which has its turn now, if it is sampled. *metadata* is what the caller sent."""
        if self._log.tracer is not None and not self._has_ended:
            self.trace = self._log.tracer.begin(
                self.method.path,
                self.method.name,
                _traceparent(metadata),
                operation=self.method.declared.memory_operation,
                seconds=time.monotonic() - self.begun,
                fields={"request_id": self.request_id, **_identity(self.principal)},
            )

    def succeeded(self) -> None:
        """The answer is ready."""
        self._end(grpc.StatusCode.OK, "", None)

    def ended(self, code: grpc.StatusCode) -> None:
        """The call has ended, in a way of which only the code is known."""
        self._end(code, "" if code is grpc.StatusCode.OK else code.name, None)

    def failed(self, error: BaseException) -> None:
        """The call ends with the status of *error*."""
        self._end(*code_of(error), error)

    def _end(self, code: grpc.StatusCode, reason: str, error: BaseException | None) -> None:
        """Counts once: a call that was refused may run all the same, until it finds that out."""
        if not self._has_ended:
            self._has_ended = True
            self._log.end(self, code, reason, error)


def _random_ids() -> list[str]:
    """Ids of calls. Many are drawn at once: each draw gives up the interpreter lock, and waits to get it back."""
    digits = secrets.token_hex(_IDS_AT_ONCE * _ID_DIGITS // 2)
    return [digits[at : at + _ID_DIGITS] for at in range(0, len(digits), _ID_DIGITS)]


class Counters(NamedTuple):
    """The metrics of one method: to look them up by labels for each call would take longer than to count."""

    started: Counter
    seconds: Histogram
    handled: Callable[[grpc.StatusCode], Counter]


@cache
def _counters(path: str, name: str, takes_stream: bool) -> Counters:  # to hash a Method would take longer than to count
    _, _, service = path.rpartition("/")[0].rpartition("/")
    labels = "client_stream" if takes_stream else "unary", service or "unknown", name
    metrics.HANDLED.labels(*labels, "Internal")  # from 0 on: an alert compares it with what it was
    return Counters(
        metrics.STARTED.labels(*labels),
        metrics.SECONDS.labels(*labels),
        cache(lambda code: metrics.HANDLED.labels(*labels, _name_of(code))),
    )


def _name_of(code: grpc.StatusCode) -> str:
    """As go-grpc-prometheus writes it: `NotFound`."""
    return "OK" if code is grpc.StatusCode.OK else "".join(map(str.capitalize, code.name.split("_")))


def _traceparent(metadata: Sequence[tuple[str, str | bytes]]) -> str | None:
    """What the caller sent as `traceparent`. `tracestate` and `baggage` may have any text: they are dropped."""
    value = dict(metadata).get("traceparent")
    return value if isinstance(value, str) else None


def _identity(principal: Principal | None) -> dict[str, object]:
    if isinstance(principal, SessionIdentity):
        # The agent's number as text: readers of JSON round what exceeds 2**53.
        return {"tenant": principal.tenant, "agent": str(principal.agent), "session_id": principal.session_id}
    return {"tenant": principal.tenant, "host_key_id": principal.host_key_id} if principal is not None else {}
