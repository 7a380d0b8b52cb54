"""What is kept of each call: a line in the log, metrics, and an id that the caller gets too."""

from __future__ import annotations

import gc
import logging
import os
import re
from typing import Any

import grpc
import pytest

from muniment_server.domain.errors import Unavailable
from muniment_server.monitor.scopes import Scopes
from muniment_server.telemetry import worker_metrics
from muniment_server.telemetry.metrics import OTHERS, REGISTRY
from muniment_server.telemetry.repeats import Repeats
from muniment_server.transport import server
from muniment_server.transport.admission.pools import Limits
from muniment_server.transport.call_log import REQUEST_ID, CallLog
from muniment_server.transport.dispatch import Dispatcher
from muniment_server.transport.incoming import Incoming
from muniment_server.transport.reflection import REFLECT
from tests.support.answers import PUBLIC, refusal
from tests.support.commands import wait_until
from tests.support.concurrency import in_background, locked, wait_until_blocked
from tests.support.log_lines import lines_of, text_of
from tests.support.services import serving

_CALLS = "muniment.calls"


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, logger=_CALLS)
    return caplog


def counted(name, **labels) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def handled(method, code) -> float:
    return counted(
        "grpc_server_handled_total",
        grpc_type="unary",
        grpc_service="muniment.v1.MemoryService",
        grpc_method=method,
        grpc_code=code,
    )


def request_id_of(caller, rpc, request: bytes = b"") -> str:
    """The id that the caller gets, whether the call succeeds or not."""
    stub = caller.channel.unary_unary(rpc)
    call = stub.future(request, metadata=caller.metadata, timeout=10)
    return str(dict(call.trailing_metadata())[REQUEST_ID])


def test_a_refusal_has_a_line_that_says_who_what_and_why(service, log):
    session = service.session(PUBLIC)
    log.clear()

    refusal(session.get_memory, key="CANARY")

    (line,) = lines_of(log, "refused")
    assert line["method"] == "GetMemory"
    assert (line["code"], line["reason"]) == ("NOT_FOUND", "MEMORY_NOT_FOUND")
    assert line["session_id"] == session.session_id
    assert line["peer"].startswith("ipv4:127.0.0.1:")
    assert line.keys() >= {"time", "level", "process", "pid", "tenant", "agent", "ms", "request_id"}
    assert "CANARY" not in str(line)


def test_a_call_of_a_host_names_its_key(service, log):
    host = service.host()
    log.clear()

    refusal(host.get_agent, agent_id="nobody")

    (line,) = lines_of(log, "refused")
    with service.database.as_owner() as owner:
        assert owner.execute("SELECT host_key_id::text FROM vault.host_key").fetchall() == [(line["host_key_id"],)]


def test_repeated_refusals_are_summed_up(service, log):
    session = service.session(PUBLIC)
    log.clear()
    for _ in range(20):
        refusal(session.get_memory, key="none")

    assert len(lines_of(log, "refused")) == 1
    later = service.server._admission.calls._repeats
    later._clock = lambda clock=later._clock: clock() + 11.0
    service.server.measure()
    (line,) = lines_of(log, "refused again")
    assert (line["times"], line["reason"], line["session_id"]) == (19, "MEMORY_NOT_FOUND", session.session_id)


def test_a_fault_is_in_the_log_each_time(service, log, monkeypatch):
    """Its caller gets its id."""
    session = service.session(PUBLIC)
    log.clear()

    def fails(*_):
        raise RuntimeError

    monkeypatch.setattr(Scopes, "of_session", fails)
    ids = [request_id_of(session, "/muniment.v1.MemoryService/ListMemories") for _ in range(2)]

    assert [line["request_id"] for line in lines_of(log, "fault")] == ids


def test_calls_without_a_credential_are_summed_up_whatever_they_say(service, log):
    log.clear()
    for number in range(20):
        stub = service.channel.unary_unary("/muniment.v1.MemoryService/GetMemory")
        with pytest.raises(grpc.RpcError):
            stub(b"", metadata=(("authorization", f"Bearer {number}"),), timeout=10)

    assert [line["code"] for line in lines_of(log, "refused")] == ["UNAUTHENTICATED"]


