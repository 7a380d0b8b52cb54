"""What one caller may cost the others."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muniment.v1 import memory_service_pb2
from muniment_server.blocks import repository as blocks
from muniment_server.domain.classification import Classification
from muniment_server.items import item_store
from muniment_server.monitor.session_scope import SessionScope
from muniment_server.passages import repository as passages
from muniment_server.transport.admission import cutoff
from muniment_server.transport.admission.shares import ARRIVING
from muniment_server.transport.incoming import Incoming
from tests.support.answers import heavy
from tests.support.commands import wait_until
from tests.support.concurrency import locked
from tests.support.raw_http2 import unread, with_message
from tests.support.services import failure_of, in_flight, reason_of, serving, shares_of

PUBLIC = Classification.PUBLIC
MIB = 1024 * 1024
GET = "/muniment.v1.MemoryService/GetMemory"
IMPORT = "/muniment.v1.PassageService/ImportPassages"


def varint(number):
    """A number, as it is on the wire."""
    encoded = b""
    while number > 0x7F:
        encoded, number = encoded + bytes([number & 0x7F | 0x80]), number >> 7
    return encoded + bytes([number])


def test_half_a_million_tags_are_refused_unchecked(at):
    """Checking each took 13 seconds and 1 GiB."""
    request = b"\x0a\x01k\x12\x01c" + b"\x1a\x00" * 500_000
    begun = time.process_time()

    refused = failure_of(lambda: at(PUBLIC).send("SaveMemory", request))

    assert reason_of(refused) == "FIELD_INVALID"
    assert time.process_time() - begun < 5


def test_half_a_million_tags_in_a_streamed_message_are_refused_unchecked(at):
    """They are one level deeper there."""
    passage = b"\x0a\x01c" + b"\x12\x00" * 500_000
    stub = at(PUBLIC).channel.stream_unary(IMPORT)
    begun = time.process_time()

    request = b"\x0a" + varint(len(passage)) + passage
    refused = failure_of(lambda: stub(iter([request]), metadata=at(PUBLIC).metadata, timeout=60))

    assert reason_of(refused) == "FIELD_INVALID"
    assert time.process_time() - begun < 5


@pytest.mark.proof
def test_a_long_query_over_long_memories_ends(at):
    """Snippets of the whole texts took 23 seconds."""
    words = [f"word{number:03}" for number in range(98)]
    text = " ".join(words * 70)[:65_000]
    for number in range(20):
        at(PUBLIC).save_memory(key=f"long-{number}", content=text)

    found = at(PUBLIC).search_memories(query=" ".join(words), max_results=100, timeout=15)

    assert len(found.results) == 20


def test_a_page_that_ends_early_says_that_there_is_more(at):
    """Also where the next memory misses 3 MiB by less than what stands around its content."""
    session = at(PUBLIC)
    for number in range(60):
        session.save_memory(key=f"k{number:03}", content=heavy(65_200), tags=["t" * 64])

    seen, token = [], ""
    while True:
        page = session.list_memories(page_token=token, page_size=250)
        seen += [memory.key for memory in page.memories]
        token = page.next_page_token
        if not token:
            break

    assert seen == [f"k{number:03}" for number in range(60)]


@pytest.mark.parametrize("rpc", ["list_memories", "list_passages", "list_blocks"])
def test_no_more_is_read_than_one_page_has(at, monkeypatch, rpc):
    session = at(PUBLIC)
    for number in range(10):
        session.save_memory(key=str(number), content="x" * 300)
        session.store_passage(content="x" * 300)
        session.update_block(label=str(number), content="x" * 300)
    for module in (item_store, blocks, passages):
        monkeypatch.setattr(module, "PAGE_BYTES", 2500)
    look_up, read = SessionScope.look_up, []

    def counted(scope, query):
        rows = look_up(scope, query)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(SessionScope, "look_up", counted)
    page = getattr(session, rpc)()
    listed = len(getattr(page, rpc.removeprefix("list_")))

    assert read == [listed + 1]
    assert 1 < listed < 10


@pytest.mark.proof
def test_the_marker_of_more_is_not_lost_at_the_edge(at):
    """Filled to within a few bytes of a page: what is saved after it is listed too."""
    session = at(PUBLIC)
    left = 3 * 1024 * 1024
    number = 0
    while left > 0:
        size = min(65_000, left - 256 - 4 - 2 - 50)
        if size <= 0:
            break
        session.save_memory(key=f"k{number:03}", content=heavy(size))
        left -= 256 + 4 + 2 + size
        number += 1
    for extra in range(number, number + 10):
        session.save_memory(key=f"k{extra:03}", content="y")

    first = session.list_memories(page_size=250)
    rest = session.list_memories(page_size=250, page_token=first.next_page_token) if first.next_page_token else None
    listed = [memory.key for memory in first.memories] + [memory.key for memory in (rest.memories if rest else ())]

    assert listed == [f"k{index:03}" for index in range(number + 10)]


def wait_until_held(service, count):
    """Until so many calls, or streams, have no message yet."""
    streams = service.server._admission._cutoff._waiting
    pools = [shares_of(service, pool) for pool in ("calls", "long")]
    wait_until(
        lambda: max(len(streams), sum(pool._root.held[ARRIVING] for pool in pools)) >= count,
        f"{count} calls have no message yet",
    )


@contextmanager
def stalled(sessions, address, *, path=IMPORT, count=1):
    """So many open calls of each session that send headers and no message."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    going_on = threading.Event()

    def nothing():
        going_on.wait(120)
        yield from ()

    with grpc.insecure_channel(address, options=options) as channel:
        calls: list[Any] = [
            channel.stream_unary(path).future(nothing(), metadata=session.metadata, timeout=120)
            for session in sessions
            for _ in range(count)
        ]
        try:
            yield calls
        finally:
            for call in calls:
                call.cancel()
            going_on.set()


