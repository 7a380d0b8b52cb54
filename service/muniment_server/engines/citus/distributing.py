"""Distributes a database with data over the nodes of a Citus cluster, in place: see ADR 14.

Nodes can log in to each other only as roles that have been committed. So the roles come first, with the revocations
that keep them from large objects. Then all tables are locked and distributed in one transaction: if it is interrupted
before its commit, no row has moved. The grants that Citus omits are repeated at the end, as after a migration. A second
run repeats them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from muniment_server.engines.citus import cluster, grants
from muniment_server.engines.citus.settings import SETTINGS_BETWEEN_NODES
from muniment_server.postgres import migrate as migrations
from muniment_server.postgres import roles
from muniment_server.postgres.pool import NotCommitted, with_settings
from muniment_server.runtime import schema
from muniment_server.runtime.passfile import passwords_of_roles

_SETTINGS = {"client_connection_check_interval": "1s", "client_min_messages": "warning"}
"""A command that is killed while it waits for a lock gives up those that it has, and Citus's warnings arrive."""


class CannotDistribute(RuntimeError):
    """The database cannot be distributed. The text says what to do."""


@dataclass(frozen=True, slots=True)
class Step:
    """A table is about to be locked or distributed."""

    verb: str
    table: str


class Distribution:
    """The distribution of the database of one connection, a superuser's."""

    def __init__(self, connection: psycopg.Connection[Any], admin: str, passfile: Path | None) -> None:
        self._connection = connection
        self._admin = admin
        self._passfile = passfile

    def tables(self) -> list[str]:
        """The tables that are not distributed, in the order in which they can be. Raises CannotDistribute."""
        if refusal := _refusal(self._connection):
            raise CannotDistribute(refusal)
        return cluster.undistributed_in_order(self._connection)

    def count_rows(self, table: str) -> int:
        """How many rows *table* has."""
        return cluster.count_rows(self._connection, table)

    def require_ready(self) -> None:
        """Raise CannotDistribute if the nodes or those who use the database are not ready for it.

        A node could lose the rows, which no other has afterwards, or log passwords; or it limits transactions.
        """
        self._require_stopped()
        for limit in cluster.limits_of_nodes(self._connection):
            raise CannotDistribute(f"{limit}, which could end the transaction: set it to 0, and back afterwards")
        for problem in grants.risky_settings(self._connection, durable=True):
            raise CannotDistribute(problem)

    def _require_stopped(self) -> None:
        """Raise CannotDistribute if a server is connected."""
        if serving := cluster.serving_roles(self._connection):
            raise CannotDistribute(f"the database is being served ({', '.join(serving)}): stop the servers")

    def passwords(self) -> Mapping[str, str]:
        """The passwords of the serving roles. Raises CannotDistribute without a passfile, and PassfileError."""
        if self._passfile is None:
            raise CannotDistribute("the nodes log in to each other as the servers do: name the servers' --passfile")
        return passwords_of_roles(self._connection, self._passfile)

    def run(self, tables: list[str], passwords: Mapping[str, str]) -> Iterator[Step]:
        """Distribute *tables*. Raises NotCommitted if a node did not confirm the commit."""
        connection = self._connection
        warnings = cluster.CommitWarnings()
        connection.add_notice_handler(warnings.note)
        self._prepare_nodes(passwords)
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(roles.OWNER)))
        for table in tables:
            yield Step("Waiting for", table)
            cluster.lock_exclusively(connection, table)
        self._require_stopped()  # once more: one that is idle has no connections
        cluster.propagate_schemas(connection)
        for table in tables:
            yield Step("Distributing", table)
            cluster.distribute_table(connection, table)
        for table in tables:
            cluster.clear_local_rows(connection, table)
        cluster.give_rights(connection)
        connection.execute("RESET ROLE")
        cluster.clear_samples(connection, tables)
        connection.commit()
        if warnings:
            raise NotCommitted

    def finish(self) -> list[str]:
        """Repeat what Citus omits, once the tables are distributed; return what was done."""
        self._connection.close()  # it holds the lock for which a migration waits
        return schema.migrate(self._admin)

    def _prepare_nodes(self, passwords: Mapping[str, str]) -> None:
        """Create the roles on the workers, and close large objects to them before a row arrives there. Commits."""
        for _ in cluster.prepare_nodes(self._connection, passwords, SETTINGS_BETWEEN_NODES):
            pass
        migrations.close_database(self._connection)
        self._connection.commit()
        cluster.close_functions(self._connection)
        self._connection.commit()


@contextmanager
def distribution(admin: str, passfile: Path | None) -> Iterator[Distribution]:
    """The distribution of the database of the conninfo *admin*, whose schema no other command changes meanwhile."""
    with psycopg.connect(with_settings(admin, _SETTINGS)) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [migrations.LOCK])
        yield Distribution(connection, admin, passfile)


def _refusal(connection: psycopg.Connection[Any]) -> str | None:
    """Why the tables cannot be distributed, even if no server uses them. None if they can be, or have been."""
    if not cluster.is_cluster(connection):
        return "the database does not have the extension citus: create it on each node, and add the nodes"
    if lacking := cluster.unprepared(connection):
        return lacking
    found, needed = max(migrations.applied_versions(connection), default=0), migrations.newest_version()
    if not found:
        return "the database has no schema: run `muniment migrate`, which distributes it, too"
    if found > needed:
        return f"the schema has version {found}, and this command needs {needed}: use that of the later release"
    if found < needed:
        return (
            f"the schema has version {found}, and this command needs {needed}: drop the extension, run `muniment "
            "migrate` first, and create the extension again"
        )
    return None
