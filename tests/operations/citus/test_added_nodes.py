"""A worker is added to a cluster, shards move there, and `muniment migrate` repeats the grants that Citus omits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from muniment_server.engines.citus import grants as cluster_grants
from muniment_server.monitor import grants
from muniment_server.postgres import roles
from tests.operations.citus.cluster import Cluster, folder_of_nodes, missing, running
from tests.support.commands import Done, run_process
from tests.support.external_postgres import admin_url, migrate

pytestmark = [
    pytest.mark.proof,
    pytest.mark.deep,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

_DATABASE = "kept"
_MOVE = "SELECT citus_move_shard_placement(shardid, nodename, nodeport, '127.0.0.1', %s, 'block_writes')"
_FIRST_SHARD = " FROM citus_shards WHERE table_name = 'vault.tenant'::regclass ORDER BY shardid LIMIT 1"


@dataclass(frozen=True, slots=True)
class Grown:
    """A cluster whose second worker was added after `muniment migrate`."""

    home: Path
    cluster: Cluster

    @property
    def url(self) -> str:
        return self.cluster.url(self.cluster.coordinator, _DATABASE)

    @property
    def passfile(self) -> Path:
        return self.home / "passfile"

    @property
    def added(self) -> int:
        return self.cluster.workers[-1]

    def migrate(self) -> Done:
        return migrate(self.home, self.url, self.passfile)

    def problems(self) -> list[str]:
        """What `doctor` and a server say."""
        with psycopg.connect(self.url, user=roles.CONTROL, passfile=str(self.passfile), autocommit=True) as connection:
            return grants.problems(connection, connections=1, durable=False)

    def differences(self) -> list[str]:
        """Those that are found once Citus has dropped the old copies of shards that were moved, which it does later."""
        with self.cluster.admin(self.cluster.coordinator, _DATABASE) as admin:
            admin.execute("CALL citus_cleanup_orphaned_resources()")
        with psycopg.connect(self.url, user=roles.CONTROL, passfile=str(self.passfile), autocommit=True) as connection:
            return cluster_grants.differences(connection)

    def run(self, statement: str, *parameters: object) -> None:
        """Run *statement* as the coordinator's superuser."""
        with self.cluster.admin(self.cluster.coordinator, _DATABASE) as admin:
            admin.execute(statement.encode(), parameters)

    def shards_of_added(self) -> int:
        """How many shards of tenants are on the node that was added."""
        with self.cluster.admin(self.cluster.coordinator, _DATABASE) as admin:
            rows = admin.execute(
                "SELECT FROM citus_shards WHERE table_name = 'vault.tenant'::regclass AND nodeport = %s", [self.added]
            ).fetchall()
        return len(rows)


@pytest.fixture(scope="module")
def grown() -> Iterator[Grown]:
    with folder_of_nodes() as home, running(home) as cluster:
        made = Grown(home, cluster)
        cluster.create(_DATABASE)
        replace(cluster, nodes=cluster.nodes[:-1]).join(_DATABASE)
        done = made.migrate()
        assert done.returncode == 0, done.stderr
        cluster.extend(made.added, _DATABASE)
        cluster.add(made.added, _DATABASE)
        yield made


def _is_ready(grown: Grown) -> None:
    """`muniment migrate` repeats what is missing, and a second run finds nothing to do."""
    assert grown.differences() != []
    assert "Run `muniment migrate`" in grown.problems()[-1]

    done, again = grown.migrate(), grown.migrate()

    assert (done.returncode, again.returncode) == (0, 0), done.stderr
    assert "grants and" in done.stdout
    assert grown.differences() == []
    assert again.stdout == ""
    assert "Nothing to do" in again.stderr


def test_a_node_that_is_added_gets_the_grants_that_citus_omits(grown: Grown) -> None:
    _is_ready(grown)


def test_a_shard_that_is_moved_gets_the_grants_that_citus_omits(grown: Grown) -> None:
    grown.run("SELECT replicate_reference_tables('block_writes')")
    grown.run(_MOVE + _FIRST_SHARD, grown.added)

    assert grown.shards_of_added() == 1
    assert all("(ctid)" in difference and "in its shard" in difference for difference in grown.differences())
    _is_ready(grown)


def test_a_cluster_is_ready_again_after_it_was_rebalanced(grown: Grown) -> None:
    grown.run("SELECT rebalance_table_shards(shard_transfer_mode := 'block_writes')")

    assert grown.shards_of_added() == 4
    _is_ready(grown)


def test_shards_on_the_coordinator_get_the_grants_that_citus_omits(grown: Grown) -> None:
    grown.run("SELECT citus_set_node_property('127.0.0.1', %s, 'shouldhaveshards', true)", grown.cluster.coordinator)
    grown.run(_MOVE + _FIRST_SHARD, grown.cluster.coordinator)

    assert all(f"at 127.0.0.1:{grown.cluster.coordinator}" in difference for difference in grown.differences())
    _is_ready(grown)


def test_a_node_that_is_away_is_named(grown: Grown) -> None:
    """Instead of what the driver says, with the roles and the addresses that it tried."""
    away = f"the node 127.0.0.1:{grown.added} does not answer"
    url = {"MUNIMENT_DATABASE_URL": admin_url(grown.url)}
    grown.cluster.nodes[-1].stop()
    try:
        refused = grown.migrate()
        examined = run_process(grown.home, "doctor", "--passfile", str(grown.passfile), **url)
        listed = run_process(grown.home, "host-key", "list", **url)
    finally:
        grown.cluster.nodes[-1].start()

    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"{away}\n  start it, and run the command again" in refused.stderr
    for checked in ("grants", "ledgers"):
        assert f"✗ the {checked} cannot be checked, because {away}: start it, and run doctor again" in examined.stdout
    assert away in listed.stderr
    assert "remote node" not in refused.stderr + examined.stdout + listed.stderr
