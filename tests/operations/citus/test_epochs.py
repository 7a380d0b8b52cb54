"""A node of a cluster that was overtaken by another server, which was promoted in its place, is not used again."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import psycopg
import pytest

from muniment_server.domain.errors import Unavailable
from muniment_server.postgres import pool, roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.epochs import EpochGuard
from muniment_server.postgres.migrate import migrate
from muniment_server.postgres.pool import SINGLE, Database, epoch_of
from tests.operations.citus.cluster import Cluster, Node, folder_of_nodes, missing, running
from tests.support.commands import run, wait_until

pytestmark = [
    pytest.mark.proof,
    pytest.mark.deep,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]


@dataclass(frozen=True, slots=True)
class Worker:
    """The first worker of a cluster, with the files that it has, and those of a server that it has overtaken."""

    cluster: Cluster
    home: Path

    @property
    def node(self) -> Node:
        return self.cluster.nodes[1]

    def promote(self) -> None:
        """Let a copy of the worker be promoted in its place. The worker's own files are kept."""
        self.node.stop()
        shutil.rmtree(self.home / "overtaken", ignore_errors=True)
        subprocess.run(["cp", "-a", self.node.data, self.home / "overtaken"], check=True)
        self._follow_no_one()
        with self.cluster.admin(self.node.port) as admin:
            admin.execute("SELECT pg_promote()")

    def become_standby(self) -> None:
        """Follow no server, and accept no writes."""
        self.node.stop()
        self._follow_no_one()

    def end_standby(self) -> None:
        """Accept writes again, on the timeline of before."""
        self.node.stop()
        (self.node.data / "standby.signal").unlink()
        self.node.start()

    def come_back(self) -> None:
        """Let the server that was overtaken, and the one that has overtaken it, change places."""
        self.node.stop()
        for old, new in (("data", "other"), ("overtaken", "data"), ("other", "overtaken")):
            (self.home / old).rename(self.home / new)
        self.node.start()

    def _follow_no_one(self) -> None:
        (self.node.data / "standby.signal").touch()
        self.node.start()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """A worker of a migrated cluster."""
    settings = {"citus.shard_count": "2", "autovacuum": "off"}
    with folder_of_nodes() as home, running(home, auth="trust", **settings) as cluster:
        cluster.create("kept")
        cluster.join("kept")
        migrate(conninfo(cluster, "postgres"))
        with psycopg.connect(conninfo(cluster, "postgres"), autocommit=True) as admin:
            for number in range(6):
                admin.execute("INSERT INTO vault.tenant (name) VALUES (%s)", [f"early {number}"])
        yield Worker(cluster, home / "worker_1")


def conninfo(cluster: Cluster, role: str, database: str = "kept") -> str:
    return f"host=127.0.0.1 port={cluster.coordinator} dbname={database} user={role}"


@contextlib.contextmanager
def used(cluster: Cluster, state: Path, name: str = "kept") -> Iterator[Database]:
    """The database as a server with a state directory uses it."""
    guard = EpochGuard(state)
    database = Database(lambda role: conninfo(cluster, role, name), pool_sizes=SINGLE, epochs=guard)
    with contextlib.closing(database):
        yield database


def tenants(database: Database) -> list[str]:
    """The names of all tenants, which are on all nodes."""
    with database.connection(roles.CONTROL, Deadline(5)) as connection:
        return sorted(name for (name,) in connection.execute("SELECT name FROM vault.tenant").fetchall())


def succeeds(database: Database) -> bool:
    """Whether the database can be used."""
    try:
        tenants(database)
    except Unavailable:
        return False
    return True


def groups(state: Path) -> dict[str, int]:
    """The timelines that the state directory has, by the groups of the workers."""
    kept = json.loads((state / "epoch.json").read_text())
    return {group: node["timeline"] for group, node in kept["nodes"].items()}


