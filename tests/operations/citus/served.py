"""A real server, `muniment serve`, over a database of a cluster, with a host key that the operators' command made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from muniment_server.postgres.pool import operator_conninfo
from tests.operations.citus.cluster import Cluster
from tests.support.commands import WORDS_ALONE, Server, environment_in, run_process
from tests.support.external_postgres import admin_url, migrate

DATABASE = "kept"
SERVABLE = {"fsync": "on", "log_min_error_statement": "panic", "max_connections": "200"}
"""Settings of nodes without which a database is not served."""


@dataclass(frozen=True, slots=True)
class ServedCluster:
    """A cluster, its server, and a host of the tenant `acme` up to RESTRICTED."""

    home: Path
    cluster: Cluster
    server: Server
    host_key: str

    @property
    def address(self) -> str:
        return self.server.address

    @property
    def log(self) -> str:
        """What the server has logged."""
        return self.server.errors.read_text()

    def as_owner(self) -> psycopg.Connection[Any]:
        """A connection to the coordinator that may look at everything."""
        url = admin_url(self.cluster.url(self.cluster.coordinator, DATABASE))
        return psycopg.connect(operator_conninfo(url), autocommit=True, row_factory=namedtuple_row)

    def shard(self, table: str, tenant: int) -> tuple[int, str]:
        """The port of the node with the rows of *tenant*, and the name of their shard of *table*."""
        with self.cluster.admin(self.cluster.coordinator, DATABASE) as admin:
            row: Any = admin.execute(
                "SELECT nodeport, shard_name FROM citus_shards"
                " WHERE table_name = %(table)s::regclass"
                "   AND shardid = get_shard_id_for_distribution_column(%(table)s::regclass, %(tenant)s)",
                {"table": table, "tenant": tenant},
            ).fetchone()
        return int(row[0]), str(row[1])

    def prepared(self) -> int:
        """How many transactions are prepared on all nodes, and neither committed nor rolled back."""
        found = 0
        for node in self.cluster.nodes:
            with self.cluster.admin(node.port, DATABASE) as admin:
                row: Any = admin.execute("SELECT count(*) FROM pg_prepared_xacts").fetchone()
                found += int(row[0])
        return found


def new_host_key(home: Path, cluster: Cluster, tenant: str, ceiling: str) -> str:
    """A host key that the operators' command makes."""
    url = admin_url(cluster.url(cluster.coordinator, DATABASE))
    create = ("host-key", "create", "--tenant", tenant, "--ceiling", ceiling, "--quiet")
    made = run_process(home, *create, MUNIMENT_DATABASE_URL=url)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@contextmanager
def serving(home: Path, cluster: Cluster, *options: str) -> Iterator[ServedCluster]:
    """Prepare a database of *cluster*, and serve it until the block ends."""
    cluster.create(DATABASE)
    cluster.join(DATABASE)
    url, passfile = cluster.url(cluster.coordinator, DATABASE), home / "passfile"
    done = migrate(home, url, passfile)
    assert done.returncode == 0, done.stderr
    key = new_host_key(home, cluster, "acme", "restricted")
    server = Server(
        home,
        *("--database-url", url, "--passfile", str(passfile), "--listen", "127.0.0.1:0", "--workers", "2", *options),
        environment=environment_in(home, PYTHONPATH=str(WORDS_ALONE)),
    )
    try:
        yield ServedCluster(home, cluster, server, key)
    finally:
        server.end()
