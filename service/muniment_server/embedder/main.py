"""The embedder: a process that computes the embeddings of stored chunks and of queries. Started by the supervisor.

The only process that loads the model, so that workers stay small. Without the extra `semantic` it is never started.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import MunimentError, StorageFull
from muniment_server.embedder.e5.model import Model
from muniment_server.embedder.labels import LabelsInUse
from muniment_server.embedder.lists import EmbeddingLists
from muniment_server.embedder.queue import START, ChunkEmbedder, Position, embed_batch
from muniment_server.embedder.queue_metrics import NextModel, measure_queue
from muniment_server.embedder.remote.configuration import RemoteConfig, RemoteConfigError, RerankerConfig
from muniment_server.embedder.remote.embedding_service import RemoteEmbedding
from muniment_server.embedder.remote.model import RemoteModel
from muniment_server.embedder.remote.reranker import RemoteReranker
from muniment_server.embedder.remote.reranking_service import reranking
from muniment_server.embedder.socket import serve_built_in
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.driver_errors import is_lost_connection, location_of
from muniment_server.postgres.placement import Databases, PlacedDatabase
from muniment_server.postgres.pool import SINGLE
from muniment_server.process import child_main
from muniment_server.process.assignment import Assignment
from muniment_server.process.backoff import Backoff
from muniment_server.process.stop_signal import StopSignal
from muniment_server.telemetry import embedder_metrics as metrics
from muniment_server.telemetry.repeats import Repeats, log_and_count, sum_up

_LOG = logging.getLogger("muniment.embedder")
_POLL_SECONDS = 0.2
"""How often an idle embedder looks for queued chunks."""
_STUCK_SECONDS = 10.0
"""How long one embedding may take before this process counts as hanging: then the supervisor replaces it."""
_SECONDS_OF_WARNINGS = 60.0
"""How long equal warnings are counted before a line sums them up."""
_MAX_BATCHES_IN_A_ROW = 4
"""Batches of one level, after which the next higher level gets a turn."""


def main() -> None:
    """Embed until the input ends or SIGTERM arrives."""
    model = Model()
    child_main.report_ready()
    orders = child_main.receive_orders("embedder")
    if orders is None:
        return
    assignment, stop = orders.assignment, orders.stop
    assert assignment.embedder is not None  # otherwise the supervisor would not have started this process
    child_main.beat_while(lambda: not model.is_stuck(_STUCK_SECONDS))
    databases, disk = assignment.databases(SINGLE), assignment.disk()
    with ExitStack() as stack:
        remote = None
        if assignment.remote is not None:
            remote = _remote_model(RemoteConfig.from_json(assignment.remote), assignment, stack)
        if assignment.reranker is not None:
            _rerank(RerankerConfig.from_json(assignment.reranker), assignment.embedder, stack)
        schedule = EmbeddingSchedule(databases, model.embed_chunk, next_model=remote or no_model)
        if assignment.measures:
            threading.Thread(target=measure_queue, args=(databases, remote or no_model), daemon=True).start()
        stack.enter_context(serve_built_in(assignment.embedder, model.embed_query))
        stack.enter_context(_lists(assignment))
        while not stop.wait(_POLL_SECONDS):
            embed_queued_chunks(schedule, disk, stop)
    databases.close()


def no_model(_: Label) -> None:
    """Which model at an address embeds the texts of a level after the built-in one: none."""


@contextmanager
def _lists(assignment: Assignment) -> Iterator[None]:
    """Keep lists of embeddings until the block ends."""
    databases = assignment.databases(SINGLE)
    with EmbeddingLists(databases, assignment.disk()).running():
        yield
    databases.close()


def _remote_model(config: RemoteConfig, assignment: Assignment, stack: ExitStack) -> NextModel | None:
    """Embed with the model at an address too, until the end of *stack*. None if its key cannot be read."""
    assert assignment.embedder is not None
    metrics.REMOTE_MODEL.labels(str(config.address), config.ceiling.name).set(1)
    for level in config.levels:  # which stays if the model never answers
        if not level.is_trusted:
            metrics.REMOTE_SINCE.labels(level.name).set_to_current_time()
    try:
        model = RemoteModel(config)
    except (RemoteConfigError, OSError) as error:
        _LOG.error("no embeddings by %s: its key cannot be read (%s)", config.address, type(error).__name__)
        return None
    databases = assignment.databases(SINGLE)
    stack.callback(model.close)
    stack.callback(databases.close)
    stack.enter_context(RemoteEmbedding(config, model, databases, assignment.disk()).running(assignment.embedder))
    return lambda level: model.number if level.level.can_flow_to(config.ceiling) else None


def _rerank(config: RerankerConfig, path: str, stack: ExitStack) -> None:
    """Rerank at the address until the end of *stack*. Not if its key cannot be read."""
    metrics.RERANKER.labels(str(config.address), config.ceiling.name).set(1)
    try:
        reranker = RemoteReranker(config)
    except (RemoteConfigError, OSError) as error:
        _LOG.error("no reranking by %s: its key cannot be read (%s)", config.address, type(error).__name__)
        return
    stack.callback(reranker.close)
    stack.enter_context(reranking(config, reranker, path))
    _LOG.info("searches are reranked at %s, up to %s", config.address, config.ceiling.name)


def embed_queued_chunks(schedule: EmbeddingSchedule, disk: Disk, stop: StopSignal) -> None:
    """Embed until no level has anything to do now, or the disk is full."""
    try:
        while not stop.is_set() and not disk.is_full and schedule.embed_next_batch():
            pass
    except StorageFull:
        disk.report_full()
    except MunimentError:  # the database is away, which was logged; the caller tries again
        pass


class _Pause(Backoff):
    """How long a level of a server is skipped after an error, or a server that is away or whose disk is full."""

    first, longest, forgets_after = 5.0, 30.0, 30.0


class EmbeddingSchedule:
    """Which chunks to embed next.

    The lowest level comes first, but the next higher one gets a turn after a few batches. Within a level, servers take
    turns, and agents do.
    """

    def __init__(self, databases: Databases, embed: ChunkEmbedder, *, next_model: NextModel = no_model) -> None:
        self._turns = deque(databases)
        """Whose turn is next is the first."""
        self._embed = embed
        self._next_model = next_model
        self._labels = LabelsInUse()
        self._batches = Counter[Label]()
        self._last: dict[tuple[str, Label], Position] = {}
        self._pauses = defaultdict[tuple[str, Label | None], _Pause](_Pause)
        """Of a level of a server, also after a batch of locked chunks, or of a server. Everything else goes on."""
        self._repeats = Repeats(seconds=_SECONDS_OF_WARNINGS)

    def embed_next_batch(self) -> bool:
        """Embed one batch. False if there is nothing to do now.

        With one server, raises MunimentError if it is away, and StorageFull if its disk is full. With several, the
        others continue.
        """
        sum_up(_LOG, self._repeats)
        passed = False
        for level in Label:
            if self._batches[level] == _MAX_BATCHES_IN_A_ROW:
                self._batches[level], passed = 0, True
            elif self._try_servers(level):
                self._batches[level] += 1
                return True
        return passed

    def _try_servers(self, level: Label) -> bool:
        for _ in range(len(self._turns)):
            placed = self._turns[0]
            self._turns.rotate(-1)
            if not self._is_paused(placed, level) and self._try_level(placed, level):
                return True
        return False

    def _try_level(self, placed: PlacedDatabase, level: Label) -> bool:
        """Embed a batch. A failed statement pauses only its level at its server; a lost connection, the server."""
        try:
            return self._embed_level(placed, level)
        except MunimentError as error:
            is_full, is_only = isinstance(error, StorageFull), len(self._turns) == 1
            if is_full and is_only:
                raise
            if is_full or is_lost_connection(error):
                severity, cause = logging.WARNING, type(error).__name__
                if is_full:
                    severity, cause = logging.ERROR, "its disk is full"
                self._report(severity, f"chunks{placed.suffix} stay queued: {cause}")
                if is_only:
                    raise
                self._pauses[placed.name, None].begin()
                return False
            severity, cause = logging.WARNING, f"{type(error).__name__} ({error.cause})"
        except Exception as error:  # noqa: BLE001 - the other levels continue, and this one is tried again
            severity, cause = logging.ERROR, f"{type(error).__name__}\n{location_of(error)}"
        self._report(severity, f"{level.name} chunks{placed.suffix} stay queued: {cause}")
        self._pauses[placed.name, level].begin()
        return False

    def _embed_level(self, placed: PlacedDatabase, level: Label) -> bool:
        place = placed.name, level

        def before_storing(agent: Position) -> None:
            """Begin the next batch after *agent*, even if its embeddings cannot be stored."""
            self._last[place] = agent

        if not self._labels.has(placed.database, level):
            return False
        with placed.database.connection(level.role, Deadline()) as connection:
            embed_after = partial(
                embed_batch,
                connection,
                self._embed,
                next_model=self._next_model(level),
                before_storing=before_storing,
            )
            batch = embed_after(self._last.get(place, START))
            if batch is None and place in self._last:  # start over at the first agent
                batch = embed_after(START)
        self._last[place] = batch.last if batch else START
        if batch is not None and not batch.stored:  # locked: not embedded again at once
            self._pauses[placed.name, level].begin()
            return False
        return batch is not None

    def _is_paused(self, placed: PlacedDatabase, level: Label) -> bool:
        return any(self._pauses[placed.name, each].remaining for each in (None, level))

    def _report(self, severity: int, text: str) -> None:
        log_and_count(_LOG, self._repeats, severity, text)


if __name__ == "__main__":
    main()
