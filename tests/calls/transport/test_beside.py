"""What is served beside the contract: health and reflection."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import grpc
import psycopg
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from muniment_server.runtime import readiness
from muniment_server.runtime.readiness import Readiness
from muniment_server.transport.admission import admission
from muniment_server.transport.admission.pools import Limits
from muniment_server.transport.server import SERVICES
from tests.support.answers import PUBLIC
from tests.support.commands import wait_until
from tests.support.concurrency import in_background, locked
from tests.support.services import failure, failure_of, pools_of, reason_of, serving, set_gate, shares_of

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
CHECK = "/grpc.health.v1.Health/Check"
REFLECTIONS = {"grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}
REFLECT = [f"/{service}/ServerReflectionInfo" for service in sorted(REFLECTIONS)]
OURS = {service.full_name for service in SERVICES}


@pytest.fixture
def closed(database):
    """A server whose reflection is for hosts."""
    with serving(database, open_reflection=False) as served:
        yield served


def health(service, name=""):
    stub: Any = health_pb2_grpc.HealthStub(service.channel)
    return stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=20).status


def ask(channel, metadata=None, **question):
    """One question to reflection; its one answer."""
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(**question)
    (answer,) = stub.ServerReflectionInfo(iter([request]), metadata=metadata, timeout=20)
    return answer


def refused(channel, metadata=None):
    with pytest.raises(grpc.RpcError) as caught:
        ask(channel, metadata, list_services="")
    return caught.value


def refusal(call):
    """The code of the error that *call* raises."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code()


@pytest.mark.parametrize("name", ["", *sorted(OURS)])
def test_c53_health_needs_no_credentials(shared, name):
    assert health(shared, name) == SERVING


def test_health_follows_the_gate(service):
    set_gate(service.server, is_open=False)
    closed = {health(service, name) for name in ("", *OURS)}
    set_gate(service.server, is_open=True)

    assert (closed, health(service)) == ({NOT_SERVING}, SERVING)


def test_a_server_behind_a_closed_gate_is_alive_and_not_ready(service):
    set_gate(service.server, is_open=False)

    assert (health(service, "liveness"), health(service, "readiness")) == (SERVING, NOT_SERVING)


def test_a_server_whose_calls_make_no_progress_is_not_ready(database, monkeypatch):
    """A statement that hangs holds its thread; what waits behind it is not served."""
    monkeypatch.setattr(admission, "_STUCK_SECONDS", 0.2)
    with serving(database, limits=Limits(threads=1)) as service:
        session = service.session(PUBLIC)
        assert not service.server.is_stuck
        with locked(service, session):
            running, _ = in_background(session.save_memory, key="plan", content="x")
            waiting, _ = in_background(session.save_memory, key="plan", content="y")
            wait_until(lambda: service.server.is_stuck, "no call makes progress")
        running.join(20)
        waiting.join(20)

        assert not service.server.is_stuck


def test_a_fault_does_not_end_the_question_whether_the_database_answers(monkeypatch):
    """Otherwise a worker would not be ready again until it is restarted."""
    monkeypatch.setattr(readiness, "_INTERVAL", 0.0)
    failures, answered = [psycopg.errors.InsufficientPrivilege()], threading.Event()

    def log_in(*_):
        if failures:
            raise failures.pop()
        answered.set()
        threading.Event().wait()

    server: Any = None
    databases: Any = [SimpleNamespace(name="", database=SimpleNamespace(log_in=log_in))]
    Readiness(server, databases).start()

    assert answered.wait(60)


def test_health_answers_under_overload(shared, monkeypatch):
    """Otherwise a busy server would be taken for a dead one."""
    monkeypatch.setattr(pools_of(shared).calls.shares, "_most", [0, 0, 0, 0])

    assert health(shared) == SERVING


@pytest.mark.parametrize("full", ["calls", "long", "streams", "hosts"])
def test_a_full_pool_refuses_its_own_calls_only(service, monkeypatch, full):
    """Queued renders, or idle streams, once had every call of a worker refused."""
    session, host = service.session(PUBLIC), service.host()
    session.save_memory(key="plan", content="whale")
    calls = {
        "calls": lambda: session.get_memory(key="plan"),
        "long": lambda: session.search_memories(query="whale"),
        "streams": lambda: session.import_passages({"content": "x"}),
        "hosts": lambda: host.list_agents(),
    }
    monkeypatch.setattr(shares_of(service, full), "_most", [0, 0, 0, 0])

    refused = calls.pop(full)
    assert reason_of(failure_of(refused)) == "OVERLOADED"
    for call in calls.values():
        call()


