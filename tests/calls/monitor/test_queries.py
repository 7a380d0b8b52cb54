"""The composition of queries: what a noun's query may name, and what the monitor puts in front of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.monitor import queries
from muniment_server.monitor.queries import (
    AUDIT_FILES,
    AUDIT_QUERIES,
    SESSION_FILES,
    SESSION_QUERIES,
    TRUSTED,
    session_queries,
)
from muniment_server.postgres import roles
from muniment_server.postgres.queries import flattened, load, read
from tests.support.databases import cloned
from tests.support.each import for_each
from tests.support.labels import untrusted
from tests.support.named_queries import filled, literals_of
from tests.support.parsed import STAND_INS, faults, parsed, standing_in
from tests.support.services import Caller, Service, serving

PUBLIC, RESTRICTED = Classification.PUBLIC, Classification.RESTRICTED

RELATIONS = load("muniment_server.monitor", "scope.sql")
AUDIT_RELATIONS = load("muniment_server.monitor", "audit.sql")
UNTRUSTED = [file for file in (*SESSION_FILES, *AUDIT_FILES) if file not in TRUSTED]
_OF_THE_SESSION = re.compile(
    r"\.session_id = %\(session_id\)s|\.agent (=|IS NOT DISTINCT FROM) \(SELECT session\.agent FROM session\)"
)

UNSCOPED = {
    "a table": ("SELECT item.name FROM session JOIN item ON TRUE", "muniment_public.item"),
    "a table in front": ("SELECT item.name FROM item", "muniment_public.item"),
    "a table of another level": (
        "SELECT item.name FROM session JOIN muniment_restricted.item ON TRUE", "muniment_restricted.item",
    ),
    "a view with its schema": (
        "SELECT visible.name FROM session JOIN muniment_public.visible ON TRUE", "muniment_public.visible",
    ),
    "a quoted table": ('SELECT i.name FROM session JOIN "item" AS i ON TRUE', "muniment_public.item"),
    "a table in escapes": ('SELECT i.name FROM session JOIN U&"\\0069tem" AS i ON TRUE', "muniment_public.item"),
    "a quoted schema": (
        'SELECT i.name FROM session JOIN "muniment_restricted"."item" AS i ON TRUE', "muniment_restricted.item",
    ),
    "a table of the vault": ("SELECT agent.agent FROM vault.agent", "vault.agent"),
    "an unknown relation": ("SELECT hidden.name FROM session JOIN hidden ON TRUE", 'relation "hidden" does not exist'),
    "a table within an expression": (
        "WITH found AS (SELECT item.name FROM item) SELECT found.name FROM found", "muniment_public.item",
    ),
    "a table in a subquery": ("SELECT (SELECT max(item.level) FROM item) FROM session", "muniment_public.item"),
    "only a table": ("SELECT item.name FROM ONLY item", "muniment_public.item"),
    "a table after a comma": ("SELECT item.name FROM session, item", "muniment_public.item"),
    "a table after a table function": (
        "SELECT i.name FROM unnest(%(names)s::text[]) AS n, item AS i", "muniment_public.item",
    ),
    "a table in brackets": ("SELECT i.name FROM (item AS i CROSS JOIN session)", "muniment_public.item"),
    "a whole table": ("TABLE item", "muniment_public.item"),
    "a table, in small letters": ("select item.name from item", "muniment_public.item"),
    "a table after a comment": ("SELECT item.name FROM/**/item", "muniment_public.item"),
    "a table between quotes that are in comments": (
        "SELECT i.name FROM session /* ' */, item AS i /* ' */", "muniment_public.item",
    ),
    "a table after a string with escapes": (
        "SELECT E'\\'', item.name FROM item --' FROM session", "muniment_public.item",
    ),
    "a table that an expression hides elsewhere": (
        "WITH found AS (SELECT item.name FROM item) SELECT (WITH item AS (SELECT 1) SELECT 1 FROM item) FROM found",
        "muniment_public.item",
    ),
    "a table that a view reads": (
        "SELECT storage.items FROM session JOIN storage ON TRUE", "muniment_public.storage",
    ),
    "a write": ("INSERT INTO item (name) SELECT session.agent::text FROM session", "changes or locks rows"),
    "an update": ("UPDATE item SET name = 'x' FROM session", "changes or locks rows"),
    "a delete": ("DELETE FROM item USING session", "changes or locks rows"),
    "a write in an expression": (
        "WITH gone AS (DELETE FROM session RETURNING session.agent) SELECT gone.agent FROM gone",
        "changes or locks rows",
    ),
    "a lock": ("SELECT session.agent FROM session FOR UPDATE", "changes or locks rows"),
    "a lock in a subquery": (
        "SELECT s.agent FROM (SELECT session.agent FROM session FOR KEY SHARE) AS s", "changes or locks rows",
    ),
    "a view of the catalog": ("SELECT a.query FROM pg_stat_activity AS a", "pg_catalog.pg_stat_activity"),
    "a table of the catalog": ("SELECT a.rolpassword FROM pg_authid AS a", "pg_catalog.pg_authid"),
    "a function that reads what it is told": (
        "SELECT query_to_xml('TABLE item', TRUE, TRUE, '') FROM session", "pg_catalog.query_to_xml",
    ),
    "such a function among the relations": (
        "SELECT f.* FROM session, query_to_xml('TABLE item', TRUE, TRUE, '') AS f", "pg_catalog.query_to_xml",
    ),
    "such a function as an aggregate": (
        "SELECT string_agg(visible.name, '' ORDER BY table_to_xml('item', TRUE, TRUE, '')::text) FROM visible",
        "pg_catalog.table_to_xml",
    ),
    "a function with its owner's rights": ("SELECT vault.peek(1, 2, 'x') FROM session", "vault.peek"),
    "a function that changes a setting": (
        "SELECT set_config('role', 'muniment_owner', FALSE) FROM session", "pg_catalog.set_config",
    ),
    "a second statement": ("SELECT session.agent FROM session; TABLE item", "multiple commands"),
    "a bracket that closes what the monitor opened": (
        "SELECT 1) AS answer UNION ALL SELECT count(*) FROM (SELECT session.agent FROM session", "syntax error",
    ),
    "a bracket that is not closed": ("SELECT count(*) FROM (SELECT session.agent FROM session", "syntax error"),
}  # fmt: skip
"""Queries that no noun may run, and what Postgres finds in each."""
COUNTS = {
    "over what is visible": "SELECT count(*) AS found FROM visible",
    "beside the session": "SELECT count(visible.name) AS found FROM session LEFT JOIN visible ON TRUE",
    "in a column": "SELECT (SELECT count(*) FROM visible) AS found",
    "in an expression": "WITH found AS (SELECT count(*) AS found FROM visible) SELECT found.found FROM found",
    "behind a first row": "SELECT 0 AS found FROM session UNION ALL SELECT count(*) FROM visible",
    "of groups": "SELECT 0 AS found FROM session HAVING 0 <= (SELECT count(*) FROM visible)",
}
"""Aggregates, which return a row even if they count nothing."""


@pytest.fixture(scope="module")
def stand_ins(postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection[Any]]:
    """Tables in the place of what sessions may name."""
    with standing_in(postgres, RELATIONS, untrusted(PUBLIC).role) as connection:
        connection.execute("CREATE FUNCTION vault.peek(int, int, text) RETURNS text LANGUAGE sql RETURN 'x'")
        yield connection


@pytest.fixture(scope="module")
def stand_ins_of_audit(postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection[Any]]:
    """The same for the auditor."""
    with standing_in(postgres, AUDIT_RELATIONS, roles.AUDITOR) as connection:
        yield connection


@pytest.mark.parametrize(("text", "found"), UNSCOPED.values(), ids=UNSCOPED)
def test_what_a_nouns_query_may_not_do_is_found(stand_ins: psycopg.Connection[Any], text: str, found: str):
    assert [fault for fault in faults(stand_ins, flattened(text), RELATIONS) if found in fault] != []


@for_each("file", UNTRUSTED)
def test_the_queries_of_a_noun_name_only_what_is_theirs(
    stand_ins: psycopg.Connection[Any], stand_ins_of_audit: psycopg.Connection[Any], file: tuple[str, str]
):
    """Their own relations and harmless functions; and they neither change nor lock rows. See UNTRUSTED."""
    connection, relations = (stand_ins_of_audit, AUDIT_RELATIONS) if file in AUDIT_FILES else (stand_ins, RELATIONS)

    assert {name: found for name, text in load(*file).items() if (found := faults(connection, text, relations))} == {}


def _add_to(noun: tuple[str, str], text: str, monkeypatch: Any) -> None:
    """Add the query `theirs` to a file of a noun."""
    added = f"-- name: theirs\n{text};\n"
    monkeypatch.setattr(queries, "read", lambda *file: read(*file) + (added if file == noun else ""))


def test_the_trusted_files_are_these():
    """Each one counts as part of what must be trusted: think twice before this list grows."""
    assert {f"{package.removeprefix('muniment_server.')}/{file}" for package, file in TRUSTED} == {
        "monitor/session.sql", "items/writes.sql", "search/index.sql",
        "monitor/host.sql", "agents/queries.sql", "agents/erasing.sql", "sessions/queries.sql",
        "blocks/sharing.sql", "releases/queries.sql",
    }  # fmt: skip


# What is composed.


@pytest.mark.parametrize("relation", sorted(RELATIONS.keys()))
def test_every_relation_holds_the_tenant_and_the_session(relation: str):
    """By the session's id, or by the agent of the relation `session`."""
    body = RELATIONS[relation]

    view = relation.removesuffix("_locked").removesuffix("_by_term").removeprefix("own_")
    assert f" WHERE {view}.tenant = %(tenant)s AND " in body
    assert len(_OF_THE_SESSION.findall(body)) == 1
    assert " OR " not in body


