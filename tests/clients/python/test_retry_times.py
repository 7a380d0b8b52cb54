"""When a call is sent again: on a channel of grpcio-testing, with a clock that only pauses move.

That failures of a real server are retried, and what gRPC says when there is none, is tested over the network in
test_retries.py. The asyncio client takes its pauses from the same `Attempts`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import grpc
import grpc_testing
import pytest
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

import muniment
from muniment import SessionClient, retries
from muniment._calls import Calls
from muniment.retries import FIRST_PAUSE, LONGEST_PAUSE, NOT_CONNECTED, Attempts
from tests.clients.python.scripted import METHODS, overloaded, retry_info, status, unavailable
from tests.rpcs import RPCS
from tests.support.examples import TOKEN


class Clock:
    """A time that is set by hand: a pause takes no time, and is remembered."""

    def __init__(self) -> None:
        self.time = grpc_testing.strict_fake_time(0.0)
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return float(self.time.time())

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time.sleep_for(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(retries, "time", clock)
    monkeypatch.setattr("muniment.retries.random.uniform", lambda _, most: most)
    monkeypatch.setattr(retries, "FIRST_PAUSE", FIRST_PAUSE)  # not the short one of conftest.py
    return clock


@pytest.fixture
def channel(clock: Clock) -> Any:
    services = {method.containing_service for method in METHODS.values()}
    return grpc_testing.channel(services, clock.time)


@pytest.fixture
def session(channel: Any) -> SessionClient:
    return SessionClient(Calls(channel, TOKEN, timeout=10, retries=True))


@contextmanager
def answering(channel: Any, method: str, answers: Sequence[Message]) -> Iterator[list[Message]]:
    """Answer the calls of *method* one after the other. Gives the requests that have come."""
    asked: list[Message] = []

    def answer() -> None:
        for each in answers:
            _, request, call = channel.take_unary_unary(METHODS[method])
            asked.append(request)
            call.send_initial_metadata(())
            refusal = rpc_status.to_status(each) if isinstance(each, Status) else None
            if refusal is None:
                call.terminate(each, (), grpc.StatusCode.OK, "")
            else:
                call.terminate(None, refusal.trailing_metadata, refusal.code, refusal.details)

    thread = threading.Thread(target=answer)
    thread.start()
    yield asked
    thread.join()


def test_pauses_double_up_to_the_longest_until_the_deadline_is_near(channel: Any, clock: Clock, session: SessionClient):
    pauses = [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]
    assert (pauses[0], pauses[-1]) == (FIRST_PAUSE, LONGEST_PAUSE)
    with answering(channel, "GetMemory", [unavailable()] * 9) as asked, pytest.raises(muniment.Unavailable):
        session.get_memory("tea")

    assert clock.pauses == pytest.approx(pauses)
    assert len(asked) == 9  # another pause of 2 seconds would pass the deadline of 10


def test_a_server_that_names_a_time_is_given_it(channel: Any, clock: Clock, session: SessionClient):
    answers = [overloaded(retry_info(3)), overloaded(retry_info(4)), RPCS["GetMemory"].answer]
    with answering(channel, "GetMemory", answers):
        session.get_memory("tea")

    assert clock.pauses == pytest.approx([3.1, 4.2])


def test_a_retry_beyond_the_deadline_is_not_waited_for(channel: Any, clock: Clock, session: SessionClient):
    with (
        answering(channel, "GetMemory", [overloaded(retry_info(9))]),
        pytest.raises(muniment.Overloaded) as caught,
    ):
        session.get_memory("tea", timeout=8)

    assert (clock.pauses, caught.value.retry_after) == ([], 9)


@pytest.mark.parametrize("method", sorted(rpc for rpc, method in METHODS.items() if not method.client_streaming))
def test_whatever_was_never_sent_is_sent_again(
    channel: Any, clock: Clock, session: SessionClient, method: str, caplog: pytest.LogCaptureFixture
):
    """Nothing has happened yet, so it does not matter whether the call may be repeated."""
    host = muniment.HostClient(session._calls)
    never_sent = [status(grpc.StatusCode.UNAVAILABLE, message=f"{words}: no one is there") for words in NOT_CONNECTED]
    with answering(channel, method, [*never_sent, RPCS[method].answer]) as asked:
        RPCS[method].python(host, session)

    assert len(asked) == 1 + len(NOT_CONNECTED)
    assert all(each == asked[0] for each in asked)
    assert ["no connection to the server yet" in record.message for record in caplog.records] == [True]


def test_attempts_share_one_deadline(clock: Clock):
    left: list[float] = []
    attempts = Attempts(lambda _: True, timeout=20)
    error = muniment.Unavailable(grpc.StatusCode.UNAVAILABLE, details=muniment.Details(retry_after=5))
    while (pause := attempts.pause_after(error)) is not None:
        left.append(attempts.seconds_left)
        clock.sleep(pause)

    assert left == pytest.approx([20, 14.9, 9.7])


def test_a_call_waits_for_a_connection_no_longer_than_its_connect_timeout(clock: Clock):
    def pauses(message: str) -> list[float]:
        attempts = Attempts(lambda _: True, timeout=20, connect_timeout=2)
        error = muniment.Unavailable(grpc.StatusCode.UNAVAILABLE, message=message)
        begun = len(clock.pauses)
        while (pause := attempts.pause_after(error)) is not None:
            clock.sleep(pause)
        return clock.pauses[begun:]

    assert 1 < sum(pauses(NOT_CONNECTED[0])) < 2
    assert 15 < sum(pauses("the server is stopping")) < 20


@pytest.mark.parametrize("safe", [False, True])
def test_a_mismatch_of_tls_is_not_tried_again(safe: bool):
    message = NOT_CONNECTED[0]

    assert retries.may_help(muniment.Unavailable(grpc.StatusCode.UNAVAILABLE, message=message), safe=safe)
    assert not retries.may_help(muniment.TLSMismatch(grpc.StatusCode.UNAVAILABLE, message=message), safe=safe)
