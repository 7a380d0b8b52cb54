"""Databases for tests: one Postgres for each worker, one migrated template, a clone for each test.

Cloning and dropping takes 25 ms of CPU. Emptying a used clone instead takes longer: TRUNCATE makes files anew.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import psycopg
from psycopg import conninfo as libpq
from psycopg import sql
from psycopg.rows import namedtuple_row

from muniment_server.embedded_postgres import EmbeddedPostgres, configuration
from muniment_server.postgres import migrate, roles
from muniment_server.postgres.pool import operator_conninfo
from tests.operations.citus.clones import COPY_RIGHTS, TEMPLATE, ClusterPostgres

_CLONE = "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy"
"""A checkpoint and a copy of the files cost half of the default, which logs each page."""
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Database:
    """One database of one test."""

    postgres: EmbeddedPostgres | ClusterPostgres
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


@contextmanager
def running_postgres(
    bindir: Path | None = None, /, *, durable: bool = False, **settings: str
) -> Iterator[EmbeddedPostgres]:
    """A Postgres with the template, in a temporary folder. Without fsync, unless it is *durable*."""
    folder = Path(tempfile.mkdtemp(prefix="muniment-tests-"))
    chosen = {"max_connections": "200", **settings}
    try:
        with EmbeddedPostgres(folder, roles=roles.ALL, durable=durable, bindir=bindir, settings=chosen) as server:
            migrate.migrate(server.conninfo(user="postgres", dbname=TEMPLATE))
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def unpinned_postgres(*, durable: bool = False, **settings: str) -> Iterator[EmbeddedPostgres]:
    """A Postgres that logs as one does that is not ours: by its defaults, or by *settings*."""
    pinned = configuration._PINNED
    ours = {name: value for name, value in pinned.items() if not name.startswith("log_")}
    configuration._PINNED = MappingProxyType(ours)
    try:
        with running_postgres(durable=durable, **settings) as server:
            yield server
    finally:
        configuration._PINNED = pinned


@contextmanager
def cloned(postgres: EmbeddedPostgres | ClusterPostgres, template: str = TEMPLATE) -> Iterator[Database]:
    """A fresh clone of a database that no one uses. CREATE DATABASE copies all but the rights on the database."""
    name = f"test_{next(_numbers)}"
    if isinstance(postgres, ClusterPostgres):
        with postgres.cloned(name, template):
            yield Database(postgres, name)
        return
    with psycopg.connect(postgres.conninfo(user="postgres", dbname="postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL(_CLONE).format(sql.Identifier(name), sql.Identifier(template)))
        admin.execute(COPY_RIGHTS, {"template": template, "clone": name})
        try:
            yield Database(postgres, name)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def other_database(conninfo: str, name: str) -> str:
    """*conninfo*, for another database of the same server."""
    return libpq.make_conninfo(conninfo, dbname=name)