def test_a_call_that_succeeds_has_a_line_only_if_all_have(database, log):
    with serving(database, logs_all_calls=True) as service:
        service.session(PUBLIC).save_memory(key="CANARY", content="CANARY")

    lines = lines_of(log, "served")
    assert [line["method"] for line in lines] == ["CreateAgent", "OpenSession", "SaveMemory"]
    assert "CANARY" not in str(lines)
    log.clear()
    with serving(database) as service:
        service.session(PUBLIC).save_memory(key="k", content="text")
    assert lines_of(log, "served") == []


def test_the_failure_of_the_database_behind_a_refusal_is_named(service, log):
    """Here it is canceled, which is SQLSTATE 57014. Nothing else of the statement is logged."""
    session = service.session(PUBLIC)
    session.save_memory(key="k", content="text")
    log.clear()

    with locked(service, session):
        # In three seconds it reaches the lock on a busy machine, too; after five, the lock itself would be given up.
        thread, _ = in_background(session.save_memory, key="k", content="CANARY", timeout=3)
        wait_until(lambda: lines_of(log, "refused"), "the refusal is logged")
    thread.join(20)

    assert [(line["code"], line["cause"]) for line in lines_of(log, "refused")] == [("DEADLINE_EXCEEDED", "57014")]
    assert "CANARY" not in text_of(log)


def test_callers_learn_the_id_under_which_their_call_is_in_the_log(service, log):
    session = service.session(PUBLIC)
    log.clear()

    of_failure = request_id_of(session, "/muniment.v1.MemoryService/GetMemory")
    of_success = request_id_of(session, "/muniment.v1.MemoryService/ListMemories")

    assert [line["request_id"] for line in lines_of(log, "refused")] == [of_failure]
    assert of_failure != of_success
    assert re.fullmatch("[0-9a-f]{24}", of_success)


@pytest.mark.parametrize("outcome", ["answered", "refused"])
def test_calls_are_freed_without_a_garbage_collection(service, outcome):
    """With a call goes what grpc holds for it. Left for the collections, it took 7 % of the CPU of a read."""
    session = service.session(PUBLIC)
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            if outcome == "answered":
                session.list_memories()
            else:
                refusal(session.get_memory, key="no-such-key")
        left = sum(isinstance(one, Incoming) for one in gc.get_objects())
    finally:
        gc.enable()

    assert left < 10  # each thread keeps its last one


def test_ids_are_cut_from_blocks_of_the_operating_systems_random_source(monkeypatch):
    """One that counted would tell each caller how many others call."""
    drawn: list[str] = []

    def token_hex(count: int) -> str:
        drawn.append(os.urandom(count).hex())
        return drawn[-1]

    monkeypatch.setattr("muniment_server.transport.call_log.secrets.token_hex", token_hex)
    log = CallLog(logs_all=False)
    ids = [log.begin(REFLECT, lambda: "").request_id for _ in range(512)]

    assert len(drawn) == 2
    assert sorted(ids) == sorted(block[at : at + 24] for block in drawn for at in range(0, len(block), 24))


def test_calls_are_counted_by_method_and_code(service):
    session = service.session(PUBLIC)
    before = [handled("GetMemory", code) for code in ("OK", "NotFound")]
    refused = counted(
        "muniment_calls_refused_total", grpc_method="GetMemory", grpc_code="NOT_FOUND", reason="MEMORY_NOT_FOUND"
    )
    session.save_memory(key="k", content="text")

    session.get_memory(key="k")
    refusal(session.get_memory, key="none")

    assert [handled("GetMemory", code) for code in ("OK", "NotFound")] == [before[0] + 1, before[1] + 1]
    assert refused + 1 == counted(
        "muniment_calls_refused_total", grpc_method="GetMemory", grpc_code="NOT_FOUND", reason="MEMORY_NOT_FOUND"
    )


def test_methods_that_do_not_exist_share_a_label(service):
    session = service.session(PUBLIC)
    for number in range(3):
        with pytest.raises(grpc.RpcError):
            session.channel.unary_unary(f"/muniment.v1.Nothing/M{number}")(b"", metadata=session.metadata, timeout=10)

    labels = {
        sample.labels["grpc_method"]
        for family in REGISTRY.collect()
        for sample in family.samples
        if "grpc_method" in sample.labels
    }
    assert "Unknown" in labels
    assert [label for label in labels if re.fullmatch(r"M\d", label)] == []


