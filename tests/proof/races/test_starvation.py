"""RaiseTaint under writers that never stop: C86 of the threats. A raise that does not come is a raise that failed."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.monitor.queries import HOST_QUERIES, SESSION_QUERIES
from muniment_server.postgres import roles
from tests.proof.races.crew import Crew, opened
from tests.proof.races.mutants import spoiled
from tests.support.labels import untrusted
from tests.support.services import Caller, Service

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_CLIENTS = 64
_HOLDERS = 8
_HELD = "SELECT pg_sleep(0.2)"
"""So long that, on a busy machine too, some writer always holds the lock. In the server a save takes a millisecond, and
writers rarely overlap."""
_TIMEOUT = "3s"
"""After so long, a raise that never comes has shown that it does not."""
_LONG_ENOUGH = "30s"
"""Longer than one takes that comes, on a busy machine too."""


class Loop:
    """Something done again and again, until it is stopped."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self.times = 0

    def run(self, act: Any) -> None:
        """Do it until stopped. Where one who does it fails, all end."""
        try:
            while not self._stopped.is_set():
                act()
                self.times += 1
        finally:
            self.stop()

    def wait_for(self, times: int) -> None:
        """Wait until it has been done so often, or is stopped."""
        while self.times < times and not self._stopped.is_set():
            time.sleep(0.001)

    def stop(self) -> None:
        """Let it end."""
        self._stopped.set()


def test_a_raise_returns_while_64_writers_continue(arena: Service, crew: Crew, agent: str) -> None:
    """Four raises in a row, over gRPC; each writer saves on before, between and after them."""
    arena.agent(agent)
    sessions = [opened(arena, agent, PUBLIC, "busy") for _ in range(_CLIENTS)]
    loop = Loop()
    took: list[float] = []

    def save(session: Caller, i: int) -> None:
        session.save_memory(key=f"{i}", content=f"{loop.times}")

    def raise_it() -> None:
        for level in (INTERNAL, CONFIDENTIAL, RESTRICTED):
            loop.wait_for(loop.times + _CLIENTS)
            begun = time.monotonic()
            arena.host().raise_taint(session_id=sessions[0].session_id, taint=int(level))
            took.append(time.monotonic() - begun)
        loop.wait_for(loop.times + _CLIENTS)
        loop.stop()

    crew.together(raise_it, *(partial(loop.run, partial(save, session, i)) for i, session in enumerate(sessions)))

    assert len(took) == 3  # each returned while the writers went on: they stop after the last
    print(f"raise under {_CLIENTS} looping writers: {', '.join(f'{seconds:.3f}' for seconds in took)} s")


def test_a_raise_is_in_turn_behind_writers_that_hold_the_session_lock_for_long(
    arena: Service, crew: Crew, agent: str
) -> None:
    seconds = _raise_under_holders(arena, crew, agent, _LONG_ENOUGH)

    assert seconds is not None
    print(f"raise under {_HOLDERS} looping transactions of 200 ms: {seconds:.3f} s")


@pytest.mark.proof
def test_a_session_lock_that_writers_share_would_starve_it(arena: Service, crew: Crew, agent: str) -> None:
    """FOR SHARE keeps the old level out as well, but later sharers join past the raise that waits."""
    with spoiled(SESSION_QUERIES, "save_item", "FOR NO KEY UPDATE", "FOR SHARE"):
        seconds = _raise_under_holders(arena, crew, agent, _TIMEOUT)

    assert seconds is None
    print(f"raise under {_HOLDERS} looping transactions, mutant FOR SHARE: not within {_TIMEOUT}")


def _raise_under_holders(arena: Service, crew: Crew, agent: str, timeout: str) -> float | None:
    """How long a raise takes while the session lock is held again and again; None if it takes longer than *timeout*.

    At the level of the database, on connections of the roles, where a transaction can be made as long as needed.
    """
    arena.agent(agent)
    session = opened(arena, agent, PUBLIC)
    loop = Loop()

    def raise_it() -> float | None:
        loop.wait_for(_HOLDERS)
        begun = time.monotonic()
        try:
            _raise(arena, session, timeout)
        except psycopg.errors.QueryCanceled:
            return None
        finally:
            loop.stop()
        return time.monotonic() - begun

    writers = [partial(_hold, arena, session, loop, i) for i in range(_HOLDERS)]
    taken, *_ = crew.together(raise_it, *writers)
    return None if taken is None else float(taken)


def _hold(arena: Service, session: Caller, loop: Loop, i: int) -> None:
    with arena.database.connect(untrusted(PUBLIC).role) as connection:
        loop.run(partial(_save_slowly, arena, connection, session, i))


def _save_slowly(arena: Service, connection: psycopg.Connection[Any], session: Caller, i: int) -> None:
    with connection.transaction():
        connection.execute(
            SESSION_QUERIES["save_item"].encode(),
            {
                **_who(arena, session), "kind": 1, "name": f"{i}", "content": f"{time.monotonic()}", "tags": [],
                "tier": 1, "position": 0, "expire_time": None, "etag_item": None, "etag_revision": None,
                "item_id": arena.ids.new_uuid(), "successor_id": arena.ids.new_uuid(), "method": "SaveMemory",
            },
        )  # fmt: skip
        connection.execute(_HELD)


def _raise(arena: Service, session: Caller, timeout: str) -> None:
    with arena.database.connect(roles.CONTROL) as connection:
        connection.execute("SET lock_timeout = 0")
        connection.execute(f"SET statement_timeout = '{timeout}'".encode())
        key: Any = connection.execute("SELECT host_key_id FROM vault.host_key LIMIT 1").fetchone()
        given = {
            "taint": 2,
            "trusted": False,
            "reason": None,
            "ceiling": 4,
            "host_key_id": key.host_key_id,
            "key_trusted": True,
        }
        raised = connection.execute(HOST_QUERIES["raise_taint"].encode(), {**_who(arena, session), **given})
        assert raised.rowcount == 1


def _who(arena: Service, session: Caller) -> dict[str, object]:
    tenant = int(session.token.split("_")[2])
    return {"tenant": tenant, "session_id": session.session_id, "change_id": arena.ids.new_uuid()}