@pytest.mark.parametrize("relation", AUDIT_RELATIONS)
def test_every_relation_of_the_auditor_holds_the_tenant(relation: str):
    assert f" WHERE {relation}.tenant = %(tenant)s" in AUDIT_RELATIONS[relation]
    assert ("audit.level <= %(ceiling)s" in AUDIT_RELATIONS[relation]) is (relation == "audit")
    assert " OR " not in AUDIT_RELATIONS[relation]


@for_each("name", SESSION_QUERIES)
def test_every_query_of_a_session_begins_with_the_session(name: str):
    """Once, as it is written in scope.sql."""
    text = SESSION_QUERIES[name]
    locked = f"WITH session AS MATERIALIZED ({RELATIONS['session_locked']})"
    unlocked = f"WITH session AS MATERIALIZED ({RELATIONS['session']})"

    assert text.startswith((locked, unlocked))
    assert text.count("session AS MATERIALIZED (") == 1


@for_each("file", SESSION_FILES)
def test_every_relation_that_a_query_names_stands_in_front_of_it(
    stand_ins: psycopg.Connection[Any], file: tuple[str, str]
):
    """Of those in scope.sql. Otherwise the name would be that of a view, which shows all agents of all tenants."""
    for name, text in load(*file).items():
        named = {relation.removeprefix(f"{STAND_INS}.") for relation in parsed(stand_ins, text).relations}
        in_front = {
            one for one in RELATIONS if f", {one} AS NOT MATERIALIZED ({RELATIONS[one]})" in SESSION_QUERIES[name]
        }

        assert in_front == named & RELATIONS.keys() - {"session"}, name


