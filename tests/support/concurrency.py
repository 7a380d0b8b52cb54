"""Calls that wait for a lock, calls in the background, calls at one moment."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import grpc

from tests.support.services import Outcome


@contextmanager
def locked(service, session):
    """Hold the conversation of *session*, as a slow writer does."""
    with service.database.as_owner() as owner, owner.transaction():
        owner.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # on a busy machine the block may take long
        owner.execute("SELECT FROM vault.conversation WHERE conversation_id = %s FOR UPDATE", [session.conversation_id])
        yield


def in_background(call, **fields):
    """*call* on a thread of its own; its outcome is in the list returned, once the thread has ended."""
    outcomes = []

    def run():
        try:
            outcomes.append(call(**fields))
        except grpc.RpcError as error:
            outcomes.append(Outcome(error.code(), error.details() or "", (), b""))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcomes


def wait_until_blocked(service, *, blocked=True):
    """Until a statement of the server waits for a lock, or none does any more."""
    end = time.monotonic() + 60
    with service.database.as_admin() as admin:
        while blocked != bool(
            admin.execute(
                "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ).fetchall()
        ):
            assert time.monotonic() < end
            time.sleep(0.005)


def together(*calls):
    """Run the calls at one moment, each on a thread of its own."""
    barrier = threading.Barrier(len(calls))

    def run(call):
        barrier.wait(20)
        call()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
