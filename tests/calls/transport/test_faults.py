"""Overload, deadlines, faults: what a caller hears, and that the server is as before afterwards."""

from __future__ import annotations

import re

import grpc
import psycopg
import pytest
from google.rpc import error_details_pb2

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import Conflict
from muniment_server.items import item_store
from muniment_server.postgres import pool
from muniment_server.transport.admission.pools import Limits
from tests.support.answers import CONFIDENTIAL, PUBLIC, detail, fields_of, in_future, invalid, refusal
from tests.support.commands import wait_until
from tests.support.concurrency import in_background, locked, wait_until_blocked
from tests.support.log_lines import text_of
from tests.support.services import failure_of, in_flight, reason_of, serving, set_gate

DRIVER_WORDS = re.compile(
    r"(?i:permission|relation|denied|psycopg|column|constraint|SELECT|muniment_|item)|[a-z]Error\b"
)


@pytest.fixture
def small(database):
    """A server with one thread, which takes two calls of one session."""
    with serving(database, limits=Limits(threads=1, max_in_flight=24)) as served:
        yield served


def test_c85_overload_is_refused_at_once_with_when_to_retry(small):
    session = small.session(PUBLIC)
    with locked(small, session):
        running, done = in_background(session.save_memory, key="one", content="text")
        wait_until_blocked(small)
        waiting, done_too = in_background(session.list_memories)
        wait_until(lambda: in_flight(small) == 2, "two calls are in flight")
        refused = failure_of(session.list_memories)
    running.join(20)
    waiting.join(20)

    assert refused.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert detail(refused, error_details_pb2.RetryInfo).retry_delay.nanos == 100_000_000
    assert done[0].memory.key == "one"
    assert [memory.key for memory in done_too[0].memories] == ["one"]


def test_after_overload_the_server_keeps_serving(small):
    session = small.session(PUBLIC)
    with locked(small, session):
        running, _ = in_background(session.save_memory, key="one", content="text")
        wait_until_blocked(small)
    running.join(20)

    assert [session.list_memories().memories[0].key for _ in range(5)] == ["one"] * 5


def test_a_deadline_cancels_the_statement_and_frees_the_thread(small):
    session = small.session(PUBLIC)
    session.save_memory(key="plan", content="before")
    with locked(small, session):
        outcome = failure_of(session.save_memory, key="plan", content="after", timeout=0.3)
        assert outcome.code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert session.get_memory(key="plan").memory.content == "before"  # on the only thread
        with small.database.as_admin() as admin:
            assert not admin.execute(
                "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ).fetchall()

    assert session.get_memory(key="plan").memory.content == "before"


def test_a_caller_who_disconnects_cancels_the_statement(small):
    session = small.session(PUBLIC)
    with locked(small, session):
        stub = session.channel.unary_unary("/muniment.v1.MemoryService/SaveMemory")
        call = stub.future(b"\x0a\x04plan\x12\x04text", metadata=session.metadata, timeout=20)
        wait_until_blocked(small)
        call.cancel()
        assert list(session.list_memories().memories) == []  # on the only thread, while the lock is held

    assert refusal(session.get_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"


def test_a_call_that_waits_too_long_for_a_lock_is_unavailable(database, monkeypatch):
    """The connection's own limit: no session waits for ever."""
    monkeypatch.setattr(pool, "SETTINGS", {**pool.SETTINGS, "lock_timeout": "50ms"})
    with serving(database) as service:
        session = service.session(PUBLIC)
        with locked(service, session):
            assert refusal(session.save_memory, key="plan", content="text") == "UNAVAILABLE UNAVAILABLE"


def test_a_closed_gate_lets_nothing_pass(service):
    """Not even who is calling is looked at."""
    session, host = service.session(PUBLIC), service.host()
    set_gate(service.server, is_open=False)

    for caller, rpc in ((session, "ListMemories"), (host, "ListAgents"), (session, "GetMemory")):
        outcome = caller.observe(rpc)
        assert (outcome.code.name, reason_of(outcome)) == ("UNAVAILABLE", "UNAVAILABLE")


def test_a_gate_that_opens_again_serves_as_before(service):
    session = service.session(PUBLIC)
    set_gate(service.server, is_open=False)
    set_gate(service.server, is_open=True)

    assert list(session.list_memories().memories) == []


@pytest.fixture
def away(service, postgres):
    """Takes the database of `service` away, until the end of the test."""
    name = service.database.name
    with psycopg.connect(postgres.conninfo(user="postgres", dbname="postgres"), autocommit=True) as admin:

        def take() -> None:
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])

        def give_back() -> None:
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true".encode())

        yield take, give_back
        give_back()


