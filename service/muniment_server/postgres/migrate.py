"""Migrations: roles, schema, grants. A second run changes nothing.

Run by an administrator who may create roles and owns the database, or is a superuser. Everything is created as
`muniment_owner`, so that no serving role owns anything.

A migration that leaves running servers able to serve says so in a comment: `-- oldest server: N`. Servers that need
version N of the schema, or a later one, may then go on beside it. Without the comment, none may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources

import psycopg
from psycopg import sql

from muniment_server.domain.classification import Label
from muniment_server.postgres import queries, roles
from muniment_server.postgres.engine import AllDoubts, engine_of
from muniment_server.postgres.pool import administrator

OLDEST_POSTGRES = 150000
"""Postgres 15 introduced `security_invoker` views."""

SEARCH_MIGRATION = "0006_search"
"""Changes how items are indexed, which is done in Python: see `search.reindex`."""
LOCK = 0x6D756E69  # "muni"
"""The advisory lock that commands hold while they change the schema."""
_PASSFILE_LOCK = 0x70617373  # "pass"
_OLDEST_POSTGRES_OF_MIGRATION = re.compile(r"^-- oldest server: (\d+)$", re.MULTILINE)
_STATEMENT = re.compile(r"(?:\$\$.*?\$\$|[^;])+;", re.DOTALL)
_REPEATED: Mapping[str, Sequence[Label]] = {
    "each": [label for label in Label if not label.is_trusted],
    "trusted": [label for label in Label if label.is_trusted],
    "labels": list(Label),
}
"""The labels for which the text of a file is repeated, by what its name ends in: `….each.sql` is from before labels."""
_RECORD_COLUMNS = "ADD COLUMN oldest_server integer, ADD COLUMN grants text[]"
"""Not a numbered migration: servers of 0.1.0 would refuse the schema after it."""


class CannotMigrate(RuntimeError):
    """The database cannot be migrated. The text says what to do."""


class NotConfirmed(CannotMigrate):
    """A node of the cluster did not confirm a commit, and will show what was done once Citus has recovered it."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step."""

    version: int
    name: str
    text: str

    @property
    def oldest_server(self) -> int:
        """The oldest version of the schema that a server may need to go on beside this one."""
        stated = _OLDEST_POSTGRES_OF_MIGRATION.search(self.text)
        return int(stated[1]) if stated else self.version


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations, in order. Those of this process: an upgrade may replace the files while it runs."""
    folder = resources.files(__package__).joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(
        Migration(int(name.split("_")[0]), name, expanded(name, folder.joinpath(name).read_text("utf-8")))
        for name in names
    )


def expanded(name: str, text: str) -> str:
    """The text to run. That of some files is repeated: see `_REPEATED`."""
    suffix = name.removesuffix(".sql").rpartition(".")[2]
    return "\n".join(_for_label(text, label) for label in _REPEATED[suffix]) if suffix in _REPEATED else text


def _for_label(text: str, label: Label) -> str:
    for name, value in {
        "label": label.role.removeprefix("muniment_"),
        "level": label.level.name.lower(),
        "number": label.level.value,
        "rank": label.value,
        "trusted": str(label.is_trusted).upper(),
    }.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def newest_version() -> int:
    """The schema version that this server needs."""
    return migrations()[-1].version


def migrate(
    admin: str,
    *,
    passwords: Mapping[str, str] | None = None,
    grants: Sequence[str] = (),
    until: int | None = None,
) -> list[str]:
    """Migrate the database of the conninfo *admin*; return what was done, which is nothing if it was up to date.

    *passwords* by role are set if given, on existing roles, too. *grants* are those that the schema has afterwards;
    older servers compare them with the catalog. *until* is the last version to apply: that of a backup, for its rows,
    or 0, for roles alone; the newest if None.
    On a cluster, the tables are distributed, too, and several transactions are committed.
    Raises CannotMigrate, and NotConfirmed at the end. After `SEARCH_MIGRATION`, the caller must rebuild the search
    index.
    """
    with _confirmed(admin) as connection:
        _check_server(connection)
        engine = engine_of(connection)
        # For the session: on a cluster, several transactions follow.
        connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        done = [*_make_roles(connection), *_set_passwords(connection, passwords or {})]
        close_database(connection)
        if (prepared := engine.prepare_nodes(connection, passwords or {})) is None:
            _reset_settings(connection)
        else:
            done += prepared
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(roles.OWNER)))
        applied = [*_apply(connection, newest_version() if until is None else until, one_by_one=not engine.is_plain)]
        if applied:
            complete = newest_version() in applied_versions(connection)  # not in a restore
            applied += engine.distribute(connection, complete=complete)
        done += applied
        _record(connection, grants)
        if not engine.is_plain and until != 0:
            connection.commit()
            done += engine.repeat_grants(connection)
    return done


@contextmanager
def _confirmed(admin: str) -> Iterator[psycopg.Connection]:
    """A connection for the block, at whose end it commits. Raises NotConfirmed at the end.

    Also in place of a later error: the node that did not confirm a commit fails the next statement, too.
    """
    doubts = AllDoubts()
    try:
        with administrator(admin) as connection:
            connection.add_notice_handler(doubts.note)
            yield connection
    except psycopg.Error:
        if not doubts:
            raise
        raise NotConfirmed(
            "a node of the cluster did not confirm a commit, so it may still have the old schema or passwords: start "
            "the node, wait until Citus has recovered its transactions, and run the command again"
        ) from None


@contextmanager
def alone(admin: str) -> Iterator[None]:
    """Hold off others that write passfiles for the server of the conninfo *admin*, until the block ends."""
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_PASSFILE_LOCK])
        yield


def missing_roles(admin: str) -> set[str]:
    """The roles that are missing on the server of the conninfo *admin*."""
    with psycopg.connect(admin) as connection:
        return set(roles.ALL) - _existing(connection)


def _check_server(connection: psycopg.Connection) -> None:
    if connection.info.server_version < OLDEST_POSTGRES:
        raise CannotMigrate("this server is too old: Muniment needs PostgreSQL 15 or later")
    if refusal := engine_of(connection).refusal(connection):
        raise CannotMigrate(refusal)


def _existing(connection: psycopg.Connection) -> set[str]:
    rows = connection.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [list(roles.ALL)])
    return {name for (name,) in rows}


def _make_roles(connection: psycopg.Connection) -> Iterator[str]:
    existing = _existing(connection)
    for role in (role for role in roles.ALL if role not in existing):
        login = "NOLOGIN" if role == roles.OWNER else "LOGIN"
        connection.execute(
            sql.SQL("CREATE ROLE {} {} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT").format(
                sql.Identifier(role), sql.SQL(login)
            )
        )
        yield f"created role {role}"


def _reset_settings(connection: psycopg.Connection) -> None:
    """Remove the settings of all roles: they could override those that connections bring."""
    for role in roles.ALL:
        connection.execute(sql.SQL("ALTER ROLE {} RESET ALL").format(sql.Identifier(role)))


def _set_passwords(connection: psycopg.Connection, passwords: Mapping[str, str]) -> Iterator[str]:
    """Only verifiers are sent: a password in a statement could end up in the server's log."""
    for role, password in passwords.items():
        verifier = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
        connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier)))
        yield f"set the password of {role}"


