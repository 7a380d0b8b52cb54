"""Calls at once are spread over several connections, because each ends at one worker of the server."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import muniment
from muniment import NewPassage
from muniment._channel import CONNECTIONS
from tests.support.commands import wait_until
from tests.support.examples import TOKEN


@pytest.mark.parametrize("at_once", [1, 2, 8])
def test_calls_at_once_have_up_to_four_connections(running, monkeypatch, at_once):
    peers: set[str] = set()
    together = threading.Barrier(min(at_once, CONNECTIONS))
    answer = running.scripted._answer

    def answer_together(method, context):
        peers.add(context.peer())
        together.wait(20)
        return answer(method, context)

    monkeypatch.setattr(running.scripted, "_answer", answer_together)
    with muniment.connect(running.address, token=TOKEN) as session, ThreadPoolExecutor(at_once) as threads:
        for _ in range(2):
            list(threads.map(session.get_memory, ["tea"] * at_once))

    assert len(peers) == min(at_once, CONNECTIONS)


def test_an_import_that_has_ended_leaves_its_connection_to_others(session):
    for _ in range(2):
        session.import_passages([NewPassage("booked")])

    wait_until(lambda: sum(session._calls.channel._under_way) == 0, "no call under way")


@pytest.mark.parametrize("was_called", [False, True], ids=["never called", "called before"])
def test_a_call_after_the_close_says_so(running, was_called):
    """gRPC itself would end the process if the method was never called."""
    with muniment.connect(running.address, token=TOKEN) as session:
        if was_called:
            session.get_memory("tea")

    with pytest.raises(ValueError, match="this client is closed"):
        session.get_memory("tea")


def test_a_client_that_is_closed_while_a_method_is_first_called_says_so(running, monkeypatch):
    made: list[object] = []
    with muniment.connect(running.address, token=TOKEN) as session:
        pool: Any = session._calls.channel
        take = pool.take

        def take_and_close():
            index = take()
            pool.close()
            return index

        monkeypatch.setattr(pool, "take", take_and_close)
        for channel in pool._channels:
            monkeypatch.setattr(channel, "unary_unary", made.append)
        with pytest.raises(ValueError, match="this client is closed"):
            session.get_memory("tea")

    assert made == []


def test_an_import_after_the_close_says_so(running):
    with muniment.connect(running.address, token=TOKEN) as session:
        pass

    with pytest.raises(ValueError, match="this client is closed"):
        session.import_passages([NewPassage("booked")])
