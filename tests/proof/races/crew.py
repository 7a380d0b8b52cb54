"""Threads that begin together."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import psycopg

from muniment_server.domain.classification import Classification, Integrity, Label
from muniment_server.engines.citus import cluster as citus
from tests.support.labels import untrusted
from tests.support.services import Caller, Service

_DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


class Crew:
    """Runs jobs at once: all of them stand at a barrier before the first one begins.

    Calls take *slowness* times as long as on plain Postgres.
    """

    def __init__(self, size: int = 80, *, slowness: float = 1.0) -> None:
        self._threads = ThreadPoolExecutor(size, "crew")
        self._slowness = slowness

    def together(self, *jobs: Callable[[], Any]) -> list[Any]:
        """What each job returns, in their order. Raises what one raised, once all have ended."""
        start = threading.Barrier(len(jobs))

        def begin(job: Callable[[], Any]) -> Any:
            start.wait()
            return job()

        running = [self._threads.submit(begin, job) for job in jobs]
        for future in running:
            future.exception()
        return [future.result() for future in running]

    def stagger(self, dice: random.Random, *, longest: float = 0.002) -> None:
        """Begin up to *longest* seconds later, so that over many runs every instant of the others' calls is met."""
        time.sleep(dice.uniform(0, longest * self._slowness))

    def end(self) -> None:
        """Let the threads go."""
        self._threads.shutdown()


def code_of(call: Callable[..., Any], **fields: Any) -> str:
    """The name of the status code of a call, OK too."""
    try:
        call(**fields)
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


def runs_until(found: Callable[[], int], run: Callable[[int], None], *, most: int, batch: int = 20) -> tuple[int, int]:
    """Run in batches until something is *found*, *most* times at most; how many runs it took, and what was found."""
    for done in range(0, most, batch):
        for number in range(done, done + batch):
            run(number)
        if count := found():
            return done + batch, count
    return most, 0


def deadlocks(owner: psycopg.Connection[Any]) -> int:
    """How many the database has had, on all nodes of a cluster."""
    owner.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
    if citus.is_cluster(owner):
        rows = owner.execute("SELECT result FROM run_command_on_all_nodes(%s)", [_DEADLOCKS]).fetchall()
    else:
        rows = owner.execute(_DEADLOCKS).fetchall()
    return sum(int(count) for (count,) in rows)


def taint_of(label: Label) -> dict[str, int]:
    """The fields of a request that names *label*."""
    return {"taint": int(label.level), "integrity": int(label.integrity)}


def label_of(item: Any) -> Label:
    """The label of an item in an answer."""
    return Label.of(Classification(item.classification), Integrity(item.integrity))


class Opened(Caller):
    """A session, that knows its id."""

    def __init__(self, arena: Service, token: str, session_id: str) -> None:
        super().__init__(arena.channel, token)
        self.session_id = session_id


def opened(arena: Service, agent_id: str, label: Classification | Label, conversation_id: str = "") -> Opened:
    """A new session of an agent that is there: one call, where `Service.session` makes two."""
    label = label if isinstance(label, Label) else untrusted(label)
    answer = arena.host().open_session(agent_id=agent_id, conversation_id=conversation_id, **taint_of(label))
    return Opened(arena, answer.token, answer.session.session_id)
