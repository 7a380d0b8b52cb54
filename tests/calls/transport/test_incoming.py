"""What the server takes from the inside of grpc. If a new version of grpc changes it, these tests fail first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import grpc
import pytest

from muniment_server.domain.errors import Overloaded
from muniment_server.transport.incoming import Arrivals, Rejection
from tests.support.commands import wait_until

METHOD = "/test.Echo/Echo"


def answer(call, _):
    """An echo."""
    return call.next_message()


@pytest.fixture
def arrivals():
    """A server that hands each call to the function in the list."""
    taken: list[Any] = []
    arrived: list[Any] = []

    class Service(grpc.ServiceRpcHandler):
        def service_name(self):
            return "test.Echo"

        def service(self, _):
            behavior: Any = partial(answer)
            behavior.experimental_thread_pool = pool
            return grpc.stream_unary_rpc_method_handler(behavior, None, None)

    def take(call, behavior):
        taken.append(call)
        arrived[0](call, behavior)

    pool = Arrivals(take)
    server = grpc.server(pool, handlers=[Service()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel, arrived, taken
    server.stop(0).wait()


def answered(call, behavior):
    """Receive the message without a thread, and answer it on another."""

    def received(message):
        call.next_message = lambda: message
        threading.Thread(target=call.run, args=(behavior, lambda _: None)).start()

    call.receive(received)


def test_a_message_is_received_and_answered(arrivals):
    channel, arrived, _ = arrivals
    arrived.append(answered)

    assert channel.unary_unary(METHOD)(b"text", timeout=10) == b"text"


def test_a_call_is_refused_without_a_thread(arrivals):
    channel, arrived, _ = arrivals
    arrived.append(lambda call, _: call.refuse(Rejection(Overloaded())))

    with pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary(METHOD)(b"text", timeout=10)

    error: Any = raised.value
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert dict(error.trailing_metadata() or ()).keys() == {"grpc-status-details-bin"}


def test_a_caller_is_cut_off(arrivals):
    channel, arrived, _ = arrivals
    arrived.append(lambda call, _: call.cancel())

    with pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary(METHOD)(b"text", timeout=10)

    assert raised.value.code() is grpc.StatusCode.CANCELLED


def test_the_end_of_a_call_is_reported_once_its_answer_was_sent(arrivals):
    channel, arrived, _ = arrivals
    ended = []

    def take(call, behavior):
        assert call.on_end(lambda: ended.append(call))
        answered(call, behavior)

    arrived.append(take)
    channel.unary_unary(METHOD)(b"text", timeout=10)

    wait_until(lambda: len(ended) == 1, "the call has ended")
    assert not ended[0].on_end(lambda: None)


def test_the_end_of_a_call_whose_caller_goes_away_is_reported(arrivals):
    channel, arrived, taken = arrivals
    messages: list[Any] = []
    ended: list[Any] = []

    def take(call, _):
        call.on_end(lambda: ended.append(call))
        call.receive(messages.append)

    def never() -> Iterator[bytes]:
        threading.Event().wait(20)
        yield b""

    arrived.append(take)
    running = channel.stream_unary(METHOD).future(never())
    wait_until(lambda: taken, "the call has arrived")
    running.cancel()

    wait_until(lambda: ended, "the call has ended")
    wait_until(lambda: messages == [None], "the end of its messages was reported")


def test_messages_of_a_stream_arrive_one_by_one(arrivals):
    channel, arrived, _ = arrivals
    received = []

    def take(call, behavior):
        def next_one(message):
            received.append(message)
            if message is None:
                answered(call, behavior)
            else:
                call.receive(next_one)

        call.receive(next_one)

    arrived.append(take)
    call = channel.stream_unary(METHOD).future(iter([b"a", b"", b"c"]), timeout=10)

    wait_until(lambda: received[:4] == [b"a", b"", b"c", None], "all have arrived")
    call.cancel()


def test_a_fault_on_the_serving_thread_ends_its_call_and_not_the_server(arrivals, caplog):
    channel, arrived, _ = arrivals

    canary = "CANARY"

    def fault(*_):
        raise ValueError(canary)

    arrived.append(fault)
    with pytest.raises(grpc.RpcError):
        channel.unary_unary(METHOD)(b"text", timeout=10)
    arrived[0] = lambda call, _: call.receive(fault)
    with pytest.raises(grpc.RpcError):
        channel.unary_unary(METHOD)(b"text", timeout=10)
    arrived[0] = answered

    assert channel.unary_unary(METHOD)(b"text", timeout=10) == b"text"
    assert "CANARY" not in caplog.text
