"""The life of one call."""

from __future__ import annotations

import threading

import pytest

from muniment_server.domain.errors import DeadlineExceeded
from muniment_server.postgres.deadline import Lifetime


def test_without_a_deadline_there_is_no_limit():
    assert Lifetime().remaining() is None


def test_a_deadline_that_has_passed_leaves_nothing_and_not_less():
    assert Lifetime(-5).remaining() == 0.0


def test_the_end_cancels_what_runs():
    cancelled = threading.Event()
    lifetime = Lifetime()

    lifetime.cancels(cancelled.set)
    lifetime.end()

    assert cancelled.wait(10)


def test_once_given_back_nothing_is_cancelled():
    """The connection may serve another call by then."""
    cancelled = threading.Event()
    lifetime = Lifetime()

    lifetime.cancels(cancelled.set)
    lifetime.cancels(None)
    lifetime.end()

    assert not cancelled.is_set()


def test_giving_back_waits_for_a_cancel_under_way():
    """Otherwise the cancel would hit the next user of the connection."""
    begun, may_finish, order = threading.Event(), threading.Event(), []

    def cancel() -> None:
        begun.set()
        may_finish.wait(10)
        order.append("cancelled")

    lifetime = Lifetime()

    def live() -> None:
        lifetime.cancels(cancel)
        lifetime.end()
        begun.wait(10)
        lifetime.cancels(None)
        order.append("left")

    living = threading.Thread(target=live)
    living.start()
    begun.wait(10)
    may_finish.set()
    living.join(10)

    assert order == ["cancelled", "left"]


def test_the_end_returns_at_once():
    """It comes from the thread that serves all connections."""
    may_finish = threading.Event()
    lifetime = Lifetime()

    def cancel() -> None:
        may_finish.wait(10)

    lifetime.cancels(cancel)
    lifetime.end()
    may_finish.set()

    assert lifetime.remaining() is None


def test_a_life_that_is_over_begins_nothing():
    lifetime = Lifetime()
    lifetime.end()

    with pytest.raises(DeadlineExceeded):
        lifetime.cancels(lambda: None)
