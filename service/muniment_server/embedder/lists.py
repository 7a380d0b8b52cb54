"""Keeps lists of embeddings that are alike, so that a search among many reads the nearest lists. Part of the embedder.

Each agent that has many embeddings of one kind at one level has lists of its own there. Their centers are computed only
from these embeddings, by the role of that level. See `lists.sql`.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypeVar
from uuid import UUID

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import MunimentError, StorageFull
from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.embedder.k_means import SAMPLE_OF_LIST, Nearest, center, k_means
from muniment_server.embedder.labels import LabelsInUse
from muniment_server.postgres import queries
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.driver_errors import location_of
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import Database, RoleConnection
from muniment_server.postgres.rows import row_of
from muniment_server.process.stop_signal import StopSignal
from muniment_server.search.embeddings import EMBEDDER
from muniment_server.telemetry.repeats import Repeats, warn_once

_R = TypeVar("_R")

_LOG = logging.getLogger("muniment.embedder")
_QUERIES = queries.load(__package__, "lists.sql")
_POLL_SECONDS = 30.0
"""Seconds between two searches for unfinished lists."""
_LAST_SECONDS = 1.0
"""How long the end of `running` waits for each thread to finish its batch."""
_LISTS_AT_ONCE = 50
"""How many lists one statement reads the signs of."""
_CHUNKS_AT_ONCE = 500
"""How many chunks one statement reads."""
_MOST_MOVED = 50_000
"""How many embeddings one run moves for an agent, so that the others get a turn."""
_MOST_LISTS = 4000
"""A search compares its query with each center: with so many, that costs it as much as the signs of eight new lists."""
_MOST_OF_LIST = 1000
"""How many embeddings of a list its center is computed from, at most: callers could fill one list with equal texts."""


@dataclass(frozen=True, slots=True)
class ListSizes:
    """When an agent gets lists, and how many."""

    least: int = 20_000
    """How many embeddings an agent needs to have lists. Below that, a search reads all signs."""
    size: int = 500
    """The embeddings of a new list, on average."""
    growth: int = 4
    """Once lists have grown by this factor, they are replaced by more lists."""


_SIZES = ListSizes()


@dataclass(frozen=True, slots=True)
class _Owner:
    tenant: TenantNumber
    agent: AgentNumber
    kind: int


@dataclass(frozen=True, slots=True)
class _Count:
    embedded: int


@dataclass(frozen=True, slots=True)
class _Outside:
    any_outside: bool


@dataclass(frozen=True, slots=True)
class _List:
    number: int
    version: int
    signs: str | None
    is_retired: bool
    is_filled: bool


@dataclass(frozen=True, slots=True)
class _Listed:
    list: int | None
    signs: str


@dataclass(frozen=True, slots=True)
class _Chunk:
    name: str
    change_id: UUID
    number: int
    signs: str | None
    """None unless the embedding is to be put into a list."""


_FIRST = _Chunk("", UUID(int=0), 0, None)


class EmbeddingLists:
    """Keeps the lists of all agents. Each level has a thread and connections of its own, so none waits for another."""

    def __init__(self, databases: Databases, disk: Disk, sizes: ListSizes = _SIZES) -> None:
        self._databases = databases
        self._disk = disk
        self._sizes = sizes
        self._labels = LabelsInUse()
        self._repeats = Repeats()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the lists until the block ends."""
        signals = {level: StopSignal() for level in Label}
        threads = [threading.Thread(target=self._run, args=each, daemon=True) for each in signals.items()]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for stop in signals.values():
                stop.set()
            for thread in threads:
                thread.join(_LAST_SECONDS)

    def _run(self, level: Label, stop: StopSignal) -> None:
        while not stop.wait(_POLL_SECONDS):
            for placed in self._databases:
                if not self._disk.is_full:
                    self._maintain(placed.database, level, stop)

    def _maintain(self, database: Database, level: Label, stop: StopSignal) -> None:
        try:
            if self._labels.has(database, level):
                maintain_lists(database, level, stop, self._sizes)
        except StorageFull:
            self._disk.report_full()
        except MunimentError as error:
            warn_once(_LOG, self._repeats, f"lists of embeddings are not kept: {type(error).__name__}")
        except Exception as error:  # noqa: BLE001 - the other servers continue, and this one is tried again
            _LOG.error("lists of embeddings are not kept: %s\n%s", type(error).__name__, location_of(error))


def maintain_lists(database: Database, level: Label, stop: StopSignal, sizes: ListSizes = _SIZES) -> None:
    """Make and complete the lists of one level, agent by agent. Returns early once *stop* is set.

    If the lists of one agent fail, the other agents are still processed, and the last error is raised at the end.
    """
    with _connection(database, level) as connection:
        owners = _rows(connection, "unfinished_lists", _Owner, {**asdict(sizes), "embedder": EMBEDDER})
    failed: Exception | None = None
    for owner in owners:
        if stop.is_set():
            break
        try:
            _AgentLists(database, level, owner, sizes, stop).run()
        except StorageFull:
            raise
        except Exception as error:  # noqa: BLE001 - the remaining agents are still processed
            failed = error
    if failed is not None:
        raise failed


