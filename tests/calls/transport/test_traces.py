"""Traces: a span for each call and its memory operation, which tell no more than the log does."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

from muniment_server.monitor.policy import Flow, policies
from muniment_server.telemetry import otlp
from muniment_server.telemetry.otlp import OpenTelemetryTracer
from muniment_server.transport.call_log import REQUEST_ID
from muniment_server.transport.server import SERVICES
from tests.support.answers import LEVELS, PUBLIC, RESTRICTED
from tests.support.canaries import break_everything, new_canary, use_everything
from tests.support.concurrency import in_background
from tests.support.log_lines import lines_of
from tests.support.methods import METHODS
from tests.support.services import Caller, failure_of, serving, set_gate

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAVE = "muniment.v1.MemoryService/SaveMemory"


@contextmanager
def traced(database, exporter, **options):
    """A server that exports to *exporter*, and its tracer."""
    tracer = OpenTelemetryTracer(exporter)
    try:
        with serving(database, tracer=tracer, **options) as service:
            yield service, tracer
    finally:
        tracer.stop()


class Traces:
    """What a server has exported."""

    def __init__(self, tracer, exporter):
        self._tracer, self._exporter = tracer, exporter

    def spans(self):
        """All spans, in the order in which they ended."""
        self._tracer._processor.force_flush()
        return self._exporter.get_finished_spans()

    def clear(self):
        self.spans()
        self._exporter.clear()

    def calls(self):
        return [span for span in self.spans() if span.kind is SpanKind.SERVER]

    def call(self):
        (span,) = self.calls()
        return span

    def below(self, parent):
        """The spans directly below another."""
        return [span for span in self.spans() if span.parent and span.parent.span_id == parent.context.span_id]


@pytest.fixture
def server(database):
    exporter = InMemorySpanExporter()
    with traced(database, exporter) as (service, tracer):
        yield service, Traces(tracer, exporter)


@pytest.fixture
def service(server):
    return server[0]


@pytest.fixture
def traces(server):
    return server[1]


def with_metadata(caller, *metadata):
    """The same caller, who also sends this."""
    same = Caller(caller.channel, caller.token, caller.session_id)
    same.metadata = (*caller.metadata, *metadata)
    return same


def names(spans):
    return [span.name for span in spans]


def everything(spans):
    """All that the collector gets of *spans*."""
    return str(encode_spans(spans)) + "".join(span.to_json() for span in spans)


def test_a_call_and_its_memory_operation_have_spans(service, traces):
    session = service.session(PUBLIC)
    traces.clear()

    session.save_memory(key="plan", content="ship")

    call = traces.call()
    (operation,) = traces.below(call)
    assert (call.name, operation.name) == (SAVE, "upsert_memory")
    assert (operation.kind, operation.attributes["gen_ai.operation.name"]) == (SpanKind.INTERNAL, "upsert_memory")
    assert len(traces.spans()) == 2


def test_a_call_outside_the_operations_of_memory_has_one_span(service, traces):
    host = service.host()
    service.agent()
    traces.clear()

    host.get_agent(agent_id="alice")

    assert names(traces.spans()) == ["muniment.v1.AgentService/GetAgent"]


def test_a_span_says_who_called_and_how_it_ended_as_the_log_does(service, traces, caplog):
    caplog.set_level(logging.INFO, logger="muniment.calls")
    session = service.session(PUBLIC)
    traces.clear()

    failure_of(session.get_memory, key="none")

    call = traces.call()
    line = lines_of(caplog, "refused")[-1]
    assert dict(call.attributes) == {
        "rpc.system.name": "grpc",
        "rpc.method": "muniment.v1.MemoryService/GetMemory",
        "rpc.response.status_code": "NOT_FOUND",
        "muniment.reason": "MEMORY_NOT_FOUND",
        "muniment.request_id": line["request_id"],
        "muniment.tenant": line["tenant"],
        "muniment.agent": line["agent"],
        "muniment.session_id": session.session_id,
    }
    assert line["trace_id"] == format_trace_id(call.context.trace_id)
    assert call.status.status_code is StatusCode.UNSET  # the caller's error, not the server's


def test_the_span_of_a_host_names_its_key(service, traces):
    host = service.host()
    traces.clear()

    host.list_agents()

    attributes = traces.call().attributes
    with service.database.as_owner() as owner:
        keys = owner.execute("SELECT host_key_id::text FROM vault.host_key").fetchall()
    assert [(attributes["muniment.host_key_id"],)] == keys
    assert "muniment.agent" not in attributes


def test_the_store_of_a_memory_operation_is_the_agent(service, traces):
    session = service.session(PUBLIC)
    traces.clear()

    failure_of(session.delete_memory, key="none")

    call = traces.call()
    (operation,) = traces.below(call)
    assert dict(operation.attributes) == {
        "gen_ai.operation.name": "delete_memory",
        "gen_ai.memory.store.id": f"{call.attributes['muniment.tenant']}/{call.attributes['muniment.agent']}",
        "error.type": "MEMORY_NOT_FOUND",
    }
    assert operation.status.status_code is StatusCode.ERROR


def test_a_fault_has_the_status_of_one(service, traces):
    session = service.session(PUBLIC)
    with service.database.as_owner() as owner:
        owner.execute("ALTER TABLE muniment_public.item ADD CONSTRAINT forced CHECK (content = '') NOT VALID")
    traces.clear()

    failure_of(session.save_memory, key="plan", content="ship")

    call = traces.call()
    assert (call.attributes["error.type"], call.status.status_code) == ("INTERNAL", StatusCode.ERROR)


def test_a_method_that_the_contract_lacks_is_not_named_by_its_caller(service, traces):
    session = service.session(PUBLIC)
    traces.clear()
    stub = session.channel.unary_unary("/muniment.v1.MemoryService/CANARY")

    with pytest.raises(grpc.RpcError):
        stub(b"", metadata=session.metadata, timeout=10)

    assert traces.call().name == "_OTHER"
    assert "CANARY" not in everything(traces.spans())


def test_the_memory_operations_of_the_contract_are_those_of_the_conventions():
    """Every write of a session is one. policies.txt says which."""
    operations = {method.name: method.declared.memory_operation for method in policies(SERVICES).values()}
    writes = {method.name for method in policies(SERVICES).values() if method.flow is Flow.WRITE}

    assert set(operations.values()) == {
        "", "create_memory_store", "delete_memory_store",
        "search_memory", "create_memory", "update_memory", "upsert_memory", "delete_memory",
    }  # fmt: skip
    assert {name for name in writes if not operations[name]} == set()


def test_a_call_continues_the_trace_of_its_caller(service, traces):
    session = with_metadata(service.session(PUBLIC), ("traceparent", f"00-{TRACE}-{PARENT}-01"))
    traces.clear()

    session.list_memories()

    call = traces.call()
    assert (format_trace_id(call.context.trace_id), format_span_id(call.parent.span_id)) == (TRACE, PARENT)
    assert {format_trace_id(span.context.trace_id) for span in traces.spans()} == {TRACE}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "CANARY",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-CANARY",
        f"00-{TRACE}-{PARENT}-01{'x' * 4000}",
    ],
)
def test_a_traceparent_that_is_malformed_is_ignored(service, traces, value):
    session = with_metadata(service.session(PUBLIC), ("traceparent", value))
    traces.clear()

    session.list_memories()

    call = traces.call()
    assert call.parent is None
    assert format_trace_id(call.context.trace_id) != TRACE
    assert "CANARY" not in everything(traces.spans())


def test_tracestate_and_baggage_are_dropped(service, traces):
    session = with_metadata(
        service.session(PUBLIC),
        ("traceparent", f"00-{TRACE}-{PARENT}-01"),
        ("tracestate", "vendor=CANARY"),
        ("baggage", "key=CANARY"),
    )
    traces.clear()

    session.list_memories()

    assert [dict(span.context.trace_state) for span in traces.spans()] == [{}] * len(traces.spans())
    assert "CANARY" not in everything(traces.spans())


@pytest.mark.parametrize(
    ("sampler", "argument", "flags", "is_exported"),
    [
        ("parentbased_always_on", "", "00", True),
        ("always_off", "", "01", False),
        ("parentbased_always_off", "", "01", False),
        ("parentbased_traceidratio", "0.0000000001", "01", False),
    ],
)
def test_only_the_server_decides_what_is_sampled(database, monkeypatch, caplog, sampler, argument, flags, is_exported):
    """Neither the caller's flag, nor a trace id that every ratio includes."""
    caplog.set_level(logging.INFO, logger="muniment.calls")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", argument)
    exporter = InMemorySpanExporter()
    with traced(database, exporter) as (service, tracer):
        session = with_metadata(service.session(PUBLIC), ("traceparent", f"00-{'1' * 16}{'0' * 15}1-{PARENT}-{flags}"))
        traces = Traces(tracer, exporter)
        traces.clear()
        failure_of(session.get_memory, key="none")

        assert (names(traces.calls()) != []) is is_exported
        assert bool(traces.spans()) is is_exported
        assert ("trace_id" in lines_of(caplog, "refused")[-1]) is is_exported


