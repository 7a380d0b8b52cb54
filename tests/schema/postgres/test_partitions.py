"""The schema on an engine distributed by tenant, for which a clone partitioned by its hash stands in.

Every named query of a principal must touch one partition only: then it runs on one machine.
"""

from __future__ import annotations

import re
import uuid

import psycopg
import pytest
from psycopg import sql

from muniment_server.postgres import migrate, roles
from muniment_server.postgres.pool import operator_conninfo
from tests.support.databases import Database
from tests.support.each import for_each
from tests.support.named_queries import LITERALS, PATH_OF, SERVED, Named, filled, literals_of, named, parameters

NAME = "partitioned"
WHOLE = ("vault.tenant", "vault.migration")
"""Small, and on every machine."""
ONLY_WHOLE = {"lock_tenant"}
"""The queries that read nothing else."""
_TABLE = re.compile(r"^CREATE TABLE (?P<name>[\w.]+) \((?P<body>.*?)^\)(?P<storage>[^;]*);", re.MULTILINE | re.DOTALL)

_OPTIONS = re.compile(r"^ALTER INDEX \w+ RESET \([^;]*\);", re.MULTILINE)
"""Postgres changes no options of a partitioned index. Citus has no partitioned indexes."""


def spread(text: str) -> str:
    """The text of a migration, each table partitioned by the hash of its tenant."""
    return _OPTIONS.sub("", _TABLE.sub(_partitioned, text))


def _partitioned(match: re.Match[str]) -> str:
    name = match["name"]
    if name in WHOLE:
        return match[0]
    parts = "".join(
        f"\nCREATE TABLE {name}_part{number} PARTITION OF {name}"
        f" FOR VALUES WITH (MODULUS 4, REMAINDER {number}){match['storage']};"
        for number in range(4)
    )
    return f"CREATE TABLE {name} ({match['body']}) PARTITION BY HASH (tenant);{parts}"


@pytest.fixture(scope="module")
def partitioned(postgres):
    """A database with the same schema, partitioned."""
    with psycopg.connect(postgres.conninfo(user="postgres", dbname="postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(NAME)))
        admin.execute(
            sql.SQL("GRANT ALL ON DATABASE {} TO {}").format(sql.Identifier(NAME), sql.Identifier(roles.OWNER))
        )
        database = Database(postgres, NAME)
        with psycopg.connect(operator_conninfo(database.admin)) as owner:
            for migration in migrate.migrations():
                owner.execute(spread(migration.text).encode())
        yield database
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(NAME)))


def plan_of(database, query: Named, text: str = "") -> str:
    """How Postgres would run the query as its role, with literals."""
    literals = literals_of(text or query.text)
    with database.connect(query.role) as connection:
        connection.execute(f"SET search_path = {PATH_OF.get(query.role, query.role)}".encode())
        rows = connection.execute(f"EXPLAIN (VERBOSE) {filled(text or query.text, literals)}".encode()).fetchall()
    return "\n".join(line for (line,) in rows)


def partitions(plan: str) -> set[str]:
    """The numbers of the partitions that the plan touches."""
    return set(re.findall(r"_part(\d)\b", plan))


def test_every_table_but_two_is_partitioned(partitioned):
    with partitioned.as_owner() as owner:
        rows = owner.execute(
            "SELECT n.nspname || '.' || relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
            " WHERE (nspname = 'vault' OR nspname LIKE 'muniment%') AND relkind = 'r' AND NOT relispartition"
        ).fetchall()

    assert sorted(name for (name,) in rows) == sorted(WHOLE)


PARTITIONED = [query for query in named(SERVED) if query.name not in ONLY_WHOLE]


@for_each("query", PARTITIONED)
def test_a_query_touches_one_partition(partitioned, query):
    plan = plan_of(partitioned, query)
    if query.role == roles.ERASER:  # its views look the erasure of the tenant up: where is known when it runs
        plan = plan.replace("erasure_part", "")
    found = partitions(plan)

    assert len(found) <= 1
    assert found or "INSERT" in query.text or "FROM" not in query.text


SPOILED = [query for query in PARTITIONED if query.role in ("muniment_internal", roles.CONTROL)]


@for_each("query", SPOILED)
def test_a_query_that_forgot_its_tenant_touches_several(partitioned, query):
    """The test above can fail."""
    changed = re.sub(r"(\w+)\.tenant = %\(tenant\)s", r"\1.tenant IS NOT NULL", query.text)
    if changed == query.text:
        assert "INSERT" in query.text  # it looks for nothing: it only writes its tenant
    else:
        assert len(partitions(plan_of(partitioned, query, changed))) == 4


def test_what_is_saved_is_found_in_the_clone(partitioned):
    """It is a working database: the literals of a save, then a get."""
    with partitioned.as_owner() as owner:
        owner.execute("INSERT INTO vault.tenant (name) SELECT 't' || n FROM generate_series(1, 7) AS n")
        owner.execute(
            "INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled,"
            " user_profile_enabled, memory_char_limit, user_char_limit)"
            " VALUES (7, 5, 'alice', '', '', true, true, 1, 1)"
        )
        owner.execute("INSERT INTO vault.conversation (tenant, agent, conversation_id, taint) VALUES (7, 5, 'c', 1)")
        owner.execute(
            "INSERT INTO vault.session (tenant, agent, session_id, conversation_id, token_hash, expire_time)"
            " VALUES (7, 5, %s, 'c', 'x', now() + interval '1 hour')",
            [uuid.UUID(int=9)],
        )
    texts = {query.name: query.text for query in named(SERVED) if query.role == "muniment_public"}
    ids = {name: f"'{uuid.UUID(int=9)}'::uuid" for text in texts.values() for name in parameters(text)}
    with partitioned.connect("muniment_public") as connection:
        literals = ids | LITERALS | {"tenant": "7", "etag_item": "NULL::uuid", "etag_revision": "NULL::integer"}
        saved = connection.execute(filled(texts["save_item"], literals).encode()).fetchone()
        found = connection.execute(filled(texts["get_item"], literals).encode()).fetchone()

    assert (saved.outcome, saved.revision, found.content) == ("OK", 1, "text")
