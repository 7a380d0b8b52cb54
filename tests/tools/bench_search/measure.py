"""What one loaded database is asked: searches through the service, the same statements alone, and what others do."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.rows import RowMaker, namedtuple_row

import muniment
from muniment_server.domain.budgets import Tier
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import AgentNumber, RandomIds, SessionId
from muniment_server.domain.items import ALL_ITEMS, ItemFilter, ItemKind
from muniment_server.domain.principals import SessionIdentity
from muniment_server.items import item_store
from muniment_server.items.item_store import NewVersion
from muniment_server.monitor.policy import Flow
from muniment_server.monitor.session_scope import SessionScope
from muniment_server.postgres.pool import RoleConnection
from muniment_server.search import search
from muniment_server.search.embeddings import EMBEDDER, no_embedder
from muniment_server.search.search import Searcher, filter_parameters
from tests.support.labels import untrusted
from tests.tools.bench.processes import Service

_R = TypeVar("_R")

MOST = 10
"""Results that are asked for."""
_TENANT_AND_AGENT = "SELECT tenant, agent FROM vault.agent WHERE agent_id = %s"
_ILIKE = """
SELECT name, (SELECT count(*) FROM unnest(%(words)s::text[]) AS word WHERE content ILIKE word) AS words
  FROM visible
 WHERE tenant = %(tenant)s AND agent = %(agent)s AND kind = 1 AND content ILIKE ANY (%(words)s)
 ORDER BY words DESC, name
 LIMIT %(limit)s
"""
_TS_RANK_CD = """
SELECT name, ts_rank_cd(stems, query.words) AS score
  FROM visible_chunk,
       (SELECT replace(plainto_tsquery('english', %(query)s)::text, '&', '|')::tsquery AS words) AS query
 WHERE tenant = %(tenant)s AND agent IS NOT DISTINCT FROM %(agent)s AND stems @@ (%(scope)s::tsquery && query.words)
 ORDER BY score DESC, name
 LIMIT %(limit)s
"""
_SIZES = """
SELECT sum(pg_total_relation_size(class.oid)) AS bytes
  FROM pg_class AS class
 WHERE class.relname IN ('chunk', 'stat') AND class.relkind = 'r'
"""


class Times(NamedTuple):
    """Milliseconds of some calls."""

    p50: float
    p95: float


class TimedConnection(RoleConnection):
    """Adds up how long its statements take, in milliseconds."""

    spent: float = 0.0

    def read(self, query: str, parameters: Mapping[str, object], row: RowMaker[_R]) -> list[_R]:
        with self.timed():
            return super().read(query, parameters, row)

    def write_all(self, statements: Sequence[tuple[str, Mapping[str, object]]], row: RowMaker[_R]) -> list[_R]:
        with self.timed():
            return super().write_all(statements, row)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time of the block."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.spent += (time.perf_counter() - begun) * 1000


class TimedCursor(psycopg.Cursor[Any]):
    """A cursor of a TimedConnection."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        if params is None or not isinstance(self.connection, TimedConnection):
            return super().execute(query, params, **options)
        with self.connection.timed():
            return super().execute(query, params, **options)


class Bench:
    """The memories of one agent in one loaded database, as a session at one level sees them."""

    def __init__(self, service: Service, agent_id: str, level: Classification) -> None:
        self._host = muniment.connect(service.address, host_key=service.host_key, timeout=600)
        self._session = self._host.open_session(agent_id, muniment.Classification(int(level)))
        self._connection = TimedConnection.connect(
            service.conninfo(untrusted(level).role), autocommit=True, row_factory=namedtuple_row, prepare_threshold=0
        )  # fmt: skip
        self._connection.apply_settings()
        self._connection.cursor_factory = TimedCursor
        with psycopg.connect(service.conninfo("postgres")) as admin:
            row: Any = admin.execute(_TENANT_AND_AGENT, [agent_id]).fetchone()
        self._of = {"tenant": row[0], "agent": row[1], "scope": f"'@{row[1]}:1'", "limit": MOST}
        identity = SessionIdentity(
            row[0], SessionId(uuid.UUID(self._session.session_id)), untrusted(level), AgentNumber(0), 1
        )
        self._scope = SessionScope(
            self._connection, identity, RandomIds(), method="SearchMemories", flow=Flow.WRITE, audit_reads=False
        )
        self._searcher = Searcher(no_embedder)

    def close(self) -> None:
        """Close what it has opened."""
        self._connection.close()
        self._host.close()

    def backend(self) -> int:
        """The process of the database that runs its statements."""
        return self._connection.backend()

    def similar(self, vector: Sequence[int], wanted: ItemFilter = ALL_ITEMS) -> list[str]:
        """The names of the memories most similar to *vector*, best first."""
        filters = {"kind": ItemKind.MEMORY, "tier": Tier.MEMORY, "authors": None, **filter_parameters(wanted)}
        found = search._similar(self._scope, vector, {**filters, "embedder": EMBEDDER, "model": None})
        assert found is not None
        return list(found.similar)

    def search(self, query: str) -> float:
        """Milliseconds of a search through the service."""
        begun = time.perf_counter()
        self._session.search_memories(query[:1024], max_results=MOST, timeout=600)
        return (time.perf_counter() - begun) * 1000

    def statements(self, query: str) -> float:
        """Milliseconds of its statements alone."""
        return self._spent(lambda: self._searcher.search(self._scope, ItemKind.MEMORY, query, limit=MOST))

    def save(self, content: str) -> float:
        """Milliseconds of the transaction of a new memory and its index."""
        new = NewVersion(ItemKind.MEMORY, str(uuid.uuid4()), content)
        return self._spent(lambda: item_store.save(self._scope, new))

    def ilike(self, query: str) -> float:
        """Milliseconds of ILIKE of any word, by how many words are there."""
        words = [f"%{word}%" for word in dict.fromkeys(re.findall(r"\w+", query.lower()))]
        return self._baseline(_ILIKE, words=words)

    def ts_rank_cd(self, query: str) -> float:
        """Milliseconds of ts_rank_cd of any word that is no stop word, over the same index."""
        return self._baseline(_TS_RANK_CD, query=query)

    def _baseline(self, text: str, **parameters: object) -> float:
        return self._spent(lambda: self._connection.execute(text, {**self._of, **parameters}))

    def _spent(self, call: Callable[[], object]) -> float:
        before = self._connection.spent
        call()
        assert self._connection.spent > before, "nothing of this call is timed"
        return self._connection.spent - before


def index_bytes(service: Service) -> int:
    """What the index of words takes, of all items at all levels."""
    with psycopg.connect(service.conninfo("postgres")) as admin:
        row: Any = admin.execute(_SIZES).fetchone()
    return int(row[0])


def times(call: Callable[[str], float], texts: Iterable[str]) -> Times:
    """What *call*, which tells its milliseconds, takes for each of *texts*."""
    taken = sorted(call(text) for text in texts)
    return Times(taken[len(taken) // 2], taken[min(len(taken) - 1, int(len(taken) * 0.95))])
