"""What one caller may cost the others."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muniment_server.domain.classification import Classification
from muniment_server.transport.pools import Limits
from tests.support.answers import heavy
from tests.support.services import failure_of, reason_of

PUBLIC = Classification.PUBLIC
IMPORT = "/muniment.v1.PassageService/ImportPassages"


def varint(number):
    """A number, as it is on the wire."""
    encoded = b""
    while number > 0x7F:
        encoded, number = encoded + bytes([number & 0x7F | 0x80]), number >> 7
    return encoded + bytes([number])


def test_half_a_million_tags_are_refused_unchecked(at):
    """Judging each took 13 seconds and 1 GiB."""
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


@contextmanager
def stalled(session, address, count):
    """So many open streams of *session* that send nothing, on connections of their own: each takes 100."""
    channels = [
        grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) for _ in range(-(-count // 90))
    ]
    going_on = threading.Event()

    def nothing():
        going_on.wait(120)
        yield from ()

    calls: list[Any] = [
        channels[number % len(channels)].stream_unary(IMPORT).future(nothing(), metadata=session.metadata, timeout=120)
        for number in range(count)
    ]
    try:
        yield calls
    finally:
        for call in calls:
            call.cancel()
        going_on.set()
        for channel in channels:
            channel.close()


def wait_until_held(service):
    """Until every thread that the server has for streams waits for one."""
    end = time.monotonic() + 20
    while len(service.server._receive_timeout._waiting) < Limits().stream_threads:
        assert time.monotonic() < end


def served_at_last(stub, session):
    """The answer to an empty stream, once the server has noticed that others are gone."""
    end = time.monotonic() + 30
    while True:
        try:
            return stub(iter([]), metadata=session.metadata, timeout=30)
        except grpc.RpcError as refusal:
            if refusal.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED or time.monotonic() > end:
                raise
        time.sleep(0.05)


def first_done(calls):
    """One of the calls that have ended."""
    end = time.monotonic() + 20
    while True:
        for call in calls:
            if call.done():
                return call
        assert time.monotonic() < end


@pytest.mark.parametrize("count", [20, 100, 300])
def test_c87_stalled_streams_block_no_one_else(service, count):
    """Not calls, not searches, not health, and not hosts. Three hundred are more than calls may be in flight."""
    session, other = service.session(PUBLIC), service.session(PUBLIC)
    other.save_memory(key="plan", content="whale")
    health: Any = health_pb2_grpc.HealthStub(service.channel)
    with stalled(session, service.address, count):
        wait_until_held(service)

        assert other.get_memory(key="plan", timeout=20).memory.content == "whale"
        assert len(other.search_memories(query="whale", timeout=20).results) == 1
        assert list(other.search_passages(query="whale", timeout=20).results) == []
        assert other.store_passage(content="x", timeout=20).passage.content == "x"
        assert "### personality" in other.render_prompt(timeout=20).text
        assert len(service.host().list_agents(timeout=20).agents) == 1
        assert health.Check(health_pb2.HealthCheckRequest(), timeout=20).status == 1


def test_c87_streams_of_strangers_do_not_wait_behind_stalled_ones_for_ever(service):
    """They are refused when their turn comes; and the taint may be raised under a stalled one at any time."""
    session = service.session(PUBLIC)
    with stalled(session, service.address, 2):
        wait_until_held(service)
        raised = service.host().raise_taint(session_id=session.session_id, taint=2, timeout=20).session.taint
        other = service.session(PUBLIC)
        third = other.channel.stream_unary(IMPORT).future(iter([]), metadata=other.metadata, timeout=60)

    assert raised == 2
    assert third.result() == b""


def test_c87_streams_beyond_those_that_may_wait_are_refused_at_once(service):
    """With the reason of any overload. When the others are gone, streams are served as before."""
    session = service.session(PUBLIC)
    with stalled(session, service.address, 100) as calls:
        wait_until_held(service)
        refused = failure_of(first_done(calls).result)
    answer = served_at_last(session.channel.stream_unary(IMPORT), session)

    assert (refused.code.name, reason_of(refused)) == ("RESOURCE_EXHAUSTED", "OVERLOADED")
    assert answer == b""