def assert_everybody_else_is_served(service, other):
    """Calls, searches, prompts, imports, hosts, and health."""
    health: Any = health_pb2_grpc.HealthStub(service.channel)

    assert other.get_memory(key="plan", timeout=20).memory.content == "whale"
    assert len(other.search_memories(query="whale", timeout=20).results) == 1
    assert list(other.search_passages(query="whale", timeout=20).results) == []
    assert other.store_passage(content="x", timeout=20).passage.content == "x"
    assert other.import_passages({"content": "y"}, timeout=20).stored_count == 1
    assert "### personality" in other.render_prompt(timeout=20).text
    assert len(service.host().list_agents(timeout=20).agents) >= 1
    assert health.Check(health_pb2.HealthCheckRequest(), timeout=20).status == 1


@pytest.mark.parametrize("method", ["GetMemory", "SaveMemory", "SearchMemories"])
def test_c87_calls_without_a_message_stop_no_one_else(service, method):
    """As many as one session may have under way, and more: they hold no thread."""
    session, other = service.session(PUBLIC), service.session(PUBLIC)
    other.save_memory(key="plan", content="whale")
    with stalled([session], service.address, path=f"/muniment.v1.MemoryService/{method}", count=400):
        wait_until_held(service, 20)

        assert_everybody_else_is_served(service, other)


@pytest.mark.parametrize("count", [1, 20])
def test_c87_stalled_streams_stop_no_one_else(service, count):
    other = service.session(PUBLIC)
    other.save_memory(key="plan", content="whale")
    with stalled([service.session(PUBLIC) for _ in range(count)], service.address):
        wait_until_held(service, count)

        assert_everybody_else_is_served(service, other)


def test_c87_the_taint_may_be_raised_under_a_stalled_stream(service):
    session = service.session(PUBLIC)
    with stalled([session], service.address):
        wait_until_held(service, 1)

        assert service.host().raise_taint(session_id=session.session_id, taint=2, timeout=20).session.taint == 2


