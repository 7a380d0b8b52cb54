"""The mark of a database in which a restore has not ended: a schema that is in no backup.

It is made before anything else. Once the roles exist, the schema is the owner's: the matrix of grants does not know it,
so that servers that run, and older ones, refuse the database too. A built-in database has a file beside its data as
well, from before it can have a schema until the restore has ended: it is there while Postgres does not answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from muniment_server.embedded_postgres import sync_directory
from muniment_server.postgres import roles

_MARK = "muniment_restoring"
_FILE = "restoring"
_INTERRUPTED = "a restore into this database has not ended: run `muniment restore` into it again, which starts anew"


def begin(connection: psycopg.Connection[Any]) -> None:
    """Mark the database, with the transaction of *connection*, which is an administrator's."""
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(_MARK)))


def give_to_owner(connection: psycopg.Connection[Any]) -> None:
    """Give the mark to the owner, who is to remove it. *connection* is an administrator's."""
    statement = sql.SQL("ALTER SCHEMA {} OWNER TO {}")
    connection.execute(statement.format(sql.Identifier(_MARK), sql.Identifier(roles.OWNER)))


def end(connection: psycopg.Connection[Any]) -> None:
    """Remove the mark, with the transaction of *connection*, which acts as the owner."""
    connection.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(_MARK)))


def problems(connection: psycopg.Connection[Any]) -> list[str]:
    """Why the database must not be used, if it is marked."""
    marked = connection.execute("SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s", [_MARK]).fetchone()
    return [] if marked is None else [_INTERRUPTED]


def begin_in(directory: Path) -> None:
    """Mark the *directory* of a built-in database that is not made yet."""
    if not (directory / "data").exists():
        mark(directory)


def mark(directory: Path) -> None:
    """Mark the *directory* of a built-in database."""
    (directory / _FILE).touch()
    sync_directory(directory)


def end_in(directory: Path) -> None:
    """Remove the mark of the *directory* of a built-in database."""
    (directory / _FILE).unlink(missing_ok=True)
    sync_directory(directory)


def problems_in(directory: Path) -> list[str]:
    """Why the built-in database in *directory* must not be used, if that is marked."""
    return [_INTERRUPTED] if (directory / _FILE).exists() else []
