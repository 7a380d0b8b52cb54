"""A process that dies again and again is started ever more rarely."""

from __future__ import annotations

import pytest

from muniment_server.process.backoff import StartBackoff


@pytest.fixture
def clock():
    """A clock that the test turns: the list's only number, in seconds."""
    return [1000.0]


def waited(backoff, clock):
    """Seconds until a start is allowed."""
    begun = clock[0]
    while backoff.remaining:
        clock[0] += 0.05
    backoff.begin()
    return clock[0] - begun


def test_the_first_start_is_immediate_and_delays_double_up_to_ten_seconds(clock):
    backoff = StartBackoff(lambda: clock[0])
    delays = [waited(backoff, clock) for _ in range(10)]

    assert delays == pytest.approx([0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10], abs=0.06)


def test_after_a_minute_of_running_the_delays_begin_anew(clock):
    backoff = StartBackoff(lambda: clock[0])
    for _ in range(10):
        waited(backoff, clock)
    clock[0] += 71.0

    assert [waited(backoff, clock) for _ in range(2)] == pytest.approx([0, 0.1], abs=0.06)
