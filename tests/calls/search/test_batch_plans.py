"""How much the batches look at that go through all chunks: no more than a batch, however many chunks there are.

Counted in rows, which other work on the machine does not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

import pytest

from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.embedder.queue import CHUNKS_AT_ONCE, FIRST, ChunkPosition, next_batch
from muniment_server.postgres import queries
from muniment_server.postgres.pool import RoleConnection
from tests.support.databases import Database, cloned
from tests.support.labels import untrusted
from tests.support.named_queries import LITERALS, numbered, parameters
from tests.support.plans import rows

pytestmark = pytest.mark.plain_postgres("counts rows in EXPLAIN (FORMAT JSON), which has another form on a cluster")

PUBLIC = Classification.PUBLIC
TENANT, AGENT = TenantNumber(7), AgentNumber(150)
LARGE, AGENTS, SMALL = 20_000, 300, 20
MODEL = 2
MOST_EMBEDDINGS = {"queue_missing": 2 * CHUNKS_AT_ONCE, "remove_others": 4 * CHUNKS_AT_ONCE}
"""Those of two models, once; and a second time to remove them."""
QUERIES = {
    **queries.load("muniment_server.embedder", "queue.sql"),
    **queries.load("muniment_server.embedder.remote", "reindexing.sql"),
    **queries.load("muniment_server.search", "reindex.sql"),
}
_CHUNKS = """
INSERT INTO muniment_public.meaning (tenant, agent, kind, name, change_id, piece, embedder, signs, vector)
SELECT {tenant}, agent, 1, lpad(n::text, 6, '0'), gen_random_uuid(), 0, 1, repeat('1', 384)::bit(384), '{{1}}'
  FROM generate_series(1, {agents}) AS agent,
       generate_series(1, CASE agent WHEN {large} THEN {count} ELSE {small} END) AS n
"""
_EMBEDDINGS = """
INSERT INTO muniment_public.remote_embedding
       (tenant, agent, kind, name, change_id, number, model, is_missing, signs, vector)
SELECT tenant, agent, kind, name, change_id, piece, model, FALSE, B'1', '{1}'
  FROM muniment_public.meaning, generate_series(1, 2) AS model
 WHERE (agent + name::integer + model) % 10 <> 0
"""


@pytest.fixture(scope="module", params=[True, False], ids=["analyzed", "not analyzed"])
def is_analyzed(request: pytest.FixtureRequest) -> bool:
    """Whether the tables have statistics. A new database has none for a minute."""
    return bool(request.param)


@pytest.fixture(scope="module")
def world(postgres: EmbeddedPostgres, is_analyzed: bool) -> Iterator[Database]:
    """A large agent among many small ones. Most of their chunks have embeddings by two models."""
    with cloned(postgres) as database, database.as_admin() as admin:
        admin.execute("SET session_replication_role = replica")  # the chunks have no items
        for table in ("meaning", "remote_embedding"):
            admin.execute(f"ALTER TABLE muniment_public.{table} SET (autovacuum_enabled = off)".encode())
        admin.execute(_CHUNKS.format(tenant=TENANT, agents=AGENTS, large=AGENT, count=LARGE, small=SMALL).encode())
        admin.execute(_EMBEDDINGS.encode())
        if is_analyzed:
            admin.execute("VACUUM ANALYZE")
        yield database


BATCHES = {
    "first": FIRST,
    "of the large agent": ChunkPosition(TENANT, AGENT, 1, "010000", UUID(int=0), 0),
    "last": ChunkPosition(TENANT, AgentNumber(AGENTS - 10), 1, "", UUID(int=0), 0),
}
"""The chunk before each."""
ENDS = [
    ("queue_missing", "meaning", ">"), ("queue_missing", "meaning", "<="),
    ("queue_missing", "present", ">"), ("queue_missing", "present", "<="),
    ("remove_others", "remote", ">"), ("remove_others", "remote", "<="),
    ("remove_others", "removed", ">"), ("remove_others", "removed", "<="),
]  # fmt: skip
"""What bounds the rows that each statement reads: by alias, where a batch begins and where it ends."""


@pytest.mark.parametrize("name", BATCHES)
def test_the_end_of_a_batch_is_found_among_its_own_chunks(world: Database, name: str) -> None:
    found = plan(world, QUERIES["last_of_batch"], {**asdict(BATCHES[name]), "most": CHUNKS_AT_ONCE})

    assert rows(found, "meaning") <= CHUNKS_AT_ONCE


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("query", MOST_EMBEDDINGS)
def test_a_batch_reads_its_own_chunks_alone(world: Database, query: str, name: str) -> None:
    chunks, embeddings = read(world, QUERIES[query], BATCHES[name])

    assert chunks <= CHUNKS_AT_ONCE
    assert 0 < embeddings <= MOST_EMBEDDINGS[query]


@pytest.mark.proof
@pytest.mark.parametrize(("query", "alias", "end"), ENDS)
def test_without_either_end_a_batch_reads_the_other_chunks_of_an_agent(
    world: Database, is_analyzed: bool, query: str, alias: str, end: str
) -> None:
    """But without statistics, each row to remove is looked up: that needs no ends."""
    columns = ", ".join(rf"{alias}\.{column}" for column in ("agent", "kind", "name", "change_id", "(?:number|piece)"))
    cut, count = re.subn(rf"\({columns}\)\s+{end} \([^()]*(?:\(\w+\)s[^()]*)+\)", "TRUE", QUERIES[query])

    chunks, embeddings = read(world, cut, BATCHES["of the large agent"])

    assert count == 1
    reads_more = chunks > CHUNKS_AT_ONCE or embeddings > MOST_EMBEDDINGS[query]
    assert reads_more is (is_analyzed or alias != "removed")


def read(database: Database, text: str, after: ChunkPosition) -> tuple[int, int]:
    """How many chunks, and how many embeddings by models at an address, a batch reads that begins after *after*."""
    with database.connect(untrusted(PUBLIC).role) as connection:
        batch = next_batch(connection, after)
    assert batch is not None
    found = plan(database, text, {**batch.parameters, "model": MODEL})
    return rows(found, "meaning"), rows(found, "remote_embedding")


def plan(database: Database, text: str, given: Mapping[str, object]) -> Any:
    """How a statement ran. It is undone."""
    literals = {**LITERALS, **{name: _literal(value) for name, value in given.items()}}
    with RoleConnection.connect(database.conninfo(untrusted(PUBLIC).role), autocommit=True) as connection:
        connection.apply_settings()
        connection.execute(b"PREPARE it AS " + numbered(text))
        arguments = ", ".join(literals[name] for name in parameters(text))
        with connection.transaction(force_rollback=True):
            found = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE it ({arguments})".encode()).fetchall()
    return found[0][0][0]["Plan"]


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"