def test_methods_that_do_not_exist_take_no_memory(database, monkeypatch):
    made = []

    def dispatcher(*arguments, **named):
        made.append(Dispatcher(*arguments, **named))
        return made[-1]

    monkeypatch.setattr(server, "Dispatcher", dispatcher)
    with serving(database) as service:
        session = service.session(PUBLIC)
        known = len(made[0]._handlers)
        for number in range(3):
            stub: Any = session.channel.unary_unary(f"/muniment.v1.Nothing/M{number}")
            with pytest.raises(grpc.RpcError):
                stub(b"", metadata=session.metadata, timeout=10)

    assert len(made[0]._handlers) == known


def test_the_calls_of_a_tenant_are_counted_together(service, monkeypatch):
    monkeypatch.setattr(worker_metrics, "_calls_of_tenants", {})
    sessions = [service.session(PUBLIC, agent_id=agent_id) for agent_id in ("alice", "bob")]
    tenant = sessions[0].token.split("_")[2]
    before = counted("muniment_tenant_calls_total", tenant=tenant)

    for session in sessions:
        session.list_memories()

    assert counted("muniment_tenant_calls_total", tenant=tenant) == before + 2


def test_a_call_that_is_refused_before_it_runs_is_counted_once(database, log):
    with serving(database, limits=Limits(threads=1, max_in_flight=3)) as service:
        session = service.session(PUBLIC)
        session.save_memory(key="k", content="text")
        before = handled("SaveMemory", "ResourceExhausted")
        with locked(service, session):
            waiting, outcomes = in_background(session.save_memory, key="k", content="text")
            wait_until_blocked(service)
            assert refusal(session.save_memory, key="k", content="text") == "RESOURCE_EXHAUSTED OVERLOADED"
        waiting.join(20)
        assert outcomes

    assert handled("SaveMemory", "ResourceExhausted") == before + 1


def test_a_call_that_ends_twice_is_counted_once():
    """As one that was refused, once its refusal has been sent."""
    record = CallLog(logs_all=False).begin(REFLECT, lambda: "")
    labels = {"grpc_type": "unary", "grpc_service": "unknown", "grpc_method": REFLECT.name}
    before = counted("grpc_server_handled_total", grpc_code="Unavailable", **labels)

    record.failed(Unavailable())
    record.ended(grpc.StatusCode.UNAVAILABLE)

    assert counted("grpc_server_handled_total", grpc_code="Unavailable", **labels) == before + 1


def test_an_outage_is_logged_as_what_it_is(service, log, monkeypatch):
    """A look-up of tokens that fails refuses its calls on another thread than theirs."""
    session = service.session(PUBLIC)
    new = service.session(PUBLIC)
    log.clear()

    def fails(*_):
        error = Unavailable()
        error.cause = "57P01"
        raise error

    monkeypatch.setattr(Scopes, "find_holders", fails)
    service.server._admission._credentials._holders.clear()
    refusal(new.list_memories)

    assert session.session_id
    assert [(line["code"], line["cause"]) for line in lines_of(log, "refused")] == [("UNAVAILABLE", "57P01")]


def test_events_without_room_are_summed_up_together():
    repeats = Repeats(clock=lambda: now[0])
    now = [0.0]

    assert [repeats.is_first((("caller", number),)) for number in range(1200)].count(True) == 1000
    now[0] = 11.0
    assert list(repeats.ended()) == [((), 200)]
    assert repeats.is_first((("caller", 1),))


def test_only_a_thousand_tenants_have_labels_of_their_own(monkeypatch):
    monkeypatch.setattr(worker_metrics, "_calls_of_tenants", {})

    counters = {id(worker_metrics.calls_of_tenant(number)) for number in range(2000)}

    assert len(counters) == 1001
    assert worker_metrics.calls_of_tenant(2000) is worker_metrics.CALLS_OF_TENANT.labels(OTHERS)
