"""`muniment serve --traces`, with a collector that speaks OTLP."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

import muniment
from muniment import Classification
from muniment_server.runtime import configuration
from tests.operations.release import packages
from tests.support.commands import run

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
OWN = ("--data-dir", ".muniment", "--dev", "--workers", "1")


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Takes spans, as OpenTelemetry's collector does."""

    def __init__(self):
        self.requests = []
        self.endpoint = ""

    def Export(self, request, context):
        self.requests.append(request)
        return trace_service_pb2.ExportTraceServiceResponse()

    def resources(self):
        return [one for request in self.requests for one in request.resource_spans]

    def spans(self):
        return [span for one in self.resources() for scope in one.scope_spans for span in scope.spans]


@pytest.fixture
def collector():
    collects = Collector()
    server = grpc.server(ThreadPoolExecutor(1))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collects, server)
    collects.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield collects
    server.stop(0).wait()


class Instrumented(grpc.UnaryUnaryClientInterceptor):
    """Sends a traceparent with each call, as OpenTelemetry's instrumentation of gRPC does in a caller."""

    def intercept_unary_unary(self, continuation, details, request):
        details = details._replace(metadata=(*details.metadata, ("traceparent", f"00-{TRACE}-{PARENT}-01")))
        return continuation(details, request)


@contextmanager
def connected(server, monkeypatch):
    """A host's client in a program that is instrumented."""
    open_channel = grpc.insecure_channel
    monkeypatch.setattr(
        grpc, "insecure_channel", lambda *arguments: grpc.intercept_channel(open_channel(*arguments), Instrumented())
    )
    key = json.loads((server.folder / ".muniment" / "development.json").read_text())["host_key"]
    with muniment.connect(server.address, host_key=key) as host:
        yield host


def attributes_of(one):
    return {pair.key: pair.value.string_value or pair.value.int_value for pair in one.attributes}


def test_a_collector_gets_the_trace_that_the_caller_began(serving, data_dir, collector, monkeypatch):
    """The last spans arrive when the server stops, however long a batch may wait."""
    server = serving(
        *OWN,
        "--traces",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint,
        OTEL_BSP_SCHEDULE_DELAY="3600000",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
    )
    server.read_to_the_last_line()
    with connected(server, monkeypatch) as host:
        host.create_agent("ada")
        session = host.open_session("ada", Classification.PUBLIC)
        session.save_memory("plan", "ship on Friday")
        assert session.get_memory("plan").content == "ship on Friday"

    assert server.stop() == 0

    spans = {span.name: span for span in collector.spans()}
    save = spans["muniment.v1.MemoryService/SaveMemory"]
    assert {span.trace_id.hex() for span in collector.spans()} == {TRACE}
    assert save.parent_span_id.hex() == PARENT
    assert spans["upsert_memory"].parent_span_id == save.span_id
    assert {"create_memory_store", "muniment.v1.MemoryService/GetMemory"} <= spans.keys()
    (resource, *_) = (attributes_of(one.resource) for one in collector.resources())
    assert resource["service.name"] == "muniment"
    assert resource["deployment.environment.name"] == "test"
    assert "Friday" not in str(collector.requests)


def test_a_collector_that_is_away_holds_up_neither_calls_nor_the_end(serving, data_dir, monkeypatch):
    server = serving(*OWN, "--traces", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1", OTEL_BSP_SCHEDULE_DELAY="1")
    server.read_to_the_last_line()
    with connected(server, monkeypatch) as host:
        host.create_agent("ada")

    assert server.stop() == 0
    assert "opentelemetry" not in server.errors.read_text()


def test_without_the_extra_it_says_what_to_install(folder, monkeypatch):
    monkeypatch.setattr(configuration, "_exporter_is_installed", lambda: False)

    done = run(folder, "serve", "--traces")

    assert done.returncode != 0
    assert "in a checkout of Muniment, pip install ./clients/python '.[semantic,tracing]'" in done.stderr
    assert f"pip install 'dist/{packages.SERVER_WHEEL.path}[semantic,tracing]'" in done.stderr


def test_another_protocol_is_refused(folder):
    done = run(folder, "serve", "--traces", OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf")

    assert done.returncode != 0
    assert "by gRPC, not http/protobuf" in done.stderr


@pytest.mark.proof
def test_without_the_option_nothing_of_opentelemetry_is_loaded():
    loaded = "import muniment_server.runtime.worker, sys; print([one for one in sys.modules if 'telemetry' in one])"

    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)

    assert "muniment_server.telemetry" in done.stdout
    assert "opentelemetry" not in done.stdout