def test_a_node_is_used_after_a_promotion_in_its_place_and_not_if_it_comes_back(worker: Worker, tmp_path: Path) -> None:
    """Neither on a connection that was open, nor after a restart of the server."""
    with used(worker.cluster, tmp_path) as database:
        early = tenants(database)
        before = groups(tmp_path)
        worker.promote()
        promoted = {**before, "1": before["1"] + 1}
        wait_until(lambda: succeeds(database) and groups(tmp_path) == promoted, "the promoted node is not used")
        with psycopg.connect(conninfo(worker.cluster, "postgres"), autocommit=True) as admin:
            for number in range(6):
                admin.execute("INSERT INTO vault.tenant (name) VALUES (%s)", [f"late {number}"])
        all_tenants = tenants(database)
        assert len(all_tenants) == len(early) + 6

        worker.come_back()

        wait_until(lambda: not succeeds(database), "the overtaken node is used", 2)
        assert [succeeds(database) for _ in range(3)] == [False] * 3
        with used(worker.cluster, tmp_path) as restarted:
            assert not succeeds(restarted)

        worker.come_back()

        assert tenants(database) == all_tenants


def test_if_what_the_nodes_answer_is_ignored_that_test_fails(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Database._has_admitted_nodes
    monkeypatch.setattr(Database, "_has_admitted_nodes", lambda *given: asked(*given) or True)
    with pytest.raises(AssertionError, match="the overtaken node is used"):
        test_a_node_is_used_after_a_promotion_in_its_place_and_not_if_it_comes_back(worker, tmp_path)

    worker.come_back()


def test_operators_commands_refuse_an_overtaken_node_until_it_is_adopted(worker: Worker, tmp_path: Path) -> None:
    with used(worker.cluster, tmp_path) as database:
        worker.promote()
        wait_until(lambda: succeeds(database), "the promoted node is not used")
    options = ("--database-url", conninfo(worker.cluster, "postgres"), "--state-dir", str(tmp_path))
    worker.come_back()
    seen = groups(tmp_path)["1"]

    refused = run(tmp_path, "host-key", "list", *options)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"its node of group 1 is on timeline {seen - 1}, and timeline {seen} was seen" in refused.stderr
    adopted = run(tmp_path, "database", "adopt", "--yes", *options)
    assert adopted.returncode == 0, adopted.stderr
    assert groups(tmp_path)["1"] == seen - 1
    assert run(tmp_path, "host-key", "list", *options).returncode == 0
    with used(worker.cluster, tmp_path) as database:
        assert succeeds(database)


def test_a_node_that_is_a_standby_is_refused(worker: Worker, tmp_path: Path) -> None:
    """It answers reads, and its taint lags behind."""
    worker.become_standby()
    with used(worker.cluster, tmp_path) as database:
        assert not succeeds(database)
        worker.end_standby()

        assert succeeds(database)


def test_a_node_that_does_not_answer_stops_no_one_and_is_known_when_it_is_back(worker: Worker, tmp_path: Path) -> None:
    with used(worker.cluster, tmp_path) as database:
        assert succeeds(database)
        before = groups(tmp_path)
        worker.node.stop()
        with used(worker.cluster, tmp_path) as another, another.connection(roles.CONTROL, Deadline(5)) as connection:
            assert connection.epoch is not None
            assert set(connection.epoch.nodes) == set(before) == {"1", "2"}
            assert set(epoch_of(connection).nodes) == {"2"}
        worker.node.start()

        wait_until(lambda: succeeds(database), "the node is not used")
    assert groups(tmp_path) == before


def test_a_node_that_is_added_is_used(worker: Worker, tmp_path: Path) -> None:
    _, second = worker.cluster.workers
    alone = replace(worker.cluster, nodes=worker.cluster.nodes[:2])
    worker.cluster.create("grown")
    alone.join("grown")
    migrate(conninfo(alone, "postgres", "grown"))
    with used(alone, tmp_path, "grown") as database:
        assert succeeds(database)
        assert len(groups(tmp_path)) == 1
        with worker.cluster.admin(second, "grown") as node:
            node.execute("CREATE EXTENSION citus")
        with worker.cluster.admin(alone.coordinator, "grown") as admin:
            admin.execute("SELECT citus_add_node('127.0.0.1', %s)", [second])

        wait_until(lambda: succeeds(database) and len(groups(tmp_path)) == 2, "the node is not admitted")


def test_the_nodes_are_asked_once_a_second(worker: Worker, tmp_path: Path) -> None:
    """Not for each call: a call would wait for all of them."""
    with (
        used(worker.cluster, tmp_path) as database,
        patch.object(pool, "_NODES_SECONDS", 60.0),
        patch.object(pool, "epoch_of", side_effect=epoch_of) as read,
    ):
        for _ in range(20):
            tenants(database)

        assert read.call_count == 2  # as the connection is opened, and before its first use