def test_calls_without_a_turn_have_no_span(service, traces):
    """Whoever is refused at the door cannot fill the queue of spans."""
    traces.clear()
    stranger = Caller(service.channel, "mun_s_guess")

    failure_of(stranger.list_memories)
    set_gate(service.server, is_open=False)
    failure_of(service.host().list_agents)

    assert traces.spans() == ()


def test_c62_no_span_shows_what_was_remembered(service, traces, monkeypatch):
    """Nor a token, a parameter, or the message of an error."""
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "1000")
    canary = new_canary()
    use_everything(service, canary)
    break_everything(service, canary)

    spans = traces.spans()
    shown = everything(spans)

    missing = sorted(set(METHODS) - {span.attributes["rpc.method"].rpartition("/")[2] for span in traces.calls()})
    assert missing == [], f"add calls of these, with the canary in each text, to tests/support/canaries.py: {missing}"
    assert [secret for secret in (canary, "mun_s_", "mun_h_", "SELECT", "forced") if secret in shown] == []
    assert [span.name for span in spans if span.events or span.links or span.status.description] == []


def test_c62_no_span_tells_a_level(service, traces):
    """The same calls have the same spans at every level, whether or not reads are audited there."""
    seen = []
    for level in LEVELS:
        session = service.session(level, agent_id=f"agent{int(level)}")
        traces.clear()
        session.save_memory(key="plan", content="ship")
        session.get_memory(key="plan")
        session.list_memories()
        session.add_note(content="note")
        session.render_prompt()
        seen.append([(span.name, sorted(span.attributes)) for span in traces.spans()])
        assert not any(one.name.lower() in everything(traces.spans()).lower() for one in (PUBLIC, RESTRICTED))

    assert seen == [seen[0]] * len(LEVELS)