def test_calls_after_a_lost_database_are_unavailable(service, away):
    session = service.session(PUBLIC)
    session.list_memories()
    take, _ = away
    take()

    assert refusal(session.list_memories) == "UNAVAILABLE UNAVAILABLE"


def test_calls_while_the_database_stays_away_are_unavailable(service, away):
    """Not overload: nothing says that fewer calls would help."""
    session = service.session(PUBLIC)
    take, _ = away
    take()
    failure_of(session.list_memories)

    assert refusal(session.list_memories) == "UNAVAILABLE UNAVAILABLE"


def test_calls_succeed_once_the_database_is_back(service, away):
    session = service.session(PUBLIC)
    session.save_memory(key="plan", content="text")
    take, give_back = away
    take()
    failure_of(session.list_memories)
    give_back()

    assert session.get_memory(key="plan").memory.content == "text"


@pytest.mark.parametrize("label", Label)
def test_c50_a_fault_shows_an_incident_only(service, label, caplog):
    session = service.session(label)
    with service.database.as_owner() as owner:
        owner.execute(f"REVOKE SELECT ON {label.role}.item FROM {label.role}".encode())

    outcome = failure_of(session.list_memories)
    info = detail(outcome, error_details_pb2.ErrorInfo)

    assert outcome.message == "internal error: the server's log describes it under the request id"
    assert set(info.metadata) == {"incident"}
    assert not DRIVER_WORDS.search(outcome.message + str(info))
    assert info.metadata["incident"] in text_of(caplog)


FORCED = {
    "23514 check": "ALTER TABLE muniment_public.item ADD CONSTRAINT forced CHECK (content <> 'CANARY') NOT VALID",
    "23505 unique": "CREATE UNIQUE INDEX forced ON muniment_public.item (tenant, content) WHERE kind = 1",
    "23503 foreign key": "ALTER TABLE muniment_public.item ADD FOREIGN KEY (content) REFERENCES vault.forced NOT VALID",
    "42501 privilege": "REVOKE INSERT ON muniment_public.item FROM muniment_public",
    "42703 column": "ALTER TABLE muniment_public.item RENAME COLUMN tags TO labels",
    "22012 division": "ALTER TABLE muniment_public.item ADD CHECK (1 / (length(content) - 6) > 0) NOT VALID",
}


@pytest.mark.parametrize("fault", FORCED)
def test_c14_no_text_of_the_driver_is_sent(service, fault, caplog):
    session = service.session(PUBLIC)
    session.save_memory(key="first", content="CANARY")
    with service.database.as_owner() as owner:
        owner.execute("CREATE TABLE vault.forced (content text PRIMARY KEY)")
        owner.execute(FORCED[fault].encode())

    outcome = failure_of(session.save_memory, key="CANARY-key", content="CANARY")

    assert (outcome.code.name, reason_of(outcome)) == ("INTERNAL", "INTERNAL")
    assert not DRIVER_WORDS.search(outcome.message)
    assert not [value for _, value in outcome.trailers if "CANARY" in repr(value)]
    assert "CANARY" not in text_of(caplog)