def test_c87_one_tenant_does_not_take_all_streams(service):
    """Nor does one agent of it."""
    sessions = [service.session(PUBLIC, agent_id=f"agent{number}") for number in range(6) for _ in range(22)]
    with stalled(sessions, service.address):
        wait_until_held(service, 96)
        stranger = service.session(PUBLIC, tenant="beta")

        assert stranger.import_passages({"content": "x"}, timeout=20).stored_count == 1


def test_four_hundred_calls_at_once_on_one_channel_meet_no_error_of_the_transport(service):
    """Of a hundred and twenty, half once failed. What is too much is refused, with when to retry."""
    session = service.session(PUBLIC)
    session.save_memory(key="plan", content="whale")
    stub = session.channel.unary_unary("/muniment.v1.MemoryService/GetMemory")
    calls = [stub.future(b"\x0a\x04plan", metadata=session.metadata, timeout=60) for _ in range(400)]
    codes = Counter(call.code().name for call in calls)

    assert set(codes) <= {"OK", "RESOURCE_EXHAUSTED"}
    assert codes["OK"] >= 2048 // 12


def test_answers_that_are_not_read_are_bounded(database):
    """A reader that reads nothing gets no more turns once what it was sent fills its part of the memory."""
    with serving(database) as service:
        session, other = service.session(PUBLIC), service.session(PUBLIC)
        for number in range(50):
            session.save_memory(key=f"k{number:03}", content=heavy(65_000))
        with unread(session.token, service.address, "/muniment.v1.MemoryService/ListMemories", count=20):
            wait_until(lambda: shares_of(service).load.byte_count > 5 * MIB, "two answers wait to be read")
            wait_until(lambda: shares_of(service).load.queued == 18, "the others have no turn")

            assert shares_of(service).load.byte_count < 8 * MIB
            assert other.get_memory(key="k001").memory.key == "k001"


def test_a_caller_who_does_not_read_is_cut_off(service, monkeypatch):
    session, answered = service.session(PUBLIC), []
    for number in range(40):
        session.save_memory(key=f"k{number:03}", content=heavy(65_000))
    expect_reader = cutoff.Cutoff.expect_reader

    def expect(cut_off, call):
        answered.append(call)
        expect_reader(cut_off, call)

    monkeypatch.setattr(cutoff, "SEND_SECONDS", 0.2)
    monkeypatch.setattr(cutoff.Cutoff, "expect_reader", expect)
    with unread(session.token, service.address, "/muniment.v1.MemoryService/ListMemories", count=2):
        wait_until(lambda: len(answered) == 2, "both answers wait to be read")
        wait_until(lambda: in_flight(service) == 0, "they are cut off")

    assert shares_of(service).load.byte_count == 0


def test_a_call_whose_message_comes_too_late_is_refused_and_nothing_is_done(service, monkeypatch):
    """UNAVAILABLE: it may be sent again. On a busy server the message may have been sent in time."""
    session = service.session(PUBLIC)
    refused = threading.Event()

    def late():
        refused.wait(20)
        yield memory_service_pb2.SaveMemoryRequest(key="late", content="x").SerializeToString()

    stub: Any = session.channel.stream_unary("/muniment.v1.MemoryService/SaveMemory")
    with monkeypatch.context() as hurried:  # on a busy machine, other calls would be late, too
        hurried.setattr(cutoff, "RECEIVE_SECONDS", 0.2)
        call = stub.future(late(), metadata=session.metadata, timeout=60)
        assert reason_of(failure_of(call.result)) == "UNAVAILABLE"
    refused.set()

    wait_until(lambda: in_flight(service) == 0, "nothing is left of it")
    assert service.server._admission._cutoff._waiting == {}
    assert session.list_memories().memories == []


