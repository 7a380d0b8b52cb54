"""The composition of queries: what a noun's query may name, and what the monitor puts in front of it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.monitor import queries
from muniment_server.monitor.names import names
from muniment_server.monitor.queries import (
    AUDIT_FILES,
    AUDIT_QUERIES,
    SESSION_FILES,
    SESSION_QUERIES,
    TRUSTED,
    UnscopedQuery,
    audit_queries,
    check_names,
    session_queries,
)
from muniment_server.postgres.queries import flattened, load, read
from tests.support.databases import cloned
from tests.support.named_queries import LITERALS, filled, parameters
from tests.support.services import Caller, Service, serving

PUBLIC, RESTRICTED = Classification.PUBLIC, Classification.RESTRICTED

RELATIONS = load("muniment_server.monitor", "scope.sql")
AUDIT_RELATIONS = load("muniment_server.monitor", "audit.sql")
UNTRUSTED = [file for file in (*SESSION_FILES, *AUDIT_FILES) if file not in TRUSTED]
_OF_A_NOUN = [(name, text) for file in SESSION_FILES if file not in TRUSTED for name, text in load(*file).items()]
_OF_THE_SESSION = re.compile(
    r"\.session_id = %\(session_id\)s|\.agent (=|IS NOT DISTINCT FROM) \(SELECT session\.agent FROM session\)"
)

UNSCOPED = {
    "a table": "SELECT item.name FROM session JOIN item ON TRUE",
    "a table in front": "SELECT item.name FROM item",
    "a table of another level": "SELECT item.name FROM session JOIN muniment_restricted.item ON TRUE",
    "a view with its schema": "SELECT visible.name FROM session JOIN muniment_public.visible ON TRUE",
    "a quoted table": 'SELECT i.name FROM session JOIN "item" AS i ON TRUE',
    "a quoted schema": 'SELECT i.name FROM session JOIN "muniment_restricted"."item" AS i ON TRUE',
    "a table of the vault": "SELECT agent.agent FROM vault.agent",
    "an unknown relation": "SELECT hidden.name FROM session JOIN hidden ON TRUE",
    "a table within an expression": "WITH found AS (SELECT item.name FROM item) SELECT found.name FROM found",
    "a table in a subquery": "SELECT (SELECT max(item.level) FROM item) FROM session",
    "only a table": "SELECT item.name FROM ONLY item",
    "a table after a comma": "SELECT item.name FROM session, item",
    "a table after a comma and an alias": "SELECT i.name FROM session AS s, item AS i",
    "a table after a table function": "SELECT i.name FROM unnest(%(names)s::text[]) AS n, item AS i",
    "a table after a subquery": "SELECT i.name FROM (SELECT 1) AS s, item AS i",
    "a table in brackets": "SELECT i.name FROM (item AS i CROSS JOIN session)",
    "a whole table": "TABLE item",
    "a write": "INSERT INTO item (name) SELECT session.agent FROM session",
    "an update": "UPDATE item SET name = 'x' FROM session",
    "a delete": "DELETE FROM item USING session",
    "a table, in small letters": "select item.name from item",
    "a table after a line": "SELECT item.name\n  FROM\n       item",
    "a table after a comment": "SELECT item.name FROM/**/item",
    "an expression that hides a table elsewhere": (
        "WITH found AS (SELECT item.name FROM item) SELECT (WITH item AS (SELECT 1) SELECT 1 FROM item) FROM found"
    ),
    "an expression that hides a table of the catalog": "WITH pg_roles AS (SELECT 1) SELECT 1 FROM pg_roles",
    "an expression that hides the session": "WITH session AS (SELECT 1) SELECT session.agent FROM session",
    "a view of the catalog": "SELECT a.query FROM pg_stat_activity AS a",
    "a function that reads what it is told": "SELECT query_to_xml('TABLE item', TRUE, TRUE, '') FROM session",
    "such a function among the relations": "SELECT f.* FROM session, query_to_xml('TABLE item', TRUE, TRUE, '') AS f",
    "a function with its owner's rights": "SELECT vault.peek(1, 2, 'x') FROM session",
    "a function that changes a setting": "SELECT set_config('role', 'muniment_owner', FALSE) FROM session",
    "a lock": "SELECT session.agent FROM session FOR UPDATE",
    "a second statement": "SELECT session.agent FROM session; TABLE item",
    "a string with escapes, which could hide its end": "SELECT E'\\'', item.name FROM item --' FROM session",
    "a string in dollars": "SELECT $$ $$ FROM session",
    "a table between quotes that are in comments": "SELECT i.name FROM session /* ' */, item AS i /* ' */",
    "a bracket that closes what the monitor opened": (
        "SELECT 1) AS answer UNION ALL SELECT count(*) FROM (SELECT session.agent FROM session"
    ),
    "a bracket that is not closed": "SELECT count(*) FROM (SELECT session.agent FROM session",
}
COUNTS = {
    "over what is visible": "SELECT count(*) AS found FROM visible",
    "beside the session": "SELECT count(visible.name) AS found FROM session LEFT JOIN visible ON TRUE",
    "in a column": "SELECT (SELECT count(*) FROM visible) AS found",
    "in an expression": "WITH found AS (SELECT count(*) AS found FROM visible) SELECT found.found FROM found",
    "behind a first row": "SELECT 0 AS found FROM session UNION ALL SELECT count(*) FROM visible",
    "of groups": "SELECT 0 AS found FROM session HAVING 0 <= (SELECT count(*) FROM visible)",
}
"""Aggregates, which return a row even if they count nothing."""


@pytest.mark.parametrize("text", UNSCOPED.values(), ids=UNSCOPED)
def test_a_forbidden_name_in_a_nouns_query_stops_the_server(text: str):
    with pytest.raises(UnscopedQuery):
        check_names("theirs", flattened(text), RELATIONS)


@pytest.mark.parametrize("file", UNTRUSTED, ids=lambda file: ".".join(file))
def test_the_queries_of_a_noun_pass(file: tuple[str, str]):
    for name, text in load(*file).items():
        check_names(name, text, AUDIT_RELATIONS if file in AUDIT_FILES else RELATIONS)


@pytest.mark.parametrize("text", ["SELECT item.name FROM session, item", "SELECT 1 FROM vault.agent"])
@pytest.mark.parametrize(("files", "load_all"), [("SESSION_FILES", session_queries), ("AUDIT_FILES", audit_queries)])
def test_the_server_does_not_start_with_such_a_query(monkeypatch: Any, files: str, load_all: Any, text: str):
    """The texts are composed on import; every process of the server imports them before it listens."""
    _add_to(getattr(queries, files)[-1], text, monkeypatch)

    with pytest.raises(UnscopedQuery, match="theirs"):
        load_all()


def _add_to(noun: tuple[str, str], text: str, monkeypatch: Any) -> None:
    """Add the query `theirs` to a file of a noun."""
    added = f"-- name: theirs\n{text};\n"
    monkeypatch.setattr(queries, "read", lambda *file: read(*file) + (added if file == noun else ""))


def test_the_server_does_not_start_with_a_query_file_of_a_noun_in_no_list(monkeypatch: Any):
    listed = [(package, file) for package, file in SESSION_FILES if str(file) != "lexical.sql"]
    monkeypatch.setattr(queries, "SESSION_FILES", listed)

    with pytest.raises(UnscopedQuery, match=r"^search/lexical\.sql is in no list .* SESSION_FILES"):
        queries.check_files()


def test_a_new_query_file_in_the_folder_of_a_noun_is_found(monkeypatch: Any, tmp_path: Path):
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories" / "counts.sql").touch()
    monkeypatch.setattr("muniment_server.monitor.queries.resources.files", lambda _: tmp_path)

    with pytest.raises(UnscopedQuery, match=r"^memories/counts\.sql "):
        queries.check_files()


def test_the_trusted_files_are_these():
    """Each one counts as part of what must be trusted: think twice before this list grows."""
    assert {f"{package.removeprefix('muniment_server.')}/{file}" for package, file in TRUSTED} == {
        "monitor/session.sql", "items/writes.sql", "search/index.sql",
        "monitor/host.sql", "agents/queries.sql", "agents/erasing.sql", "sessions/queries.sql",
        "blocks/sharing.sql",
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


@pytest.mark.parametrize("name", SESSION_QUERIES)
def test_every_query_of_a_session_begins_with_the_session(name: str):
    """Once, as it is written in scope.sql; and every relation that the query names stands between it and the query."""
    text = SESSION_QUERIES[name]
    locked = f"WITH session AS MATERIALIZED ({RELATIONS['session_locked']})"
    unlocked = f"WITH session AS MATERIALIZED ({RELATIONS['session']})"
    named = names(dict(_texts())[name]).relations & RELATIONS.keys() - {"session"}

    assert text.startswith((locked, unlocked))
    assert text.count("session AS MATERIALIZED (") == 1
    assert {one for one in RELATIONS if f", {one} AS NOT MATERIALIZED ({RELATIONS[one]})" in text} == named


def _texts() -> Iterator[tuple[str, str]]:
    for file in SESSION_FILES:
        yield from load(*file).items()


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
    literals = {**{name: LITERALS.get(name, f"'{uuid.uuid4()}'::uuid") for name in parameters(text)}, **own}
    with service.database.connect(PUBLIC.role) as connection, connection.transaction(force_rollback=True):
        cursor = connection.execute(filled(text, literals).encode())
        return cursor.fetchall() if cursor.description else []


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


# The same, by Postgres itself.


@pytest.fixture(scope="module")
def stand_ins(postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection[Any]]:
    """A role that finds empty tables in the place of the relations of scope.sql, and nothing else."""
    with cloned(postgres) as database, database.as_admin() as admin, admin.transaction(force_rollback=True):
        admin.execute("CREATE SCHEMA stand_ins")
        for relation in RELATIONS.keys() - {"session_locked"}:
            view = relation.removesuffix("_by_term").removeprefix("own_")
            columns = "*, now() AS time" if relation == "session" else "*"
            select = f"SELECT {columns} FROM muniment_public.{view}"
            admin.execute(f"CREATE TABLE stand_ins.{relation} AS {select} WITH NO DATA".encode())
        admin.execute("CREATE ROLE muniment_stand_in")
        admin.execute("GRANT USAGE ON SCHEMA stand_ins TO muniment_stand_in")
        admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA stand_ins TO muniment_stand_in")
        admin.execute("SET LOCAL ROLE muniment_stand_in")
        admin.execute("SET LOCAL search_path = stand_ins")
        yield admin


def _prepares(connection: psycopg.Connection[Any], text: str) -> str:
    """Prepare *text*; return the error, or nothing."""
    parameters = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    numbered = re.sub(r"%\((\w+)\)s", lambda match: f"${parameters.index(match[1]) + 1}", text)
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(f"PREPARE it AS {numbered}".encode())
            connection.execute("DEALLOCATE it")
    except psycopg.Error as error:
        return type(error).__name__
    return ""


@pytest.mark.parametrize(("name", "text"), _OF_A_NOUN, ids=[name for name, _ in _OF_A_NOUN])
def test_postgres_finds_nothing_else_in_the_query_of_a_noun(stand_ins: psycopg.Connection[Any], name: str, text: str):
    """The query alone, where only stand-ins of its relations exist."""
    assert _prepares(stand_ins, text) == ""


@pytest.mark.parametrize("name", [name for name in UNSCOPED if "table" in name and "expression that" not in name])
def test_postgres_finds_a_table_in_what_is_refused(stand_ins: psycopg.Connection[Any], name: str):
    """The proof that it would."""
    assert _prepares(stand_ins, flattened(UNSCOPED[name])) in {"UndefinedTable", "InsufficientPrivilege"}
