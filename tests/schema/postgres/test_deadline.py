"""The deadline of one call."""

from __future__ import annotations

import threading

import pytest

from muniment_server.domain.errors import DeadlineExceeded
from muniment_server.postgres.deadline import Deadline


def test_without_a_deadline_there_is_no_limit():
    assert Deadline().remaining() is None


def test_a_deadline_that_has_passed_leaves_nothing_and_not_less():
    assert Deadline(-5).remaining() == 0.0


def test_expiry_cancels_the_running_statement():
    canceled = threading.Event()
    deadline = Deadline()

    with deadline.canceling(canceled.set):
        deadline.expire()
        assert canceled.wait(10)


def test_nothing_is_canceled_after_the_block():
    """The connection may serve another call by then."""
    canceled = threading.Event()
    deadline = Deadline()

    with deadline.canceling(canceled.set):
        pass
    deadline.expire()

    assert not canceled.is_set()


def test_the_end_of_the_block_waits_for_a_running_cancel():
    """Otherwise the cancel would hit the next user of the connection."""
    begun, may_finish, order = threading.Event(), threading.Event(), []

    def cancel() -> None:
        begun.set()
        may_finish.wait(10)
        order.append("canceled")

    deadline = Deadline()

    def run() -> None:
        with deadline.canceling(cancel):
            deadline.expire()
            begun.wait(10)
        order.append("left")

    running = threading.Thread(target=run)
    running.start()
    begun.wait(10)
    may_finish.set()
    running.join(10)

    assert order == ["canceled", "left"]


def test_expiry_returns_at_once():
    """It comes from the thread that serves all connections."""
    may_finish = threading.Event()
    deadline = Deadline()

    def cancel() -> None:
        may_finish.wait(10)

    with deadline.canceling(cancel):
        deadline.expire()
        may_finish.set()

    assert deadline.remaining() is None


def test_an_expired_deadline_does_not_enter_the_block():
    deadline = Deadline()
    deadline.expire()
    begun = []

    with pytest.raises(DeadlineExceeded), deadline.canceling(lambda: None):
        begun.append("block")

    assert begun == []
