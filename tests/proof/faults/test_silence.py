"""The clients of all languages give up a connection that stays open, and through which nothing comes any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from tests.proof.faults.callers import Caller, made_clients
from tests.proof.faults.processes import wait_until
from tests.proof.faults.relay import Relay

pytestmark = pytest.mark.proof
_CALLS = 20_000
"""More than are made until the slowest has come back."""
_STEP = {"as": "host", "call": "AgentService.ListAgents", "request": {}, "deadline_ms": 5_000, "may_be_lost": True}
_SLOWEST = 180.0
Through = tuple[Caller, Relay]


@pytest.fixture
def start(server, tmp_path) -> Iterator[Callable[[bool], list[Through]]]:
    """Starts the callers of all clients, each through a relay, which may be silent from the beginning."""
    with ExitStack() as stack:

        def started(silent: bool) -> list[Through]:
            through = []
            for client in made_clients():
                relay = Relay(server.address, silent=silent)
                stack.callback(relay.close)
                at = {"address": relay.address, "host_key": server.host_key}
                caller = Caller(client, [_STEP] * _CALLS, tmp_path, **at)
                stack.callback(caller.end)
                through.append((caller, relay))
            return through

        yield started


def test_a_connection_whose_server_never_says_a_word_is_given_up(start):
    through = start(silent=True)
    for caller, relay in through:
        wait_until(partial(getattr, relay, "accepted"), f"a connection of {caller.name}", seconds=_SLOWEST)
        relay.speak()
    _all_succeed_again(through)


def test_a_connection_that_falls_silent_is_given_up(start):
    through = start(silent=False)
    _all_succeed_again(through)
    for _, relay in through:
        relay.fall_silent()
        relay.speak()
    _all_succeed_again(through)


def _all_succeed_again(through: list[Through]) -> None:
    """More calls than can have been answered before, and were not read yet."""
    goals = [(caller, caller.succeeded() + 100) for caller, _ in through]
    for caller, goal in goals:
        wait_until(partial(_has, caller, goal), f"100 answers for {caller.name}", seconds=_SLOWEST)


def _has(caller: Caller, answers: int) -> bool:
    return caller.made(0) and caller.succeeded() >= answers
