"""Embeds what is stored with a model at an address before a server uses it: `muniment reindex --embeddings`.

A process of its own, since operators' commands send no texts to another program. Its input is a line of JSON: how to
connect as an operator, the model, and whether to remove other embeddings. It exits when its input ends. Its output is a
line for each step, and one with the error if it gives up.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar

import psycopg

from muniment_server.background.eraser import is_deleted
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.embedder.queue import (
    FIRST,
    ChunkPosition,
    NothingStored,
    next_batch,
    queue_missing,
    remote_queue_length,
)
from muniment_server.embedder.remote.client import RemoteModelError
from muniment_server.embedder.remote.configuration import RemoteConfig, RemoteConfigError
from muniment_server.embedder.remote.model import IsWaiting, RemoteModel
from muniment_server.embedder.remote.queue import MAX_FAILED, RemoteQueue
from muniment_server.postgres import queries, roles
from muniment_server.postgres.driver_errors import sqlstate_of
from muniment_server.postgres.pool import with_settings
from muniment_server.process.backoff import Backoff
from muniment_server.process.hardening import forbid_core_dumps
from muniment_server.search.embeddings import Vector

_QUERIES = queries.load(__package__, "reindexing.sql")
_T = TypeVar("_T")
_MAX_FAILURES = 7
"""After so many in a row it gives up. A chunk at which the model crashes is found within five, and left out."""
_REPORT_SECONDS = 0.5
"""How often it reports, since a long queue takes a while to count."""


class _ChunksFailed(Exception):
    """Chunks failed when they were sent alone. They stay queued."""


def remove_others(connection: psycopg.Connection[Any], *, model: int | None) -> Iterator[int]:
    """Remove, in batches, the embeddings of the connection's level that are not by *model*; how many in each."""
    after = FIRST
    while (batch := next_batch(connection, after)) is not None:
        yield connection.execute(_QUERIES["remove_others"], {**batch.parameters, "model": model}).rowcount
        after = batch.last


def main() -> None:
    """Embed what the input says."""
    logging.getLogger("psycopg").setLevel(logging.CRITICAL + 1)  # it would log messages of the database
    forbid_core_dumps()
    orders = json.loads(sys.stdin.readline())
    threading.Thread(target=_exit_with_input, daemon=True).start()
    embed(orders)


def embed(orders: Mapping[str, Any]) -> None:
    """Embed as *orders* say, and report."""
    config = RemoteConfig.from_json(orders["remote"])
    try:
        with closing(RemoteModel(config)) as model:
            for step in _steps(orders["conninfo"], config, model, removes_others=orders["removes_others"]):
                _write(step)
    except RemoteModelError as error:
        _write({"error": f"{config.address} failed {_MAX_FAILURES} times in a row: {error}"})
    except _ChunksFailed as error:
        _write({"error": f"{config.address} failed for some chunks ({error}), which stay queued"})
    except NothingStored:
        _write({"error": f"other transactions were in the way {_MAX_FAILURES} times in a row"})
    except psycopg.Error as error:  # its text may contain content
        _write({"error": f"the database reported an error ({sqlstate_of(error)})"})
    except (RemoteConfigError, OSError) as error:
        _write({"error": f"the key of {config.address} cannot be read ({type(error).__name__})"})


def _exit_with_input() -> None:
    sys.stdin.read()
    os._exit(1)


def _write(step: Mapping[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(step)}\n")
    sys.stdout.flush()


def _steps(
    conninfo: str, config: RemoteConfig, model: RemoteModel, *, removes_others: bool
) -> Iterator[Mapping[str, object]]:
    """Embed the lowest level first. Other embeddings are removed when all is embedded. Raises _ChunksFailed."""
    _with_retries(model.calibrate)
    number, failed = model.number, 0
    assert number is not None  # calibrated
    with _acting_in(conninfo, roles.ERASER) as deleted:
        for level in config.levels:
            with _acting_in(conninfo, level.role) as connection:
                failed += yield from _embedded(connection, deleted, model, number, level)
    if failed:
        raise _ChunksFailed(failed)
    for level in Classification if removes_others else ():
        removed = 0
        with _acting_in(conninfo, level.role) as connection:
            for count in remove_others(connection, model=number if level.can_flow_to(config.ceiling) else None):
                removed += count
                yield {"level": int(level), "removed": removed}


@contextmanager
def _acting_in(conninfo: str, schema: str) -> Iterator[psycopg.Connection[Any]]:
    """The operator's connection, on which unqualified names are those of *schema*.

    No transaction is open while the model is waited for.
    """
    with psycopg.connect(with_settings(conninfo, {"search_path": schema}), autocommit=True) as connection:
        yield connection


def _embedded(
    connection: psycopg.Connection[Any],
    deleted: psycopg.Connection[Any],
    model: RemoteModel,
    number: int,
    level: Classification,
) -> Generator[Mapping[str, object], None, int]:
    """Embed what is missing, then what is queued, except texts of deleted agents. Returns how many chunks failed."""
    last: ChunkPosition | None = FIRST
    while last is not None:
        last = queue_missing(connection, last, model=number)
    embedded, failed, reported = 0, 0, 0.0

    embed = partial(model.embed_chunks, level=level)

    def may_send(tenant: TenantNumber, agent: AgentNumber) -> bool:
        return not is_deleted(deleted, tenant, agent)

    for is_missing in (True, False):
        queue = RemoteQueue(may_send, is_missing=is_missing, tries_again=False)
        for stored in _batches(queue, connection, embed, number):
            embedded += stored
            if time.monotonic() > reported + _REPORT_SECONDS:
                yield _step(connection, number, level, embedded)
                reported = time.monotonic()
        failed += queue.failed
    yield _step(connection, number, level, embedded)
    return failed


def _step(
    connection: psycopg.Connection[Any], number: int, level: Classification, embedded: int
) -> Mapping[str, object]:
    return {"level": int(level), "embedded": embedded, "waiting": remote_queue_length(connection, number)}


def _batches(
    queue: RemoteQueue,
    connection: psycopg.Connection[Any],
    embed: Callable[[Sequence[str], IsWaiting], Sequence[Vector]],
    number: int,
) -> Iterator[int]:
    """Embed what is queued: how many embeddings each batch stored. Raises the last of `_MAX_FAILURES` in a row."""
    failures, are_locked = 0, False
    while queue.failed < MAX_FAILED:
        try:
            stored = queue.embed_batch(connection, embed, number)
        except (RemoteModelError, NothingStored) as error:
            failures += 1
            if failures == _MAX_FAILURES:
                raise
            are_locked = are_locked or isinstance(error, NothingStored)
            time.sleep(queue.backoff.begin(error.retry_after if isinstance(error, RemoteModelError) else 0.0))
            continue
        if stored:
            failures = 0
            yield stored
        elif stored is None and not are_locked:
            return
        elif stored is None:
            are_locked = False  # another round for them


def _with_retries(act: Callable[[], _T]) -> _T:
    """Call *act*, and again after failures: after the last of `_MAX_FAILURES` in a row, raise it."""
    backoff = Backoff()
    for _ in range(_MAX_FAILURES - 1):
        try:
            return act()
        except RemoteModelError as error:
            time.sleep(backoff.begin(error.retry_after))
    return act()


if __name__ == "__main__":
    main()
