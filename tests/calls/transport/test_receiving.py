"""Messages are received in turns, so that what has arrived of them takes little memory."""

from __future__ import annotations

from contextlib import closing
from typing import Any
from unittest import mock

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muniment_server.transport.admission import cutoff
from muniment_server.transport.admission.receiving import Receiving, Turn
from muniment_server.transport.admission.shares import ARRIVING
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


def begin(receiving, keys, started):
    """Queue a turn, which is given to *started* when it begins."""
    turn = Turn(keys, lambda: started(turn))
    receiving.begin(turn)


class Turns:
    """Who has a message received, in the order in which it began."""

    def __init__(self, *most):
        self.receiving = Receiving(*most)
        self.begun: list[Turn] = []

    def begin(self, keys, count=1):
        for _ in range(count):
            begin(self.receiving, keys, self.begun.append)

    @property
    def callers(self):
        return [turn.keys for turn in self.begun]


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
    for turn in turns.begun[:2]:
        turns.receiving.end(turn)

    assert turns.callers == [*[ADA] * 4, STRANGER, BOB]


def test_sessions_with_as_many_take_turns():
    turns = Turns(1, 1, 1, 1)
    for keys in (ADA, ADA, ADA, ADA_AGAIN):
        turns.begin(keys)
    for number in range(3):
        turns.receiving.end(turns.begun[number])

    assert turns.callers == [ADA, ADA, ADA_AGAIN, ADA]


def test_what_waits_and_has_turns_is_forgotten_at_its_end():
    turns = Turns(1, 1, 1, 1)
    turns.begin(ADA, count=3)
    for number in range(3):
        turns.receiving.end(turns.begun[number])

    assert not turns.receiving._counts
    assert not turns.receiving._waiting
    assert turns.receiving._free == 1


def test_a_turn_that_ends_while_it_waits_does_not_begin():
    turns = Turns(1, 1, 1, 1)
    turns.begin(ADA)
    late = Turn(ADA, lambda: turns.begun.append(late))
    turns.receiving.begin(late)

    assert turns.receiving.end(late)
    assert not turns.receiving.end(turns.begun[0])
    assert not turns.receiving.end(turns.begun[0]), "ends once"
    assert turns.callers == [ADA]
    assert turns.receiving._free == 1


def test_calls_that_ended_while_they_waited_do_not_nest():
    """Each ends its turn as soon as it begins. A hundred levels of the stack would be gone otherwise."""
    receiving = Receiving(1, 1, 1, 1)
    first = Turn(ADA, lambda: None)
    receiving.begin(first)
    for _ in range(400):
        begin(receiving, ADA, receiving.end)
    receiving.end(first)

    assert not receiving._counts


def test_waiting_sessions_of_an_agent_cost_others_nothing(monkeypatch):
    """Looking at each of them made the calls of all tenants ten times as slow."""
    turns = Turns(8, 4, 2, 1)
    for number in range(500):
        turns.begin(("acme", "ada", number))
    with mock.patch.object(Receiving, "_has_room", autospec=True, side_effect=Receiving._has_room) as looked:
        turns.begin(STRANGER)
        turns.receiving.end(turns.begun[-1])

    assert turns.callers[-1] == STRANGER
    assert looked.call_count < 20


def test_who_waits_for_other_agents_finds_the_server_nearly_full():
    turns = Turns(4, 2, 1, 1)
    turns.begin(ADA, count=3)
    waited_for_itself = turns.receiving.was_nearly_full
    turns.begin(BOB)
    turns.begin(EVE)

    assert not waited_for_itself
    assert turns.receiving.was_nearly_full


def test_a_pool_whose_messages_wait_for_those_of_other_agents_is_nearly_full(service):
    pools = pools_of(service)
    pools.hosts.receiving.was_nearly_full = True
    pools.note_waits()

    assert pools.hosts.shares.was_nearly_full
    assert not pools.hosts.receiving.was_nearly_full
    assert not pools.calls.shares.was_nearly_full


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
    monkeypatch.setattr(pools_of(service).calls.receiving, "_most", (1, 1, 1, 1))
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
    session, receiving = service.session(PUBLIC), pools_of(service).calls.receiving
    with without_message(session.token, service.address, SAVE, count=20):
        wait_until(lambda: len(late) == 20, "all are refused: those that are received, and those that wait")

        assert not receiving._counts
        assert not receiving._waiting


def test_checks_of_health_without_a_message_stop_no_other(service, monkeypatch):
    """Not even on one connection, such as that of a proxy: the oldest are refused."""
    monkeypatch.setattr(cutoff, "RECEIVE_SECONDS", 60.0)
    checks = service.server._admission._health_checks
    with without_message("", service.address, HEALTH, count=300) as stream:
        wait_until(lambda: len(checks) == 64, "so many are kept")
        health: Any = health_pb2_grpc.HealthStub(service.channel)
        status = health.Check(health_pb2.HealthCheckRequest(), timeout=20).status

        assert status == health_pb2.HealthCheckResponse.SERVING
        assert len(checks) <= 64
        assert stream.recv(1)
