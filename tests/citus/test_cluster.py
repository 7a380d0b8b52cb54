"""A real cluster: it is one, and it is refused."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment_server.postgres import citus
from tests.citus.cluster import Cluster, missing, running
from tests.support.commands import run_process
from tests.support.external_postgres import migrate

pytestmark = [
    pytest.mark.proof,
    pytest.mark.deep,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

_COUNT_ON_SHARDS = """
SELECT sum(result::integer) FROM run_command_on_shards('public.counted', 'SELECT count(*) FROM %s')
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A folder that the account of the nodes may enter."""
    made = Path(tempfile.mkdtemp(prefix="muniment-citus-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[Cluster]:
    with running(home) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def migrated(cluster: Cluster, home: Path) -> Path:
    """The passfile of `kept`, a database that was migrated before it joined the cluster."""
    for port in (cluster.coordinator, *cluster.workers):
        with cluster.admin(port) as admin:
            admin.execute("CREATE DATABASE kept")
    passfile = home / "passfile"
    done = migrate(home, cluster.url(cluster.coordinator, "kept"), passfile)
    assert done.returncode == 0, done.stderr
    cluster.join("kept")
    return passfile


def test_the_rows_are_on_the_workers(cluster: Cluster, migrated: Path) -> None:
    """What the fixture starts spreads a table over both workers."""
    with cluster.admin(cluster.coordinator, "kept") as admin:
        admin.execute("CREATE TABLE public.counted (tenant bigint PRIMARY KEY)")
        admin.execute("SELECT create_distributed_table('public.counted', 'tenant')")
        admin.execute("INSERT INTO public.counted SELECT generate_series(1, 100)")
        shards = admin.execute("SELECT nodeport, count(*) FROM citus_shards GROUP BY nodeport").fetchall()
        counted = admin.execute(_COUNT_ON_SHARDS).fetchone()
        admin.execute("DROP TABLE public.counted")

    assert dict(shards) == dict.fromkeys(cluster.workers, 4)
    assert counted == (100,)


def test_it_is_not_served(cluster: Cluster, home: Path, migrated: Path) -> None:
    options = ("--database-url", cluster.url(cluster.coordinator, "kept"), "--passfile", str(migrated))

    refused = run_process(home, "serve", "--listen", "127.0.0.1:0", *options)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert citus.REFUSAL in refused.stderr


def test_no_node_of_it_is_migrated(cluster: Cluster, home: Path, migrated: Path) -> None:
    for port in (cluster.coordinator, *cluster.workers):
        refused = migrate(home, cluster.url(port, "kept"), migrated)

        assert (refused.returncode, refused.stdout) == (1, "")
        assert citus.REFUSAL in refused.stderr
