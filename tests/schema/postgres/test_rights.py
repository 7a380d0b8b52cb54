"""The grants, tried: every role does everything to every table and view, and only the matrix lets it."""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict

import psycopg
import pytest

from muniment_server.monitor import grants
from muniment_server.postgres import roles
from tests.support.each import for_each

LOCKS = ("FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE")


def relations(database):
    """Every table and view of ours: name, whether it is a table, and its columns that may be written."""
    with database.as_owner() as owner:
        rows = owner.execute(
            "SELECT n.nspname || '.' || c.relname AS name, c.relkind = 'r' AS is_table, a.attname,"
            "       format_type(a.atttypid, a.atttypmod) AS type, a.attgenerated <> '' OR a.attidentity <> '' AS made"
            "  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            "  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
            " WHERE (n.nspname = 'vault' OR n.nspname LIKE 'muniment%') AND c.relkind IN ('r', 'v')"
            " ORDER BY 1, a.attnum"
        ).fetchall()
    for (name, is_table), columns in itertools.groupby(rows, key=lambda row: row[:2]):
        yield name, is_table, [(column.attname, column.type, column.made) for column in columns]


def tries(name, is_table, columns):
    """(what is tried, the statement): each without effect where it is allowed."""
    yield "SELECT", f"SELECT FROM {name} WHERE false"
    written = [(column, kind) for column, kind, made in columns if not made]
    nulls = ", ".join(f"NULL::{kind}" for _, kind in written)
    names = ", ".join(column for column, _ in written)
    yield "INSERT", f"INSERT INTO {name} ({names}) SELECT {nulls} WHERE false"
    yield "DELETE", f"DELETE FROM {name} WHERE false"
    yield "TRUNCATE", f"TRUNCATE {name}"
    for column, _, made in columns:
        yield f"SELECT ({column})", f"SELECT {column} FROM {name} WHERE false"
        if not made:
            yield f"UPDATE ({column})", f"UPDATE {name} SET {column} = NULL WHERE false"
    for lock in LOCKS:
        yield lock, f"SELECT FROM {name} WHERE false {lock}"


def works(connection, statement):
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement.encode())
    except psycopg.Error:
        return False
    return True


def rights_of(role):
    """What the matrix gives *role*, by table and view."""
    found = defaultdict(set)
    for fact in grants.matrix():
        if fact.subject == role:
            found[fact.object].add(fact.fact)
    return found


_WRITTEN = (".erasing_stat", ".erasing_storage", ".erasing_embedding", ".erasing_embedding_list")
"""The views through which the eraser writes."""


def expected(name, rights, is_table, tried):
    """Whether the matrix allows it. Only the eraser writes through a view; a lock needs both SELECT and an UPDATE."""
    selects = {right for right in rights if right.startswith("SELECT")}
    if tried in LOCKS:
        return bool(selects) and any(right.startswith("UPDATE") for right in rights)
    if tried == "SELECT":
        return bool(selects)
    if tried.startswith("SELECT ("):
        return "SELECT" in rights or tried in rights
    writes = is_table or tried == "DELETE" or name.endswith(_WRITTEN)
    return writes and tried in rights


@pytest.mark.parametrize("role", roles.SERVING)
def test_a_role_can_do_what_the_matrix_says_and_nothing_else(migrated, role):
    rights = rights_of(role)
    wrong = []
    count = 0
    with migrated.connect(role) as connection:
        for name, is_table, columns in relations(migrated):
            for tried, statement in tries(name, is_table, columns):
                count += 1
                allowed = expected(name, rights[name], is_table, tried)
                if works(connection, statement) != allowed:
                    wrong.append(f"{tried} on {name}: {'refused' if allowed else 'allowed'}")

    assert wrong == []
    assert count > 1000


@for_each("role", roles.SERVING)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE public.t (x int)",
        "CREATE TABLE t (x int)",
        "CREATE TEMP TABLE t (x int)",
        "CREATE SCHEMA s",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql RETURN 1",
        "CREATE FUNCTION public.f() RETURNS int LANGUAGE sql RETURN 1",
        "CREATE ROLE r",
        "SET ROLE muniment_owner",
        "SET SESSION AUTHORIZATION postgres",
        "ALTER ROLE muniment_public SUPERUSER",
        "COPY muniment_public.item TO PROGRAM 'cat'",
        "SELECT pg_read_file('/etc/passwd')",
        "SET session_replication_role = replica",
        "ALTER TABLE muniment_public.item DISABLE TRIGGER ALL",
        "CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz LANGUAGE sql STABLE RETURN now()",
    ],
)
def test_a_role_can_create_nothing_and_become_no_other_role(migrated, role, statement):
    with migrated.connect(role) as connection:
        assert not works(connection, statement)


@pytest.mark.parametrize("role", roles.LABELS)
def test_c72_a_role_cannot_become_another(migrated, role):
    with migrated.connect(role) as connection:
        assert [other for other in roles.ALL if other != role and works(connection, f"SET ROLE {other}")] == []


def test_the_owner_cannot_log_in(migrated):
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(migrated.conninfo(roles.OWNER))


def test_c39_what_injected_sql_still_learns_of_a_higher_level(migrated):
    """Pinned: sizes and counters in the catalog, which any role may read. Sessions have no SQL."""
    leaks = [
        "SELECT pg_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE nspname = 'muniment_restricted' AND relname = 'item'",
        "SELECT reltuples FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE nspname = 'muniment_restricted' AND relname = 'item'",
        "SELECT n_tup_ins FROM pg_stat_all_tables WHERE schemaname = 'muniment_restricted' AND relname = 'item'",
    ]
    walled = [
        "SELECT most_common_vals FROM pg_stats WHERE schemaname = 'muniment_restricted'",
        "SELECT stavalues1 FROM pg_statistic",
        "SELECT name FROM pg_ls_waldir()",
        "SELECT content FROM muniment_restricted.revision",
    ]

    assert [len(_rows(migrated, statement)) for statement in leaks] == [1, 1, 1]
    assert [_rows(migrated, statement) for statement in walled] == [[]] * 4


def _rows(migrated, statement):
    """What an INTERNAL connection reads: nothing where it is refused."""
    with migrated.connect("muniment_internal") as connection:
        try:
            return connection.execute(statement.encode()).fetchall()
        except psycopg.errors.InsufficientPrivilege:
            return []


@pytest.mark.parametrize("role", roles.SERVING)
def test_a_role_can_grant_nothing(migrated, role):
    """Where it has a right itself, Postgres only warns: nothing is granted."""
    with migrated.connect(role) as connection:
        for name, _, _ in relations(migrated):
            with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"GRANT SELECT ON {name} TO PUBLIC".encode())
    with migrated.as_admin() as admin:
        assert grants.differences(admin) == []
