"""Messages are received in turns, so that what has arrived of them takes little memory."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any
from unittest import mock

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muniment_server.transport.admission import cutoff
from muniment_server.transport.admission.shares import ARRIVING, RECEIVING, Claim, Shares, start
from muniment_server.transport.incoming import Incoming
from tests.support.answers import PUBLIC, RESTRICTED
from tests.support.commands import wait_until
from tests.support.raw_http2 import Unfinished, without_message
from tests.support.services import pools_of, shares_of

HEALTH, SAVE = "/grpc.health.v1.Health/Check", "/muniment.v1.MemoryService/SaveMemory"
KIB = 1024
ADA, ADA_AGAIN = ("acme", "ada", "ada 1"), ("acme", "ada", "ada 2")
BOB, EVE = ("acme", "bob", "bob 1"), ("acme", "eve", "eve 1")
STRANGER = ("beta", "eve of beta", "eve of beta 1")


class Message(Claim):
    """A call that waits for its message."""

    def __init__(self, turns, keys):
        super().__init__(writes=False)
        self.turns = turns
        self.keys = keys

    def start(self):
        self.turns.begun.append(self)

    run = finish = start


class Turns:
    """Who has a message received, in the order in which it began."""

    def __init__(self, *most):
        self.begun: list[Message] = []
        self.now = 0.0
        self.shares = Shares(
            received=most, turns=1, turns_of_tenant=1, max_calls=10_000, max_bytes=1, max_answer=0, clock=self.time
        )

    def time(self):
        return self.now

    def begin(self, keys, count=1):
        messages = [Message(self, keys) for _ in range(count)]
        for message in messages:
            assert self.shares.admit(message, keys)
            start(self.shares.take_turn(message, RECEIVING))
        return messages[-1]

    def end(self, message):
        self.now += 1
        start(self.shares.end_turn(message, RECEIVING))

    @property
    def callers(self):
        return [message.keys for message in self.begun]


@pytest.mark.parametrize(
    ("sessions", "received"),
    [
        ([ADA], 2),
        ([ADA, ADA_AGAIN], 3),
        ([ADA, ADA_AGAIN, BOB], 4),
        ([ADA, ADA_AGAIN, BOB, STRANGER], 5),
    ],
    ids=["a session", "an agent", "a tenant", "all"],
)
def test_each_caller_has_so_many_messages_received_at_once(sessions, received):
    turns = Turns(5, 4, 3, 2)
    for keys in sessions:
        turns.begin(keys, count=10)

    assert len(turns.begun) == received


def test_a_turn_that_ends_goes_to_whoever_has_fewest():
    turns = Turns(4, 4, 4, 4)
    turns.begin(ADA, count=10)
    turns.begin(BOB)
    turns.begin(STRANGER)
    for message in turns.begun[:2]:
        turns.end(message)

    assert turns.callers == [*[ADA] * 4, STRANGER, BOB]


def test_sessions_with_as_many_take_turns():
    turns = Turns(1, 1, 1, 1)
    for keys in (ADA, ADA, ADA, ADA_AGAIN, ADA_AGAIN):
        turns.begin(keys)
    for number in range(4):
        turns.end(turns.begun[number])

    assert turns.callers == [ADA, ADA_AGAIN, ADA, ADA_AGAIN, ADA]


def test_a_turn_ends_once():
    turns = Turns(1, 1, 1, 1)
    first, second = turns.begin(ADA), turns.begin(ADA)
    turns.end(first)
    turns.end(first)
    turns.begin(ADA)

    assert turns.begun == [first, second]


def test_who_waits_may_be_withdrawn():
    turns = Turns(1, 1, 1, 1)
    first, second, third = (turns.begin(ADA) for _ in range(3))

    assert turns.shares.withdraw(second)
    assert not turns.shares.withdraw(second)
    assert not turns.shares.withdraw(first), "it has its turn"
    turns.end(first)
    assert turns.begun == [first, third]


def test_waiting_sessions_of_an_agent_cost_others_nothing():
    """Looking at each of them made the calls of all tenants ten times as slow."""
    turns = Turns(8, 4, 2, 1)
    for number in range(500):
        turns.begin(("acme", "ada", number))
    with mock.patch.object(Shares, "_next", autospec=True, side_effect=Shares._next) as looked:
        turns.end(turns.begin(STRANGER))

    assert STRANGER in turns.callers
    assert looked.call_count < 20


def test_who_waits_for_other_agents_finds_the_server_nearly_full():
    turns = Turns(4, 2, 1, 1)
    turns.begin(ADA, count=3)
    waited_for_itself = turns.shares.was_nearly_full
    turns.begin(BOB)
    turns.begin(EVE)

    assert not waited_for_itself
    assert turns.shares.was_nearly_full


def test_what_arrives_of_messages_that_are_not_received_yet_is_bounded(service, monkeypatch):
    """Of 100 messages, 5 are received. gRPC would take all that is sent of the others, too."""
    monkeypatch.setattr(cutoff, "RECEIVE_SECONDS", 60.0)
    with closing(Unfinished(service.session(PUBLIC).token, service.address, SAVE, count=100)) as unfinished:
        wait_until(lambda: shares_of(service)._root.held[ARRIVING] == 100, "they are let in")
        unfinished.send_all()

    assert 4 * 1024 * KIB < unfinished.byte_count < 5 * 1024 * KIB + 95 * 64 * KIB


def test_a_host_does_not_wait_for_sessions(service, monkeypatch):
    """However many of its tenant send headers alone."""
    monkeypatch.setattr(cutoff, "RECEIVE_SECONDS", 60.0)
    monkeypatch.setattr(shares_of(service), "_most_turns", ((1, 1, 1, 1), (4, 3, 3, 2)))
    session = service.session(PUBLIC)
    with without_message(session.token, service.address, SAVE, count=20):
        wait_until(lambda: shares_of(service)._root.held[ARRIVING] == 20, "they are let in")

        raised = service.host().raise_taint(session_id=session.session_id, taint=RESTRICTED, timeout=20)

    assert raised.session.taint == RESTRICTED


def test_a_turn_ends_when_the_call_is_refused_for_lateness(service, monkeypatch):
    """Whatever gRPC still waits for: a peer that reads nothing keeps it busy for long."""
    monkeypatch.setattr(Incoming, "refuse", lambda call, _: late.append(call))
    monkeypatch.setattr(cutoff, "RECEIVE_SECONDS", 1.0)
    late: list[Incoming] = []
    session, root = service.session(PUBLIC), shares_of(service)._root
    with without_message(session.token, service.address, SAVE, count=20):
        wait_until(lambda: len(late) == 20, "all are refused: those that are received, and those that wait")

        assert (root.turns[RECEIVING], root.waiting[RECEIVING]) == (0, 0)


def test_calls_that_end_while_they_wait_leave_the_queue(service, monkeypatch):
    """Their caller goes away. Others of the session have all its turns."""
    monkeypatch.setattr(cutoff, "RECEIVE_SECONDS", 60.0)
    session, root = service.session(PUBLIC), shares_of(service)._root
    with without_message(session.token, service.address, SAVE, count=5):
        wait_until(lambda: root.turns[RECEIVING] == 5, "they are received")
        with without_message(session.token, service.address, SAVE, count=35):
            wait_until(lambda: root.waiting[RECEIVING] == 35, "all others wait")
        wait_until(lambda: root.waiting[RECEIVING] == 0, "they have gone")

        assert (root.turns[RECEIVING], root.held[ARRIVING]) == (5, 5)


def test_checks_of_health_without_a_message_stop_none_of_other_connections(service, monkeypatch):
    """Nor are they ended by them, however many there are: that would tell their peers what others do."""
    monkeypatch.setattr(cutoff, "RECEIVE_SECONDS_OF_HEALTH", 60.0)
    root = pools_of(service).health.shares._root
    with ExitStack() as connections:
        for _ in range(20):
            connections.enter_context(without_message("", service.address, HEALTH, count=17))
        wait_until(lambda: root.held[ARRIVING] == 20 * 16, "sixteen of each are let in")
        health: Any = health_pb2_grpc.HealthStub(service.channel)
        status = health.Check(health_pb2.HealthCheckRequest(), timeout=20).status

        assert status == health_pb2.HealthCheckResponse.SERVING
        assert (root.held[ARRIVING], root.turns[RECEIVING]) == (20 * 16, 20 * 4)