def test_a_message_that_arrives_while_its_call_is_refused_is_not_run(service, monkeypatch):
    """Its caller learns that nothing has been done."""
    session = service.session(PUBLIC)
    refusing, arrived, ran = threading.Event(), threading.Event(), []
    receive, refuse = Incoming.receive, Incoming.refuse

    def receiving(call, callback):
        def received(message):
            callback(message)
            arrived.set()

        receive(call, received)

    def refusing_late(call, rejection):
        refusing.set()
        arrived.wait(20)
        refuse(call, rejection)

    def late():
        refusing.wait(20)
        yield memory_service_pb2.SaveMemoryRequest(key="late", content="x").SerializeToString()

    stub: Any = session.channel.stream_unary("/muniment.v1.MemoryService/SaveMemory")
    with monkeypatch.context() as hurried:
        hurried.setattr(cutoff, "RECEIVE_SECONDS", 0.2)
        hurried.setattr(Incoming, "receive", receiving)
        hurried.setattr(Incoming, "refuse", refusing_late)
        hurried.setattr(Incoming, "run", lambda call, *_: ran.append(call))
        call = stub.future(late(), metadata=session.metadata, timeout=60)
        assert reason_of(failure_of(call.result)) == "UNAVAILABLE"
        wait_until(lambda: in_flight(service) == 0, "nothing is left of it")

    assert ran == []


def test_a_message_that_arrives_while_others_are_refused_is_in_time(monkeypatch):
    monkeypatch.setattr(cutoff, "RECEIVE_SECONDS", -1.0)
    cut_off, refused = cutoff.Cutoff(), []

    class Call:
        record = "a call of the contract"

        def guarded(self, do):
            do()

        def refuse(self, _):
            refused.append(self)
            cut_off.clear(other)
            cut_off.stop()

    first: Any = Call()
    other: Any = Call()
    for call in (first, other):
        cut_off.expect_message(call, partial(call.refuse, None))
    cut_off._watch()

    assert refused == [first]


def test_messages_that_arrive_late_and_large_leave_room_for_the_others(service, monkeypatch):
    """Their sizes are not known when the calls are let in. One session once had all others refused for a minute."""
    monkeypatch.setattr(cutoff, "RECEIVE_SECONDS", 60.0)  # a busy machine may take long to send them
    session, other = service.session(PUBLIC), service.session(PUBLIC, agent_id="bob")
    arrived = threading.Event()

    def late():
        arrived.wait(20)
        yield b"\x0a" + varint(250_000) + b"x" * 250_000

    stub: Any = session.channel.stream_unary("/muniment.v1.PassageService/StorePassage")
    with locked(service, session):
        calls = [stub.future(late(), metadata=session.metadata, timeout=60) for _ in range(100)]
        wait_until_held(service, 100)
        arrived.set()
        wait_until(lambda: sum(call.done() for call in calls) >= 50, "most are refused")

        assert shares_of(service).load.byte_count < 16 * MIB
        assert other.save_memory(key="plan", content="x", timeout=60).memory.key == "plan"
        assert {reason_of(failure_of(call.result)) for call in calls if call.done()} == {"OVERLOADED"}
        for call in calls:
            call.cancel()


def test_grpc_ends_no_call_of_2_500_that_arrive_at_once(service, monkeypatch):
    """By default, it ends some from 1,000 on, whoever made them: that would tell a caller of the calls of others."""
    token = service.session(PUBLIC).token[:-4] + "none"
    arrivals, may_go_on = service.server.grpc._state.thread_pool, threading.Event()
    arrived = arrivals._arrived
    monkeypatch.setattr(arrivals, "_arrived", lambda *call: may_go_on.wait(60) and arrived(*call))
    try:
        calls = [with_message(token, service.address, GET, count=1250) for _ in range(2)]
        with calls[0] as of_one, calls[1] as of_other:
            assert (of_one, of_other) == (0, 0)
    finally:
        may_go_on.set()
