"""How much a search looks at among thousands of items, and that `make bench-search` loads what the service writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import pairwise
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import RowMaker, namedtuple_row, tuple_row

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_index
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import AgentNumber, RandomIds
from muniment_server.domain.items import ItemKind
from muniment_server.domain.principals import SessionIdentity
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.monitor.policy import Flow
from muniment_server.monitor.queries import SESSION_QUERIES
from muniment_server.monitor.session_scope import SessionScope
from muniment_server.postgres.pool import RoleConnection
from muniment_server.search.embeddings import no_embedder
from muniment_server.search.reindex import reindex
from muniment_server.search.search import Searcher
from tests.support.databases import Database, cloned
from tests.support.labels import untrusted
from tests.support.named_queries import LITERALS, numbered, parameters
from tests.support.plans import buffers
from tests.support.services import new_host_key
from tests.tools.bench_search.loading import load, new_owners

_R = TypeVar("_R")

pytestmark = pytest.mark.plain_postgres(
    "looks at plans of one Postgres, for rows that `make bench-search` loads into one"
)
ITEMS = 4000
MAX_BUFFERS = {"corpus": 5000, "scored": 3000}
"""Of the words of a query, and of its matches, by a name in the text."""


class ExplainedConnection(RoleConnection):
    """Keeps the plan of each query that is read: the generic one, as the server runs it."""

    plans: list[tuple[str, Any]]

    def read(self, query: str, parameters: Mapping[str, object], row: RowMaker[_R]) -> list[_R]:
        self.explain(query, parameters)
        return super().read(query, parameters, row)

    def explain(self, query: str, values: Mapping[str, object]) -> None:
        with psycopg.ClientCursor(self, row_factory=tuple_row) as plain:
            plain.execute(b"PREPARE explained AS " + numbered(query))
            types = plain.execute("SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'explained'")
            given = sql.SQL(", ").join(
                sql.Composed([sql.Literal(values[name]), sql.SQL("::"), sql.SQL(one)])
                for name, one in zip(parameters(query), types.fetchall()[0][0], strict=True)
            )
            explained = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE explained ({})"
            plain.execute(sql.SQL(explained).format(given))
            self.plans.append((query, plain.fetchall()[0][0][0]["Plan"]))
            plain.execute("DEALLOCATE explained")


def texts() -> Iterator[str]:
    """Words of which each next one is a little rarer."""
    return (" ".join(f"word{number % every}x{every}" for every in range(2, 40)) for number in range(ITEMS * 2))


@pytest.fixture(scope="module")
def loaded(postgres: EmbeddedPostgres) -> Iterator[Database]:
    with cloned(postgres) as database:
        new_host_key(database, "acme", Classification.RESTRICTED)  # and so the tenant
        load(database.conninfo, texts(), owners=new_owners(database.conninfo, 2), count=ITEMS, done=lambda _: None)
        yield database


@pytest.mark.proof
def test_what_is_loaded_is_what_the_service_would_write(loaded):
    before = _index(loaded)

    with connect_operator(loaded.admin) as operator:
        assert set(broken_index(operator).values()) == {0}
        list(reindex(operator.connection))

    assert _index(loaded) == before
    assert len(before) == ITEMS


@pytest.mark.proof
@pytest.mark.parametrize("level", [Classification.PUBLIC, Classification.RESTRICTED])
def test_a_search_among_many_items_reads_only_a_part_of_them(loaded, level):
    with loaded.as_owner() as owner:
        (session,) = owner.execute(
            "SELECT tenant, session_id FROM vault.session WHERE agent = 1 AND conversation_id = %s", [f"load{level:d}"]
        ).fetchall()
    with closing(
        ExplainedConnection.connect(
            loaded.conninfo(untrusted(level).role),
            autocommit=True,
            row_factory=namedtuple_row,
        )
    ) as connection:
        connection.apply_settings()
        connection.plans = []
        identity = SessionIdentity(session.tenant, session.session_id, untrusted(level), AgentNumber(0), 1)
        scope = SessionScope(
            connection, identity, RandomIds(), method="SearchMemories", flow=Flow.READ, audit_reads=False
        )
        query = "word7x38 word3x20 word1x2"
        found = Searcher(no_embedder).search(scope, ItemKind.MEMORY, query, limit=10).matches

    assert len(found) == 10
    assert len(connection.plans) == 2
    for text, plan in connection.plans:
        (most,) = [most for name, most in MAX_BUFFERS.items() if f"{name} AS" in text]
        print(f"{level.name}: {buffers(plan)} buffers of at most {most}")
        assert buffers(plan) <= most


def test_no_index_serves_the_names_that_a_search_is_limited_to(loaded):
    """Postgres takes a range of names for selective, though most searches have none: it read the tenant's chunks."""
    conditions = [line for line in _plan(loaded, "search_items") if "Index Cond" in line]

    assert any("tenant = $" in condition for condition in conditions)
    assert not [condition for condition in conditions if "name >=" in condition]


def test_a_sample_of_the_chunks_is_read_from_its_index(loaded):
    """The index has a condition that only this search states."""
    plan = _plan(loaded, "search_terms")

    assert [line for line in plan if "Index Scan using chunk_sample" in line]


def test_the_neighbors_of_a_turn_are_read_at_one_place_of_an_index(loaded):
    """Without the agent, each lookup would look for the thread among those of every agent of the tenant."""
    plan = _plan(loaded, "search_items")
    lookups = [below for line, below in pairwise(plan) if "Index Scan" in line and "using chunk_thread" in line]

    assert lookups
    assert all({"tenant", "agent", "thread", "place"} <= set(re.findall(r"\w+", lookup)) for lookup in lookups)


def _plan(database: Database, query: str) -> list[str]:
    """How a query is planned if the tables are much larger: by indexes that give their rows in order."""
    text = SESSION_QUERIES[query]
    given = ", ".join(LITERALS.get(name, "NULL") for name in parameters(text))
    with database.connect(untrusted(Classification.PUBLIC).role) as connection:
        for setting in ("enable_seqscan", "enable_bitmapscan"):
            connection.execute(f"SET {setting} = off".encode())
        connection.execute(b"SET plan_cache_mode = force_generic_plan")
        connection.execute(b"PREPARE it AS " + numbered(text))
        return [line for (line,) in connection.execute(f"EXPLAIN EXECUTE it ({given})".encode()).fetchall()]


def _index(database: Database) -> set[str]:
    with database.as_owner() as owner:
        rows: list[Any] = []
        for level in Classification:
            rows += owner.execute(f"SELECT md5(chunk::text) FROM {untrusted(level).role}.chunk".encode()).fetchall()
    return {digest for (digest,) in rows}
