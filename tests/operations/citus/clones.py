"""A cluster in the place of the Postgres of a run: `--cluster`. Each test has its own database, on all nodes.

A database of a cluster is cloned node by node: its catalog has the addresses of the nodes and the names of shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import conninfo as libpq
from psycopg import sql

from muniment_server.monitor import grants
from muniment_server.postgres import migrate
from tests.operations.citus.cluster import Cluster, folder_of_nodes, running
from tests.support.commands import wait_until

TEMPLATE = "muniment"
"""The database that tests copy."""
COPY_RIGHTS = """
UPDATE pg_database SET datacl = (SELECT datacl FROM pg_database WHERE datname = %(template)s) WHERE datname = %(clone)s
"""
_SETTINGS = {"max_connections": "300", "max_prepared_transactions": "600", "citus.shard_count": "4"}


@dataclass(frozen=True, slots=True)
class ClusterPostgres:
    """What tests need of an `EmbeddedPostgres`, of the coordinator."""

    cluster: Cluster

    def conninfo(self, *, user: str, dbname: str = TEMPLATE) -> str:
        """How *user* reaches a database. None needs a password."""
        return libpq.make_conninfo(host="127.0.0.1", port=self.cluster.coordinator, user=user, dbname=dbname)

    @contextmanager
    def cloned(self, name: str, template: str) -> Iterator[None]:
        """A database of the cluster like the *template*, which no one uses, until the block ends."""
        self._close(template)
        with ExitStack() as nodes:
            # The coordinator is the last, so that it is dropped first: it connects to the others.
            for port in (*self.cluster.workers, self.cluster.coordinator):
                clone = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
                with self._admin_alone(port) as admin:
                    admin.execute(clone.format(sql.Identifier(name), sql.Identifier(template)))
                    admin.execute(COPY_RIGHTS, {"template": template, "clone": name})
                nodes.callback(self._drop, port, name)
            yield

    def _drop(self, port: int, name: str) -> None:
        """Drop a database of one node, which a test may have started again."""
        with self._admin_alone(port) as admin:
            wait_until(lambda: _is_dropped(admin, name), f"{name} is in use")

    @contextmanager
    def _admin_alone(self, port: int) -> Iterator[psycopg.Connection[Any]]:
        with self.cluster.admin(port) as admin:
            admin.execute("SET citus.enable_create_database_propagation = off")
            yield admin

    def _close(self, template: str) -> None:
        """Let no one connect to a template, not even the process of Citus for each database: it must be unused."""
        for port in (self.cluster.coordinator, *self.cluster.workers):
            with self.cluster.admin(port) as admin:
                admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(template)))
                in_use = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
                wait_until(lambda: not admin.execute(in_use, [template]).fetchall(), "the template is in use")  # noqa: B023


def _is_dropped(admin: psycopg.Connection[Any], name: str) -> bool:
    """Drop a database. Postgres waits 5 s for the sessions that it ends, which may not be enough on a busy machine."""
    try:
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
    except psycopg.errors.ObjectInUse:
        return False
    return True


@contextmanager
def running_cluster(**settings: str) -> Iterator[ClusterPostgres]:
    """A cluster with the template, in a temporary folder."""
    with folder_of_nodes() as folder, running(folder, auth="trust", **{**_SETTINGS, **settings}) as cluster:
        cluster.create(TEMPLATE)
        cluster.join(TEMPLATE)
        postgres = ClusterPostgres(cluster)
        migrate.migrate(postgres.conninfo(user="postgres"), grants=grants.grant_names())
        yield postgres
