"""Over a real connection, the room of a session tells it nothing of what others have under way."""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from muniment_server.telemetry.metrics import REGISTRY
from muniment_server.transport.admission import admission, cutoff, shares
from muniment_server.transport.admission.shares import ANSWERS, ARRIVING, CALLS, REQUESTS
from tests.support.answers import INTERNAL, PUBLIC, RESTRICTED, heavy
from tests.support.commands import wait_until
from tests.support.concurrency import locked
from tests.support.log_lines import lines_of
from tests.support.raw_http2 import unread, without_message
from tests.support.services import Caller, serving, shares_of

GET, LIST = "/muniment.v1.MemoryService/GetMemory", "/muniment.v1.MemoryService/ListMemories"
_HOLDER = (
    r"tenant \d+, agent \d+ at (PUBLIC|INTERNAL|RESTRICTED): "
    "340 calls arriving, 0 others, 0 bytes of requests, 0 of answers"
)
PASSAGE = b"\x0a\x90\xa1\x0f" + b"x" * 250_000


@pytest.fixture(autouse=True)
def long_time_limits(monkeypatch):
    """A busy machine may take long to send or read."""
    monkeypatch.setattr(cutoff, "RECEIVE_SECONDS", 60.0)
    monkeypatch.setattr(cutoff, "TURN_SECONDS", 60.0)
    monkeypatch.setattr(cutoff, "SEND_SECONDS", 60.0)


def refused_so_far(method="GetMemory"):
    labels = {"grpc_method": method, "grpc_code": "RESOURCE_EXHAUSTED", "reason": "OVERLOADED"}
    return REGISTRY.get_sample_value("muniment_calls_refused_total", labels) or 0


def room_of(service, session, count=400):
    """How many of so many calls without a message are let in."""
    before, refused = arriving(service), refused_so_far()
    with without_message(session.token, service.address, GET, count=count):
        wait_until(lambda: arriving(service) - before + refused_so_far() - refused == count, "all are let in or not")
        let_in = arriving(service) - before
    wait_until(lambda: arriving(service) == before, "they have ended")
    return let_in


def arriving(service):
    """How many calls have been let in whose message has not arrived."""
    return held(service, ARRIVING)


def held(service, kind):
    return shares_of(service)._root.held[kind]


@contextmanager
def calls_without_message(service, session):
    with without_message(session.token, service.address, GET, count=150):
        wait_until(lambda: arriving(service) == 150, "they are let in")
        yield


@contextmanager
def large_messages(service, session):
    """Writes that wait for the row of their conversation."""
    store = session.channel.unary_unary("/muniment.v1.PassageService/StorePassage")
    with locked(service, session):
        calls = [store.future(PASSAGE, metadata=session.metadata, timeout=60) for _ in range(16)]
        wait_until(lambda: held(service, REQUESTS) >= 16 * 250_000, "the messages are held")
        yield
        for call in calls:
            call.cancel()


@contextmanager
def unread_answers(service, session):
    for number in range(50):
        session.save_memory(key=f"k{number}", content=heavy(65_000))
    with unread(session.token, service.address, LIST, count=20):
        wait_until(lambda: held(service, CALLS) == 20, "they have all arrived")
        wait_until(lambda: held(service, ANSWERS) > 5 * 2**20, "two answers wait to be read")
        yield


KEPT_OPEN = [calls_without_message, large_messages, unread_answers]
SENDERS: dict[str, dict[str, Any]] = {
    "same agent, above": {"taint": RESTRICTED},
    "another agent": {"taint": RESTRICTED, "agent_id": "bob"},
    "another tenant": {"taint": RESTRICTED, "tenant": "beta"},
}


@pytest.mark.parametrize("keep_open", KEPT_OPEN)
@pytest.mark.parametrize("sender", SENDERS)
def test_what_others_keep_open_changes_nothing_of_what_a_session_is_let_in(service, keep_open, sender):
    session, other = service.session(PUBLIC), service.session(**SENDERS[sender])
    alone = room_of(service, session)
    with keep_open(service, other):
        beside = room_of(service, session)

    assert beside == alone == 2048 // 12


def test_room_that_shrinks_with_what_is_left_would_tell(service, monkeypatch):
    """The measurement above can find a difference."""
    monkeypatch.setattr(shares, "room", lambda most, held: most - held)
    session, other = service.session(PUBLIC), service.session(RESTRICTED)
    alone = room_of(service, session)
    with calls_without_message(service, other):
        assert room_of(service, session) < alone


def test_a_raised_session_does_not_fill_the_room_of_its_agent_below(service, monkeypatch):
    """Another worker remembers the old level: one call may count there, until a statement has confirmed the level."""
    monkeypatch.setattr(admission, "_CONFIRMED_SECONDS", 0.0)
    with serving(service.database) as other:
        raised, low = (Caller(other.channel, each.token, each.session_id) for each in sessions(service, 2))
        raised.list_memories()
        alone = room_of(other, low)
        service.host().raise_taint(session_id=raised.session_id, taint=RESTRICTED)
        with calls_without_message(other, raised):
            holders = shares_of(other).holders()
            beside = room_of(other, low)

    assert [holder.partition(": ")[2].partition(" calls")[0] for holder in holders] == ["149", "1"]
    assert beside == alone


def test_a_call_that_has_no_turn_for_long_is_refused(service, monkeypatch):
    """It may wait behind unread answers of its own session, which may have been raised since: its place is below."""
    monkeypatch.setattr(cutoff, "TURN_SECONDS", 1.0)
    session, before = service.session(PUBLIC), refused_so_far("ListMemories")
    for number in range(50):
        session.save_memory(key=f"k{number}", content=heavy(65_000))
    with unread(session.token, service.address, LIST, count=20):
        wait_until(lambda: refused_so_far("ListMemories") - before >= 15, "all but those that have run are refused")

    assert session.get_memory(key="k1", timeout=20).memory.key == "k1"


def sessions(service, count):
    return [service.session(PUBLIC) for _ in range(count)]


def test_a_nearly_full_server_is_counted_and_logged_with_who_holds_most(service, caplog):
    labels = {"pool": "calls"}
    before, refused = REGISTRY.get_sample_value("muniment_nearly_full_seconds_total", labels) or 0, refused_so_far()
    with ExitStack() as stack:
        for agent in ("a", "b", "c"):
            for level in (PUBLIC, INTERNAL, RESTRICTED):
                for _ in range(2):
                    session = service.session(level, agent_id=agent)
                    stack.enter_context(without_message(session.token, service.address, GET, count=170))
        wait_until(lambda: arriving(service) + refused_so_far() - refused == 18 * 170, "all are let in or not")
        caplog.clear()
        for _ in range(2):
            service.server.measure()

    (line,) = lines_of(caplog, "nearly full")
    assert line["pool"] == "calls"
    assert len(line["holders"]) == 3
    assert re.fullmatch(_HOLDER, line["holders"][0])
    assert REGISTRY.get_sample_value("muniment_nearly_full_seconds_total", labels) == before + 1
