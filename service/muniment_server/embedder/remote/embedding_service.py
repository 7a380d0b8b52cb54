"""Embeds with the model at an address what may be sent to it: stored chunks, and queries. Part of the embedder.

Each level has a thread and a connection for each database, and connections to the address and failures of its own, so
that no level waits for a higher one. The threads of levels above the ceiling do not exist.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from muniment_server.background.eraser import is_deleted
from muniment_server.domain.classification import Label
from muniment_server.domain.errors import MunimentError, StorageFull
from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.embedder.labels import LabelsInUse
from muniment_server.embedder.queue import (
    FIRST,
    ChunkPosition,
    NothingStored,
    queue_missing,
)
from muniment_server.embedder.remote.circuit_breaker import CircuitBreaker
from muniment_server.embedder.remote.client import RemoteModelError
from muniment_server.embedder.remote.configuration import RemoteConfig, remote_socket
from muniment_server.embedder.remote.model import RemoteModel
from muniment_server.embedder.remote.queue import RemoteQueue
from muniment_server.embedder.socket import Embed, serve_queries
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.driver_errors import location_of
from muniment_server.postgres.placement import Databases, PlacedDatabase
from muniment_server.postgres.pool import Database
from muniment_server.process.backoff import Backoff
from muniment_server.process.stop_signal import StopSignal
from muniment_server.telemetry.repeats import Repeats, warn_once

_LOG = logging.getLogger("muniment.embedder")
_POLL_SECONDS = 0.2
"""How often an idle thread looks for queued chunks."""
_MISSING_SECONDS = 600.0
"""How often chunks without an embedding are looked for: those of servers without this model, or of other ceilings."""
_FIRST_MISSING_SECONDS = 10.0
"""When they are looked for again after the start. A batch that the built-in model began before this model was known is
stored without being queued for it; no such batch takes this long."""
_SECONDS_AFTER_ERROR = 5.0
"""How long a thread pauses after an error, or until it looks again for what is missing in a database that is away."""
_STOP_SECONDS = 1.0
"""How long stopping waits for the thread."""
_PROBE_SECONDS = 0.9
"""How long the answer to the probe may take: as long as a query waits."""
_QUERIES_AT_ONCE = 4
"""How many queries of one level are sent at a time."""


def query_embedder_of(model: RemoteModel, level: Label, address: str) -> Embed:
    """Embeds the queries of one level. None if the model does not answer in time, or during a pause."""
    breaker = CircuitBreaker(f"a query was not embedded by {address}")
    return lambda text, seconds: breaker.ask(
        lambda: model.embed_query(text, level, seconds), probe=lambda: model.probe(level, _PROBE_SECONDS)
    )


class RemoteEmbedding:
    """Keeps the embeddings of one model at an address complete, up to the ceiling."""

    def __init__(self, config: RemoteConfig, model: RemoteModel, databases: Databases, disk: Disk) -> None:
        self._config = config
        self._model = model
        self._databases = databases
        self._disk = disk
        self._address = str(config.address)
        self._labels = LabelsInUse()
        self._repeats = Repeats()

    @contextmanager
    def running(self, path: str) -> Iterator[None]:
        """Embed until the block ends. Queries are served beside *path*, the embedder's socket."""
        stop = StopSignal()
        thread = threading.Thread(target=self._run, args=(path, stop), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(_STOP_SECONDS)

    def _run(self, path: str, stop: StopSignal) -> None:
        """Learn about the model. Then queue what is missing and start to embed, the lowest level first."""
        if not self._calibrate(stop):
            return
        with ExitStack() as stack:
            for level in self._config.levels:
                is_queued = {placed: self._queue_missing(placed.database, level, stop) for placed in self._databases}
                if stop.is_set():
                    return
                embed = query_embedder_of(self._model, level, self._address)
                stack.enter_context(serve_queries(remote_socket(path, level), embed, at_once=_QUERIES_AT_ONCE))
                for placed, queued in is_queued.items():
                    given = (placed, level, stop, queued)
                    threading.Thread(target=self._embed_level, args=given, daemon=True).start()
            while not stop.wait(_POLL_SECONDS):
                pass

    def _calibrate(self, stop: StopSignal) -> bool:
        backoff = Backoff()
        while not stop.wait(backoff.remaining):
            try:
                self._model.calibrate()
            except RemoteModelError as error:
                seconds = backoff.begin(error.retry_after)
                _LOG.warning("no embeddings by %s, trying again in %d s: %s", self._address, seconds, error)
            else:
                _LOG.info("embedding with the model at %s, up to %s", self._address, self._config.ceiling.name)
                return True
        return False

    def _queue_missing(self, database: Database, level: Label, stop: StopSignal) -> bool:
        """Queue the chunks of *level* that have no embedding and wait for none. False if that is to be repeated soon.

        A database that does not answer is waited for if there is no other.
        """
        position: ChunkPosition | None = FIRST
        while position is not None:
            if stop.is_set():
                return False
            try:
                if not self._labels.has(database, level):
                    return True
                with database.connection(level.role, Deadline()) as connection:
                    position = queue_missing(connection, position, model=self._number)
            except MunimentError as error:  # the database is unavailable, or its disk is full
                if len(self._databases.names) > 1:
                    return isinstance(error, StorageFull)  # that lasts
                stop.wait(Backoff.first)
            except Exception as error:  # noqa: BLE001 - the thread goes on, as the embedder does
                _LOG.error("looking for missing embeddings failed: %s\n%s", type(error).__name__, location_of(error))
                return True
        return True

    def _embed_level(self, placed: PlacedDatabase, level: Label, stop: StopSignal, is_queued: bool) -> None:
        """Embed what is queued in one database. *is_queued*: whether all that was missing at the start is."""
        may_send = partial(self._may_send, placed)
        queues = [RemoteQueue(may_send, is_missing=each) for each in (False, True)]
        next_search = time.monotonic() + (_FIRST_MISSING_SECONDS if is_queued else _SECONDS_AFTER_ERROR)
        while not stop.wait(_POLL_SECONDS):
            if time.monotonic() > next_search:
                is_queued = self._queue_missing(placed.database, level, stop)
                next_search = time.monotonic() + (_MISSING_SECONDS if is_queued else _SECONDS_AFTER_ERROR)
            self._embed_queued(placed.database, level, queues, stop, until=next_search)

    def _may_send(self, placed: PlacedDatabase, tenant: TenantNumber, agent: AgentNumber) -> bool:
        """False for an agent that has been deleted, and for a tenant that the file places at another server.

        Of that, this server has an old copy: texts may have been deleted there since.
        """
        if self._databases.server_of(tenant) != placed.name:
            return False
        with placed.database.connection(roles.ERASER, Deadline()) as connection:
            return not is_deleted(connection, tenant, agent)

    def _embed_queued(
        self,
        database: Database,
        level: Label,
        queues: Sequence[RemoteQueue],
        stop: StopSignal,
        *,
        until: float,
    ) -> None:
        """Embed until there is nothing to do for now, or until that time of `time.monotonic`.

        The queues take turns; an error in one does not end both.
        """
        while not stop.is_set() and not self._disk.is_full and time.monotonic() < until:
            has_more = [self._embed_batch(database, level, queue) for queue in queues]
            if not any(has_more):
                return

    def _embed_batch(self, database: Database, level: Label, queue: RemoteQueue) -> bool:
        """Embed a batch of one queue. False if it pauses, fails or has nothing to do."""
        if queue.backoff.remaining:
            return False
        try:
            if not self._labels.has(database, level):
                return False
            with database.connection(level.role, Deadline()) as connection:
                embed = partial(self._model.embed_chunks, level=level)
                return queue.embed_batch(connection, embed, self._number) is not None
        except RemoteModelError as error:
            seconds = queue.backoff.begin(error.retry_after)
            _LOG.warning("chunks wait for %s, trying again in %d s: %s", self._address, seconds, error)
            return False
        except StorageFull:
            self._disk.report_full()
        except (MunimentError, NothingStored) as error:
            warn_once(_LOG, self._repeats, f"chunks wait for {self._address}: {type(error).__name__}")
        except Exception as error:  # noqa: BLE001 - the thread goes on, as the embedder does
            _LOG.error("chunks stay queued: %s\n%s", type(error).__name__, location_of(error))
        queue.backoff.begin()  # or the same texts would be sent again at once
        return False

    @property
    def _number(self) -> int:
        number = self._model.number
        assert number is not None  # calibrated
        return number
