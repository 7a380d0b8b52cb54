"""Traces by OpenTelemetry, exported by OTLP. Only a worker with `--traces` loads this module (extra `tracing`).

The standard variables of OpenTelemetry say where spans are sent, how many are sampled, and how many wait. Names follow
its semantic conventions 1.45: RPC, and the memory spans of those for generative AI. A span never has the message of an
exception.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import metadata

from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision
from opentelemetry.trace import Span, SpanKind, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace import Tracer as SpanTracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from muniment_server.telemetry.traces import CallTrace

_LOG = logging.getLogger("muniment.traces")
_SERVICE = "muniment"
_OTHER_METHOD = "_OTHER"
"""Stands for a method that the contract does not have. The caller chose its name."""
_FLUSH_SECONDS = 3.0
"""How long a worker that stops exports spans. The supervisor kills it after five."""
_SERVER_ERRORS = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"})
"""The codes with which the span of a server's call has the status ERROR. Others are the caller's errors."""
_PROPAGATOR = TraceContextTextMapPropagator()


class OpenTelemetryTracer:
    """Makes and exports the traces of this process.

    The server alone decides what is sampled: a caller's sampled flag has no say, nor has the trace id that it chose.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._sampler = TracerProvider(shutdown_on_exit=False).sampler  # as OTEL_TRACES_SAMPLER says
        self._ids = RandomIdGenerator()
        self._exporter = _LoggedExporter(exporter)
        self._processor = BatchSpanProcessor(self._exporter)
        provider = TracerProvider(sampler=ALWAYS_ON, resource=_resource(), shutdown_on_exit=False)
        provider.add_span_processor(self._processor)
        self._tracer = provider.get_tracer(_SERVICE)
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)  # it logs what the collector answers

    def begin(
        self,
        path: str,
        name: str,
        traceparent: str | None,
        *,
        operation: str,
        seconds: float,
        fields: Mapping[str, object],
    ) -> CallTrace | None:
        """See `traces.Tracer`."""
        chance = self._ids.generate_trace_id()
        if self._sampler.should_sample(None, chance, name, SpanKind.SERVER).decision is not Decision.RECORD_AND_SAMPLE:
            return None
        method = path.removeprefix("/") or _OTHER_METHOD
        call = self._tracer.start_span(
            method,
            _context_of(traceparent),
            SpanKind.SERVER,
            {"rpc.system.name": "grpc", "rpc.method": method, **_attributes(fields)},
            start_time=time.time_ns() - int(seconds * 1e9),
        )
        return _CallTrace(self._tracer, call, operation, _store(fields))

    def stop(self) -> None:
        """See `traces.Tracer`. What a slow collector has not taken by then is lost."""
        flush = threading.Thread(target=self._processor.shutdown, daemon=True)
        flush.start()
        flush.join(_FLUSH_SECONDS)
        self._exporter.shutdown()


class _CallTrace:
    """The span of a call, and within it that of its memory operation."""

    __slots__ = ("_call", "_operation")

    def __init__(self, tracer: SpanTracer, call: Span, operation: str, store: str | None) -> None:
        self._call = call
        self._operation: Span | None = None
        if operation:
            attributes = {"gen_ai.operation.name": operation}
            if store is not None:
                attributes["gen_ai.memory.store.id"] = store
            context = set_span_in_context(call, Context())
            self._operation = tracer.start_span(operation, context, SpanKind.INTERNAL, attributes)

    @property
    def trace_id(self) -> str:
        return format_trace_id(self._call.get_span_context().trace_id)

    def end(self, code: str, reason: str) -> None:
        if self._operation is not None:
            if reason:
                _fail(self._operation, reason)
            self._operation.end()
        self._call.set_attribute("rpc.response.status_code", code)
        if reason:
            self._call.set_attribute("muniment.reason", reason)
        if code in _SERVER_ERRORS:
            _fail(self._call, code)
        self._call.end()


class _LoggedExporter(SpanExporter):
    """Logs when the collector takes no spans, and when it takes them again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            self._log(is_failing=result is not SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def _log(self, *, is_failing: bool) -> None:
        if is_failing and not self._is_failing:
            _LOG.warning(
                "spans are lost: the collector does not take them. Check it, and the OTEL_EXPORTER_OTLP_ variables"
            )
        if self._is_failing and not is_failing:
            _LOG.info("the collector takes spans again")
        self._is_failing = is_failing


def _context_of(traceparent: str | None) -> Context:
    """The caller's span as the parent; none if *traceparent* is not of the form that W3C Trace Context prescribes."""
    if traceparent is None:
        return Context()
    return _PROPAGATOR.extract({"traceparent": [traceparent]}, Context())


def _attributes(fields: Mapping[str, object]) -> dict[str, int | str]:
    """The *fields* of a line in the log, as attributes of a span."""
    return {f"muniment.{field}": value if isinstance(value, int) else str(value) for field, value in fields.items()}


def _store(fields: Mapping[str, object]) -> str | None:
    """The memory store: the agent of a session, by the numbers of its tenant and itself."""
    return f"{fields['tenant']}/{fields['agent']}" if "agent" in fields else None


def _fail(span: Span, error_type: str) -> None:
    span.set_attribute("error.type", error_type)
    span.set_status(StatusCode.ERROR)


def _resource() -> Resource:
    """What all spans of this process have in common. Standard variables may name the service and add attributes."""
    chosen = OTELResourceDetector().detect().attributes.get(SERVICE_NAME, _SERVICE)
    version = metadata.version("muniment-server")
    return Resource.create({SERVICE_NAME: chosen, "service.version": version, "process.pid": os.getpid()})