class _AgentLists:
    """Keeps the lists of one agent's items of one kind at one level.

    All progress is in the database, so another run continues where this one ended. After each batch it pauses for as
    long as the batch took, to leave the database to callers.
    """

    def __init__(self, database: Database, level: Label, owner: _Owner, sizes: ListSizes, stop: StopSignal) -> None:
        self._database = database
        self._level = level
        self._owner = {**asdict(owner), "embedder": EMBEDDER}
        self._sizes = sizes
        self._stop = stop

    def run(self) -> None:
        """Add lists if there are too few. Then compute the centers that are missing, and fill the lists."""
        lists = self._grow(self._lists())
        self._center([one for one in lists if not one.is_retired])
        lists = self._lists()
        signs = [one.signs for one in lists if not one.is_retired]
        (outside,) = self._read("find_outside", _Outside)
        if outside.any_outside and signs and None not in signs:
            self._fill(lists)
        self._execute("drop_lists")

    def _lists(self) -> Sequence[_List]:
        return self._read("lists", _List)

    def _grow(self, lists: Sequence[_List]) -> Sequence[_List]:
        (count,) = self._read("count_embedded", _Count)
        wanted = min(count.embedded // self._sizes.size, _MOST_LISTS)
        current = sum(not one.is_retired for one in lists)
        if count.embedded < self._sizes.least or wanted < self._sizes.growth * current:
            return lists
        last = max((abs(one.number) for one in lists), default=0)
        self._execute(
            "add_lists", last=last, wanted=wanted, level=self._level.level, sign=-1 if self._level.is_trusted else 1
        )
        return self._lists()

    def _center(self, lists: Sequence[_List]) -> None:
        """Compute the missing centers: by k-means, or from what the lists contain once they are filled."""
        missing = [one for one in lists if one.signs is None]
        if missing and not any(one.is_filled for one in lists):
            self._store_centers(missing, self._sample_centers(len(missing)))
        elif missing:
            self._execute("retire_empty_lists", numbers=[one.number for one in missing if not one.is_filled])
            filled = [one for one in missing if one.is_filled]
            for at in range(0, len(filled), _LISTS_AT_ONCE):
                self._center_filled(filled[at : at + _LISTS_AT_ONCE])

    def _sample_centers(self, count: int) -> Sequence[str]:
        (found,) = self._read("count_embedded", _Count)
        stride = max(1, found.embedded // (SAMPLE_OF_LIST * count))
        most = 2 * SAMPLE_OF_LIST * count  # callers choose the names, on which the sample depends
        sample = [one.signs for one in self._read("sample_signs", _Listed, stride=stride, most=most)]
        return k_means(sample, count) if sample else []

    def _center_filled(self, lists: Sequence[_List]) -> None:
        members: dict[int | None, list[str]] = {one.number: [] for one in lists}
        numbers = [one.number for one in lists]
        for one in self._read("signs_of_lists", _Listed, numbers=numbers, most=_MOST_OF_LIST):
            members[one.list].append(one.signs)
        filled = [one for one in lists if members[one.number]]
        self._store_centers(filled, [center(members[one.number]) for one in filled])

    def _store_centers(self, lists: Sequence[_List], found: Sequence[str]) -> None:
        made = [
            {"number": one.number, "version": one.version, "signs": signs}
            for one, signs in zip(lists, found, strict=False)  # a small sample has fewer centers
        ]
        self._execute("set_centers", made=json.dumps(made))

    def _fill(self, lists: Sequence[_List]) -> None:
        """Move embeddings that are in no list, or in a retired one, to the nearest other list. Those have centers."""
        retired = [one.number for one in lists if one.is_retired]
        current = [(one.number, one.signs) for one in lists if not one.is_retired and one.signs is not None]
        numbers, nearest = [number for number, _ in current], Nearest([signs for _, signs in current])
        chunks: Sequence[_Chunk] = [_FIRST]
        moved = 0
        while chunks and moved < _MOST_MOVED and not self._stop.is_set():
            began, last = time.monotonic(), chunks[-1]
            position = {"name": last.name, "change_id": last.change_id, "number": last.number}
            chunks = self._read("chunks_outside", _Chunk, **position, retired=retired, most=_CHUNKS_AT_ONCE)
            outside = [(one, one.signs) for one in chunks if one.signs is not None]
            moved += len(outside)
            if outside:
                places = zip(outside, nearest.of([signs for _, signs in outside]), strict=True)
                moves = [_move(chunk, numbers[at]) for (chunk, _), at in places]
                self._execute("fill_lists", found=json.dumps(moves), retired=retired)
            self._stop.wait(time.monotonic() - began)

    def _read(self, query: str, row: type[_R], **parameters: object) -> Sequence[_R]:
        with _connection(self._database, self._level) as connection:
            return _rows(connection, query, row, {**self._owner, **parameters})

    def _execute(self, query: str, **parameters: object) -> None:
        with _connection(self._database, self._level) as connection:
            connection.execute(_QUERIES[query], {**self._owner, **parameters})


def _move(chunk: _Chunk, number: int) -> dict[str, object]:
    return {"name": chunk.name, "change_id": str(chunk.change_id), "number": chunk.number, "list": number}


def _connection(database: Database, level: Label) -> Any:
    return database.connection(level.role, Deadline())


def _rows(connection: RoleConnection, query: str, row: type[_R], parameters: dict[str, Any]) -> Sequence[_R]:
    cursor: Any = connection.cursor(row_factory=row_of(row))
    found: Sequence[_R] = cursor.execute(_QUERIES[query], parameters).fetchall()
    return found
