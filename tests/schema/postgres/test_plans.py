"""How much each read and write looks at: bounded, however many items, agents and sessions there are.

Counted in buffers of 8 kB, which other work on the machine does not change.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.support.databases import Database, cloned
from tests.support.labels import untrusted
from tests.support.named_queries import literals_of, numbered, parameters
from tests.support.plans import buffers, rows
from tests.support.services import serving

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
SMALL, LARGE = 200, 20_000
_NOISE = 300
"""Other agents of the tenant, each with a session at every level, blocks, notes and a link."""
_ITEMS = """
INSERT INTO {level}.item (tenant, agent, kind, name, item_id, change_id, content, event_time, create_time)
SELECT %(tenant)s, %(agent)s, %(kind)s, lpad(n::text, 6, '0') || CASE WHEN n %% 100 <> 0 THEN '{level}' ELSE '' END,
       gen_random_uuid(), gen_random_uuid(),
       'word' || n %% 1000 || repeat(' filler', 20),
       CASE WHEN %(kind)s = 4 THEN now() - n * interval '1 s' END, now() - n * interval '1 s'
  FROM generate_series(1, %(count)s) AS n
"""
_AGENTS = """
INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled, user_profile_enabled,
                         memory_char_limit, user_char_limit)
SELECT %(tenant)s, n, 'noise' || n, '', '', true, true, 2200, 1375 FROM generate_series(1, %(count)s) AS n;
INSERT INTO vault.conversation (tenant, agent, conversation_id, taint)
SELECT %(tenant)s, n, 'c' || level, level FROM generate_series(1, %(count)s) AS n, generate_series(1, 4) AS level;
INSERT INTO vault.session (tenant, agent, session_id, conversation_id, token_hash, expire_time)
SELECT %(tenant)s, n, gen_random_uuid(), 'c' || level, uuid_send(gen_random_uuid()), now() + interval '1 day'
  FROM generate_series(1, %(count)s) AS n, generate_series(1, 4) AS level;
INSERT INTO vault.shared_block (tenant, owner, label)
SELECT %(tenant)s, n, 'shared' FROM generate_series(1, %(count)s) AS n;
INSERT INTO vault.block_link (tenant, owner, label, consumer)
SELECT %(tenant)s, n, 'shared', n %% %(count)s + 1 FROM generate_series(1, %(count)s) AS n;
INSERT INTO muniment_public.item (tenant, agent, kind, name, item_id, change_id, content)
SELECT %(tenant)s, n, kind, 'shared' || CASE WHEN i > 1 THEN i::text ELSE '' END, gen_random_uuid(),
       gen_random_uuid(), 'text'
  FROM generate_series(1, %(count)s) AS n, generate_series(2, 3) AS kind, generate_series(1, 5) AS i
