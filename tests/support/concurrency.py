"""Calls that wait for a lock, calls in the background, calls at one moment."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import grpc

from muniment_server.engines.citus import cluster as citus
from tests.support.services import Outcome

_WAITING = "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
_WAITING_ON_NODES = """
SELECT result
  FROM run_command_on_all_nodes($$
           SELECT string_agg(query, '; ')
             FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'
       $$)
 WHERE result <> ''
"""
"""On a cluster, a row's lock is waited for on the node that has the row."""


@contextmanager
def locked(service, session):
    """Hold the conversation of *session*, as a slow writer does."""
    with service.database.as_owner() as owner, owner.transaction():
        owner.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # on a busy machine the block may take long
        lock_rows(owner, "vault.conversation", "conversation_id = %s", session.conversation_id)
        yield


def lock_rows(connection, table, condition="TRUE", *parameters, strength="UPDATE"):
    """Lock the rows of *table* that meet *condition*, and return how many: there must be some, of one tenant.

    A Citus cluster locks rows only if their tenant is named.
    """
    tenants = connection.execute(f"SELECT DISTINCT tenant FROM {table} WHERE {condition}".encode(), parameters)
    [(tenant,)] = tenants.fetchall()
    lock = f"SELECT FROM {table} WHERE tenant = %s AND {condition} FOR {strength}"
    return connection.execute(lock.encode(), [tenant, *parameters]).rowcount


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
        while blocked != bool(waiting(admin)):
            assert time.monotonic() < end
            time.sleep(0.005)


def waiting(admin):
    """The statements that wait for a lock in the database of *admin*, a superuser's connection."""
    return [query for (query,) in admin.execute(_WAITING_ON_NODES if citus.is_cluster(admin) else _WAITING).fetchall()]


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
