"""Messages are received in turns, so that what has arrived of them takes little memory."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muniment_server.transport import cutoff
from muniment_server.transport.receiving import Receiving
from muniment_server.transport.shares import ARRIVING
from tests.support.answers import PUBLIC, RESTRICTED
from tests.support.commands import wait_until
from tests.support.raw_http2 import Unfinished, without_message
from tests.support.services import pools_of, shares_of

HEALTH, SAVE = "/grpc.health.v1.Health/Check", "/muniment.v1.MemoryService/SaveMemory"
KIB = 1024
ADA, BOB = ("all", "acme", "ada", "ada 1"), ("all", "acme", "bob", "bob 1")
ADA_AGAIN, EVE = ("all", "acme", "ada", "ada 2"), ("all", "acme", "eve", "eve 1")
STRANGER = ("all", "beta", "eve of beta", "eve of beta 1")


class Turns:
    """Who has a message received, in the order in which it began."""

    def __init__(self, *most):
        self.receiving = Receiving(*most)
        self.begun: list[Any] = []

    def begin(self, keys, count=1):
        for _ in range(count):
            assert self.receiving.begin(keys, lambda: self.begun.append(keys))

    def end(self, keys):
        self.receiving.end(keys)


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
    for _ in range(2):
        turns.end(ADA)

    assert turns.begun == [*[ADA] * 4, STRANGER, BOB]


def test_what_waits_and_has_turns_is_forgotten_at_its_end():
    turns = Turns(1)
    turns.begin(ADA, count=3)
    for _ in range(3):
        turns.end(ADA)

    assert not turns.receiving._counts
    assert not turns.receiving._waiting


def test_more_than_two_hundred_calls_do_not_wait():
    receiving = Receiving(0)
    begun = [receiving.begin(ADA, lambda: None) for _ in range(201)]

    assert begun == [True] * 200 + [False]


def test_calls_that_ended_while_they_waited_do_not_nest():
    """Each ends its turn as soon as it begins. A hundred levels of the stack would be gone otherwise."""
    receiving = Receiving(1)
    receiving.begin(ADA, lambda: None)
    for _ in range(199):
        receiving.begin(ADA, lambda: receiving.end(ADA))
    receiving.end(ADA)

    assert not receiving._counts


def test_who_waits_for_other_agents_finds_the_server_nearly_full():
    turns = Turns(4, 2, 1, 1)
    turns.begin(ADA, count=3)
    waited_for_itself = turns.receiving.was_nearly_full
    turns.begin(BOB)
    turns.begin(EVE)

    assert not waited_for_itself
    assert turns.receiving.was_nearly_full


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


def test_checks_of_health_without_a_message_stop_no_other_connection(service, monkeypatch):
    """One message of each connection is received at once, and more than two hundred do not wait."""
    monkeypatch.setattr(cutoff, "RECEIVE_SECONDS", 60.0)
    expected = service.server._admission._cutoff._waiting
    with without_message("", service.address, HEALTH, count=300) as stream:
        wait_until(lambda: len(expected) == 1, "one is received")
        with grpc.insecure_channel(service.address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            status = health.Check(health_pb2.HealthCheckRequest(), timeout=20).status

        assert status == health_pb2.HealthCheckResponse.SERVING
        wait_until(lambda: len(expected) == 1, "nothing but the one is waited for")
        assert stream.recv(1)