def test_c81_a_transaction_that_the_database_rolled_back_for_another_is_retried(service, monkeypatch):
    """A deadlock's victim is no fault that a caller sees."""
    session = service.session(PUBLIC)
    attempts = []
    get = item_store.get

    def victim_at_first(scope, kind, name):
        attempts.append(name)
        if len(attempts) == 1:
            raise Conflict
        return get(scope, kind, name)

    session.save_memory(key="plan", content="text")
    monkeypatch.setattr(item_store, "get", victim_at_first)

    assert session.get_memory(key="plan").memory.content == "text"
    assert len(attempts) == 2


def test_a_status_with_32_violations_stays_under_4_kib(at):
    tags = ["\u202e" * 400] * 32 + ["x"] * 200
    outcome = failure_of(at(PUBLIC).save_memory, key="", content="", tags=tags, etag="e" * 100)
    empty = failure_of(at(PUBLIC).save_memory, key="", content="", tags=[""] * 32)

    for each in (outcome, empty):
        assert each.code is grpc.StatusCode.INVALID_ARGUMENT
        assert 0 < sum(len(name) + len(value) for name, value in each.trailers) < 4096


def test_every_field_that_breaks_a_rule_is_named(at):
    fields = invalid(at(PUBLIC).save_memory, key="", content="", tags=["a", ""], etag="e" * 65)

    assert fields == ["key", "content", "tags[1]", "etag"]


def test_a_violation_does_not_repeat_what_was_sent(at):
    outcome = failure_of(at(PUBLIC).save_memory, key="CANARY\n", content="x", etag="CANARY" * 11)

    assert not [value for _, value in outcome.trailers if "CANARY" in repr(value)]


@pytest.mark.parametrize(
    "request_bytes",
    [b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x02\xff\xfe", b"\x0a\x01\xc0", b"\x0a\x03\xed\xa0\x80", b"\x07"],
    ids=["no field", "cut short", "no UTF-8", "half a character", "a surrogate", "no wire type"],
)
def test_bytes_that_are_no_message_are_an_invalid_argument(at, request_bytes):
    outcome = failure_of(lambda: at(PUBLIC).send("GetMemory", request_bytes))

    assert (outcome.code.name, reason_of(outcome)) == ("INVALID_ARGUMENT", "FIELD_INVALID")
    assert fields_of(outcome) == [""]


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 3 * 1024 * 1024])
def test_a_message_over_1_mib_is_refused(at, size):
    assert failure_of(lambda: at(PUBLIC).send("GetMemory", b"\0" * size)).code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_wrong_shape_of_call_is_no_fault(at):
    """A stream where one request is expected: an error of the caller, and the server serves on."""
    stub = at(PUBLIC).channel.stream_stream("/muniment.v1.MemoryService/ListMemories")
    with pytest.raises(grpc.RpcError):
        list(stub(iter([]), metadata=at(PUBLIC).metadata, timeout=20))

    assert list(at(PUBLIC).list_memories().memories) == []


@pytest.mark.parametrize(
    "path",
    [
        "/muniment.v1.MemoryService/Teleport",
        "/muniment.v2.MemoryService/GetMemory",
        "/grpc.channelz.v1.Channelz/GetTopChannels",
        "/x/y",
    ],
)
def test_an_unknown_method_is_unimplemented_to_those_who_are_accepted(at, host, path):
    for caller in (at(CONFIDENTIAL), host):
        stub = caller.channel.unary_unary(path)
        outcome = failure_of(lambda stub=stub, caller=caller: stub(b"", metadata=caller.metadata, timeout=20))
        assert (outcome.code.name, reason_of(outcome)) == ("UNIMPLEMENTED", "METHOD_UNKNOWN")


def test_c51_a_success_has_no_trailers(at):
    at(CONFIDENTIAL).save_memory(key="plan", content="text", expire_time=in_future(days=1))

    assert at(CONFIDENTIAL).observe("GetMemory", key="plan").trailers == ()