def close_database(connection: psycopg.Connection) -> None:
    """Only the server's roles may connect, none has TEMP, and only the owner may create schemas."""
    database = sql.Identifier(connection.info.dbname)
    serving = sql.SQL(", ").join(map(sql.Identifier, roles.SERVING))
    owner = sql.Identifier(roles.OWNER)
    for statement in (
        sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database),
        sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, serving),
        sql.SQL("GRANT CONNECT, CREATE ON DATABASE {} TO {}").format(database, owner),
        sql.SQL("REVOKE CREATE ON SCHEMA public FROM PUBLIC"),
    ):
        connection.execute(statement)
    if connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() == (True,):
        _close_large_objects(connection)
        engine_of(connection).close_functions(connection)
    else:
        connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(owner))


def _close_large_objects(connection: psycopg.Connection) -> None:
    """Large objects belong to no schema: one level could write what a lower one reads. Needs a superuser."""
    functions = connection.execute(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"
        " AND proname ~ '^(lo_|loread$|lowrite$)' AND has_function_privilege('public', oid, 'EXECUTE')"
    ).fetchall()
    for (function,) in functions:
        connection.execute(sql.SQL("REVOKE EXECUTE ON FUNCTION {} FROM PUBLIC").format(sql.SQL(function)))


def _apply(connection: psycopg.Connection, until: int, *, one_by_one: bool) -> Iterator[str]:
    """Apply the migrations, *one_by_one* where an engine may propagate all of the text of a statement."""
    applied = applied_versions(connection)
    for migration in migrations():
        if migration.version in applied or migration.version > until:
            continue
        for statement in statements_of(migration.text) if one_by_one else [migration.text]:
            connection.execute(statement.encode())
        connection.execute("RESET search_path")  # each migration sets the path that it needs, as the first one must
        connection.execute(
            "INSERT INTO vault.migration (version, name) VALUES (%s, %s)", [migration.version, migration.name]
        )
        yield f"applied {re.sub(r'[.]sql$', '', migration.name)}"


def statements_of(text: str) -> list[str]:
    """The statements of *text*. A block between two $$ belongs to one of them."""
    return _STATEMENT.findall(queries.without_comments(text))


def _record(connection: psycopg.Connection, grants: Sequence[str]) -> None:
    """Record what servers need to know of a schema that is newer than they are."""
    newest, applied = newest_version(), applied_versions(connection)
    if not applied or max(applied) > newest:  # migrated by a later version, whose record it is
        return
    oldest = max(each.oldest_server for each in migrations())
    columns = "SELECT FROM pg_attribute WHERE attrelid = 'vault.migration'::regclass AND attname = 'grants'"
    if connection.execute(columns).fetchone() is None:
        connection.execute(f"ALTER TABLE vault.migration {_RECORD_COLUMNS}".encode())
    connection.execute(
        "UPDATE vault.migration SET (oldest_server, grants) = (%(oldest)s, %(grants)s)"
        " WHERE version = %(newest)s AND (oldest_server, grants) IS DISTINCT FROM (%(oldest)s, %(grants)s::text[])",
        {"oldest": oldest, "grants": list(grants), "newest": newest},
    )


def applied_versions(connection: psycopg.Connection) -> set[int]:
    """The versions of the migrations that were applied to the database; none if it was never migrated."""
    if connection.execute("SELECT to_regclass('vault.migration')").fetchone() == (None,):
        return set()
    return {version for (version,) in connection.execute("SELECT version FROM vault.migration")}
