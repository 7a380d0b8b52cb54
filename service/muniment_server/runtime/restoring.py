"""The mark of a database in which a restore has not ended: a schema that is in no backup.

The matrix of grants does not know the schema either, so that servers that run, and older ones, refuse the database too.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from muniment_server.postgres import roles

_MARK = "muniment_restoring"
_INTERRUPTED = "a restore into this database has not ended: restore the backup into another database without data"


def begin(connection: psycopg.Connection[Any]) -> None:
    """Mark the database, with the transaction of *connection*, which is an administrator's."""
    statement = sql.SQL("CREATE SCHEMA IF NOT EXISTS {} AUTHORIZATION {}")
    connection.execute(statement.format(sql.Identifier(_MARK), sql.Identifier(roles.OWNER)))


def end(connection: psycopg.Connection[Any]) -> None:
    """Remove the mark, with the transaction of *connection*, which acts as the owner."""
    connection.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(_MARK)))


def problems(connection: psycopg.Connection[Any]) -> list[str]:
    """Why the database must not be used, if it is marked."""
    marked = connection.execute("SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s", [_MARK]).fetchone()
    return [] if marked is None else [_INTERRUPTED]