def test_health_is_not_watched(shared):
    """Whoever watched and did not read once stopped the checks of all others. Clients then stop watching."""
    stub: Any = health_pb2_grpc.HealthStub(shared.channel)
    with pytest.raises(grpc.RpcError) as raised:
        next(stub.Watch(health_pb2.HealthCheckRequest(), timeout=20))

    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("served", ["shared", "closed"])
@pytest.mark.parametrize("path", [CHECK, *REFLECT])
@pytest.mark.parametrize("content", [b"\x0a\x05a", b"\x0a\x01\xff", b"\xff"], ids=["cut off", "no UTF-8", "noise"])
def test_what_is_no_message_is_refused_like_any_other_and_leaves_no_traceback(request, caplog, served, path, content):
    """If grpc parses it: INTERNAL or UNKNOWN, with the parser's text, and a traceback in the log for each call."""
    service = request.getfixturevalue(served)
    stub: Any = service.channel.stream_stream(path)

    with pytest.raises(grpc.RpcError) as caught:
        list(stub(iter([content]), metadata=service.host().metadata, timeout=20))

    refusal = failure(caught.value)
    assert (refusal.code.name, reason_of(refusal)) == ("INVALID_ARGUMENT", "FIELD_INVALID")
    assert "grpc" not in {line.name.partition(".")[0] for line in caplog.records}


def test_reflection_in_development_is_open_to_all(shared):
    listed = {service.name for service in ask(shared.channel, list_services="").list_services_response.service}

    assert listed == OURS | REFLECTIONS | {"grpc.health.v1.Health"}


def test_c53_closed_reflection_is_for_hosts(closed):
    answer = ask(closed.channel, closed.host().metadata, list_services="")

    assert {service.name for service in answer.list_services_response.service} >= OURS


def test_c53_closed_reflection_shows_nothing_without_a_credential(closed):
    assert refused(closed.channel).code() is grpc.StatusCode.UNAUTHENTICATED


def test_c53_closed_reflection_is_not_for_wrong_credentials_and_sessions(closed):
    """With a credential that is none: one UNAUTHENTICATED. As a session: not for this kind of caller."""
    session = closed.session(PUBLIC)
    unknown = session.token[:-9].replace("_s_", "_h_")
    errors = [refused(closed.channel, (("authorization", f"Bearer {token}"),)) for token in ("x", unknown)]
    answers = {failure(error) for error in errors}

    assert len(answers) == 1
    assert errors[0].code() is grpc.StatusCode.UNAUTHENTICATED
    assert refused(closed.channel, session.metadata).code() is grpc.StatusCode.PERMISSION_DENIED


def test_c53_reflection_of_one_tenant_leaves_places_to_others_and_sessions_learn_nothing(closed):
    """Two of a tenant at once. A session is refused in its own turn, whoever reflects."""
    host, session = closed.host("acme"), closed.session(PUBLIC)
    with reflecting(closed.channel, host.metadata, count=2):
        assert refused(closed.channel, host.metadata).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert refused(closed.channel, session.metadata).code() is grpc.StatusCode.PERMISSION_DENIED
        assert ask(closed.channel, closed.host("beta").metadata, list_services="").list_services_response.service


@contextmanager
def reflecting(channel, metadata, *, count):
    """So many reflections that stay open."""
    over = threading.Event()
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)

    def questions():
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        over.wait(60)

    calls = [stub.ServerReflectionInfo(questions(), metadata=metadata, timeout=60) for _ in range(count)]
    for call in calls:
        next(call)
    yield
    over.set()
    for call in calls:
        call.cancel()


@pytest.mark.parametrize("caller", ["host", "session"])
def test_c50_a_fault_under_closed_reflection_says_no_word_of_the_driver(closed, caller):
    metadata = closed.host().metadata if caller == "host" else closed.session(PUBLIC).metadata
    with closed.database.as_owner() as owner:
        owner.execute("REVOKE SELECT ON vault.host_key, muniment_control.session FROM muniment_control")

    error = refused(closed.channel, metadata)

    assert "permission" not in str(error.details())
    assert "host_key" not in str(error.details())
    assert error.code() is not grpc.StatusCode.UNKNOWN


def test_closed_reflection_is_unavailable_while_the_database_is_unreachable(closed):
    host = closed.host()
    host.list_agents()
    closed.scopes.databases.close()

    assert refused(closed.channel, host.metadata).code() is grpc.StatusCode.UNAVAILABLE