class Stuck(SpanExporter):
    """A collector that does not answer."""

    def __init__(self):
        self.asked, self.answers = threading.Event(), threading.Event()

    def export(self, spans):
        self.asked.set()
        self.answers.wait()
        return SpanExportResult.SUCCESS


def test_a_collector_that_does_not_answer_holds_up_neither_calls_nor_the_end(database, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "20")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
    monkeypatch.setattr(otlp, "_FLUSH_SECONDS", 0.1)
    stuck = Stuck()
    try:
        with traced(database, stuck) as (service, tracer):
            session = service.session(PUBLIC)
            assert stuck.asked.wait(30)
            for number in range(20):
                session.save_memory(key=f"key{number}", content="text")
            assert len(tracer._processor._batch_processor._queue) <= 20
            end, _ = in_background(tracer.stop)
            end.join(15)  # OpenTelemetry's own limit is 30 seconds: the worker would have been killed
            assert not end.is_alive()
    finally:
        stuck.answers.set()


class Refusing(SpanExporter):
    """A collector that takes spans, or not."""

    result = SpanExportResult.FAILURE

    def export(self, spans):
        if self.result is SpanExportResult.FAILURE:
            raise RuntimeError("CANARY")
        return self.result


def test_the_log_says_once_that_the_collector_takes_no_spans_and_when_it_takes_them_again(database, caplog):
    caplog.set_level(logging.INFO)
    refusing = Refusing()
    with traced(database, refusing) as (service, tracer):
        session = service.session(PUBLIC)
        for result in (SpanExportResult.FAILURE, SpanExportResult.FAILURE, SpanExportResult.SUCCESS):
            refusing.result = result
            session.list_memories()
            tracer._processor.force_flush()

    said = [(line["level"], line["message"].split(":")[0]) for line in lines_of(caplog) if "spans" in line["message"]]
    assert said == [("WARNING", "spans are lost"), ("INFO", "the collector takes spans again")]
    assert "CANARY" not in caplog.text


def test_the_request_id_of_a_span_is_that_which_the_caller_gets(service, traces):
    session = service.session(PUBLIC)
    traces.clear()
    stub = session.channel.unary_unary("/muniment.v1.MemoryService/ListMemories")

    _, call = stub.with_call(b"", metadata=session.metadata, timeout=10)

    assert dict(call.trailing_metadata())[REQUEST_ID] == traces.call().attributes["muniment.request_id"]
