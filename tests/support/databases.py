"""Databases for tests: one Postgres a run, one migrated template, a clone for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import conninfo as libpq
from psycopg import sql
from psycopg.rows import namedtuple_row

from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.postgres import migrate
from muniment_server.postgres.pool import operator_conninfo

_TEMPLATE = "muniment"
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Database:
    """One database of one test."""

    postgres: EmbeddedPostgres
    name: str

    def conninfo(self, role: str) -> str:
        """How to connect as *role*."""
        return self.postgres.conninfo(user=role, dbname=self.name)

    @property
    def admin(self) -> str:
        """How to connect as the superuser."""
        return self.conninfo("postgres")

    def connect(self, role: str) -> psycopg.Connection:
        """A connection logged in as *role*, as the server's are."""
        return psycopg.connect(self.conninfo(role), autocommit=True, row_factory=namedtuple_row)

    def as_owner(self) -> psycopg.Connection:
        """A connection that may look at and change everything, in the place of the owner."""
        return psycopg.connect(operator_conninfo(self.admin), autocommit=True, row_factory=namedtuple_row)

    def as_admin(self) -> psycopg.Connection:
        """A connection as the superuser, for what the owner may not do."""
        return psycopg.connect(self.admin, autocommit=True, row_factory=namedtuple_row)


def make_template(postgres: EmbeddedPostgres) -> None:
    """Migrate the database that the others are cloned from."""
    migrate.migrate(postgres.conninfo(user="postgres", dbname=_TEMPLATE))


@contextmanager
def cloned(postgres: EmbeddedPostgres) -> Iterator[Database]:
    """A fresh clone of the template. Rights on a database are not cloned: migrating again sets them."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(postgres.conninfo(user="postgres", dbname="postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(_TEMPLATE)))
        database = Database(postgres, name)
        migrate.migrate(database.admin)
        try:
            yield database
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def other_database(conninfo: str, name: str) -> str:
    """*conninfo*, for another database of the same server."""
    return libpq.make_conninfo(conninfo, dbname=name)