def test_every_write_locks_the_session():
    """But for those that follow in the transaction of a write, and the audit rows of reads and refusals."""
    locked = {name for name, text in SESSION_QUERIES.items() if RELATIONS["session_locked"] in text}

    assert locked == {
        "save_item", "delete_item", "delete_items", "release_item", "undelete_item", "store_passages", "lock_writes",
    }  # fmt: skip


@pytest.mark.parametrize("name", AUDIT_QUERIES)
def test_every_query_of_the_auditor_reads_restricted_relations(name: str):
    restricted = (f"{one} AS NOT MATERIALIZED ({AUDIT_RELATIONS[one]})" for one in ("audit", "seal"))

    assert any(relation in AUDIT_QUERIES[name] for relation in restricted)


# No row: the session is stale.


@pytest.fixture(scope="module")
def service(postgres: EmbeddedPostgres) -> Iterator[Service]:
    with cloned(postgres) as database, serving(database) as served:
        yield served


def _answer(service: Service, session: Caller, text: str) -> list[Any]:
    """The rows that a query finds for *session* on the connection of PUBLIC."""
    own = {"tenant": f"{session.token.split('_')[2]}::bigint", "session_id": f"'{session.session_id}'::uuid"}
    literals = {**literals_of(text), **own}
    with service.database.connect(untrusted(PUBLIC).role) as connection, connection.transaction(force_rollback=True):
        cursor = connection.execute(filled(text, literals).encode())
        return cursor.fetchall() if cursor.description else []


def test_a_parameter_without_a_value_is_asked_for_by_its_file():
    with pytest.raises(
        KeyError, match=r"fresh_name has no value: add one to LITERALS in tests/support/named_queries\.py"
    ):
        literals_of("SELECT %(fresh_name)s")


@pytest.mark.parametrize("name", SESSION_QUERIES)
def test_a_query_returns_no_row_for_a_session_of_another_level(service: Service, name: str):
    """That is how the call finds out that the taint was raised."""
    rows = _answer(service, service.session(RESTRICTED), SESSION_QUERIES[name])

    assert rows == [], (
        f"{name} returns a row for a stale session, whose call would then answer on the wrong connection. "
        "Select FROM session, and put aggregates into a LATERAL subquery beside it."
    )


@pytest.mark.parametrize("text", COUNTS.values(), ids=COUNTS)
def test_an_aggregate_returns_no_row_for_a_stale_session(monkeypatch: Any, service: Service, text: str):
    _add_to(("muniment_server.items", "queries.sql"), text, monkeypatch)
    counting = session_queries()["theirs"]

    assert _answer(service, service.session(RESTRICTED), counting) == []
    assert len(_answer(service, service.session(PUBLIC), counting)) > 0
