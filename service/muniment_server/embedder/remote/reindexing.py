"""Embeds what is stored with a model at an address before a server uses it: `muniment reindex --embeddings`."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from muniment_server.background.eraser import is_deleted
from muniment_server.domain.classification import Label
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
from muniment_server.embedder.remote.model import RemoteModel
from muniment_server.embedder.remote.queue import MAX_FAILED, Embed, RemoteQueue
from muniment_server.postgres import queries, roles
from muniment_server.postgres.driver_errors import sqlstate_of
from muniment_server.postgres.pool import with_settings
from muniment_server.process.hardening import forbid_core_dumps

_QUERIES = queries.load(__package__, "reindexing.sql")
_MAX_FAILURES = 7
"""After so many in a row it gives up. A chunk at which the model crashes is found within five, and left out."""
_REPORT_SECONDS = 0.5
"""How often it reports, since a long queue takes a while to count."""


class ReindexingError(Exception):
    """Not all was embedded. The text says why, and contains nothing that is stored."""


@dataclass(frozen=True, slots=True)
class Step:
    """What was done at one level so far: chunks were embedded, or other embeddings removed."""

    level: Label
    embedded: int = 0
    waiting: int = 0
    """How many chunks are still to be embedded, up to 100,000."""
    removed: int | None = None
    """None while chunks are embedded."""


def embed_stored(conninfo: str, config: RemoteConfig, *, removes_others: bool) -> Iterator[Step]:
    """Embed, lowest level first, what has no embedding by the model of *config*. Then, perhaps, remove others.

    Raises ReindexingError if it gives up: other embeddings are removed only if all is embedded.
    """
    forbid_core_dumps()
    try:
        with closing(RemoteModel(config)) as model:
            model.calibrate()
            yield from _steps(conninfo, config, model, removes_others=removes_others)
    except RemoteModelError as error:
        raise ReindexingError(f"{config.address} failed: {error}") from None
    except NothingStored:
        raise ReindexingError(f"other transactions were in the way {_MAX_FAILURES} times in a row") from None
    except psycopg.Error as error:  # its text may contain content
        raise ReindexingError(f"the database reported an error ({sqlstate_of(error)})") from None
    except (RemoteConfigError, OSError) as error:
        raise ReindexingError(f"the key of {config.address} cannot be read ({type(error).__name__})") from None


def remove_others(connection: psycopg.Connection[Any], *, model: int | None) -> Iterator[int]:
    """Remove, in batches, the embeddings of the connection's level that are not by *model*; how many in each."""
    after = FIRST
    while (batch := next_batch(connection, after)) is not None:
        yield connection.execute(_QUERIES["remove_others"], {**batch.parameters, "model": model}).rowcount
        after = batch.last


def _steps(conninfo: str, config: RemoteConfig, model: RemoteModel, *, removes_others: bool) -> Iterator[Step]:
    number, failed = model.number, 0
    assert number is not None  # calibrated
    with _acting_in(conninfo, roles.ERASER) as deleted:
        for level in config.levels:
            with _acting_in(conninfo, level.role) as connection:
                failed += yield from _embedded(connection, deleted, model, number, level)
    if failed:
        raise ReindexingError(f"{config.address} failed for some chunks ({failed}), which stay queued")
    for level in Label if removes_others else ():
        removed = 0
        with _acting_in(conninfo, level.role) as connection:
            for count in remove_others(connection, model=number if level.level.can_flow_to(config.ceiling) else None):
                removed += count
                yield Step(level, removed=removed)


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
    level: Label,
) -> Generator[Step, None, int]:
    """Embed what is missing, then what is queued, except texts of deleted agents. Returns how many chunks failed."""
    last: ChunkPosition | None = FIRST
    while last is not None:
        last = queue_missing(connection, last, model=number)
    embedded, failed, reported = 0, 0, 0.0
    embed = partial(model.embed_chunks, level=level)

    def may_send(tenant: TenantNumber, agent: AgentNumber) -> bool:
        return not is_deleted(deleted, tenant, agent)

    for is_missing in (True, False):
        queue = RemoteQueue(may_send, is_missing=is_missing)
        for stored in _batches(queue, connection, embed, number):
            embedded += stored
            if time.monotonic() > reported + _REPORT_SECONDS:
                yield _step(connection, number, level, embedded)
                reported = time.monotonic()
        failed += len(queue.left_out)
    yield _step(connection, number, level, embedded)
    return failed


def _step(connection: psycopg.Connection[Any], number: int, level: Label, embedded: int) -> Step:
    return Step(level, embedded, remote_queue_length(connection, number))


def _batches(queue: RemoteQueue, connection: psycopg.Connection[Any], embed: Embed, number: int) -> Iterator[int]:
    """Embed what is queued: how many embeddings each batch stored. Raises the last of `_MAX_FAILURES` in a row."""
    failures, are_locked = 0, False
    while len(queue.left_out) < MAX_FAILED:
        time.sleep(queue.backoff.remaining)
        try:
            stored = queue.embed_batch(connection, embed, number)
        except (RemoteModelError, NothingStored) as error:
            failures += 1
            if failures == _MAX_FAILURES:
                raise
            are_locked = are_locked or isinstance(error, NothingStored)
            queue.backoff.begin(error.retry_after if isinstance(error, RemoteModelError) else 0.0)
            continue
        if stored:
            failures = 0
            yield stored
        elif stored is None and not are_locked:
            return
        elif stored is None:
            are_locked = False  # another round for them