"""


class World(NamedTuple):
    """A database with agents of few and of many items, among many others."""

    database: Database
    tenant: int
    sessions: dict[str, str]

    def plan(self, query: str, who: str, **literals: str) -> Any:
        """How a named query ran, the second time, for the agent *who* at RESTRICTED."""
        text = SESSION_QUERIES[query]
        values = {
            **literals_of(text),
            "tenant": f"{self.tenant}::bigint", "session_id": f"'{self.sessions[who]}'::uuid",
            "before_event": "'infinity'::timestamptz", "before_create": "'infinity'::timestamptz",
            **literals,
        }  # fmt: skip
        given = ", ".join(values[name] for name in parameters(text))
        with self.database.connect(untrusted(RESTRICTED).role) as connection:
            connection.execute(b"SET plan_cache_mode = force_generic_plan")  # as the server's connections do
            connection.execute(b"PREPARE it AS " + numbered(text))
            rows: list[Any] = []
            for _ in range(2):
                with connection.transaction(force_rollback=True):
                    rows = connection.execute(
                        f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE it ({given})".encode()
                    ).fetchall()
        return rows[0][0][0]["Plan"]


@pytest.fixture(scope="module", params=[True, False], ids=["analyzed", "not analyzed"])
def analyzed(request: pytest.FixtureRequest) -> bool:
    """Whether the tables have statistics. A new database has none for a minute."""
    return bool(request.param)


@pytest.fixture(scope="module")
def world(postgres: EmbeddedPostgres, analyzed: bool) -> Iterator[World]:
    """Agents `small` and `large`, with so many memories and passages at PUBLIC, and a tenth of them at INTERNAL."""
    with cloned(postgres) as database, serving(database) as service, database.as_owner() as owner:
        for schema in ("vault", *(untrusted(level).role for level in Classification)):
            for (table,) in owner.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]).fetchall():
                owner.execute(f"ALTER TABLE {schema}.{table} SET (autovacuum_enabled = off)".encode())
        sessions = {name: service.session(RESTRICTED, agent_id=name).session_id for name in ("small", "large")}
        (tenant,) = owner.execute("SELECT tenant FROM vault.tenant").fetchone() or (0,)
        _fill(owner, _AGENTS, tenant=tenant, count=_NOISE)
        for name, count in (("small", SMALL), ("large", LARGE)):
            (agent,) = owner.execute("SELECT agent FROM vault.agent WHERE agent_id = %s", [name]).fetchone() or (0,)
            for kind in (1, 4):
                for level, share in ((PUBLIC, 1), (INTERNAL, 10)):
                    text = _ITEMS.replace("{level}", untrusted(level).role)
                    _fill(owner, text, tenant=tenant, agent=agent, kind=kind, count=count // share)
        if analyzed:
            with database.as_admin() as admin:
                admin.execute("VACUUM ANALYZE")
        yield World(database, tenant, sessions)


def _fill(owner: psycopg.Connection[Any], text: str, **values: int) -> None:
    """Run statements with numbers written out."""
    owner.execute((text % {name: str(value) for name, value in values.items()}).encode())


READS: dict[str, tuple[dict[str, str], int]] = {
    "list_items": ({"kind": "1"}, 2500),
    "list_passages": ({}, 1000),
    "get_item": ({"kind": "4", "name": "'000100'"}, 60),
    "list_versions": ({"kind": "4", "name": "'000100'", "owner_agent_id": "NULL", "with_revisions": "FALSE"}, 90),
    "note_versions": ({}, 60),
    "list_blocks": ({}, 120),
    "get_block": ({"name": "'personality'", "owner_agent_id": "NULL"}, 90),
}
"""The reads, their parameters, and the most buffers of one through four levels, a page of 51 where there are pages.

A page of memories of an agent that is much larger than most reads all of its index: Postgres expects few rows of it.
"""
_MAX_ROWS = 300
"""Rows of items: a page of 51 with what shadows them, and some."""
_READS_ALL_WITHOUT_STATISTICS = {"note_versions", "list_blocks"}


@pytest.mark.parametrize("query", READS)
def test_a_read_of_many_items_reads_as_many_rows_as_of_few(world, analyzed, query):
    """Without statistics only the items are bounded: Postgres may find the session by a longer way."""
    literals, most = READS[query]
    few, many = (world.plan(query, who, **literals) for who in ("small", "large"))
    print(
        f"{query}, {analyzed=}: {buffers(few)} buffers, {rows(few, 'item')} items looked at of {SMALL}; "
        f"{buffers(many)} and {rows(many, 'item')} of {LARGE}; sessions {rows(many, 'session')}"
    )

    if analyzed:
        assert buffers(many) <= most
        assert rows(many, "session") <= 4  # by the view, and by the views in it: never those of others
    if not analyzed and query not in _READS_ALL_WITHOUT_STATISTICS:
        assert rows(many, "item") <= _MAX_ROWS


def test_storing_a_hundred_passages_costs_about_as_much_among_many_as_among_few(world, analyzed):
    found = []
    for who in ("small", "large"):
        ids = ((position, str(uuid.uuid4()), str(uuid.uuid4()), str(uuid.uuid4())) for position in range(100))
        batch = [
            {"position": position, "name": name, "item_id": item_id, "change_id": change_id}
            | {"content": "text", "tags": []}
            for position, name, item_id, change_id in ids
        ]
        plan = world.plan("store_passages", who, passages=f"'{json.dumps(batch)}'::jsonb", count="100")
        found.append((buffers(plan), rows(plan, "item")))
    print(f"store_passages of 100, {analyzed=}: {found[0]} buffers and items of {SMALL}, {found[1]} of {LARGE}")

    assert found[1][0] <= 12_000
