"""A Citus cluster is refused. What tells one is put into the catalog here; tests/citus has a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from muniment_server.postgres import citus
from muniment_server.runtime import cluster_grants
from tests.support.commands import run_process
from tests.support.external_postgres import admin_url

_NO_NODES = """
CREATE TABLE pg_catalog.pg_dist_node (nodename text, nodeport integer, groupid integer);
GRANT SELECT ON pg_catalog.pg_dist_node TO PUBLIC;
CREATE FUNCTION pg_catalog.run_command_on_workers(text)
RETURNS TABLE (nodename text, nodeport integer, success boolean, result text)
LANGUAGE SQL AS 'SELECT NULL, 0, TRUE, NULL WHERE FALSE';
"""


@pytest.fixture
def cluster(url: str, passfile: Path) -> Iterator[str]:
    """The URL of a migrated database that looks like one of a cluster."""
    with psycopg.connect(admin_url(url), autocommit=True) as admin:
        admin.execute("SET allow_system_table_mods = on")
        admin.execute(_NO_NODES)
        try:
            yield url
        finally:
            admin.execute("DROP TABLE pg_catalog.pg_dist_node")
            admin.execute("DROP FUNCTION pg_catalog.run_command_on_workers")


def test_a_cluster_is_not_served(folder: Path, cluster: str, passfile: Path) -> None:
    options = ("--database-url", cluster, "--passfile", str(passfile))

    refused = run_process(folder, "serve", "--listen", "127.0.0.1:0", *options)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert citus.REFUSAL in refused.stderr
    assert citus.REFUSAL in run_process(folder, "doctor", *options).stdout


def test_a_cluster_that_knows_no_node_is_not_taken_for_one_whose_grants_are_right(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As right after CREATE EXTENSION: there is no node whose grants could be compared."""
    monkeypatch.setattr(citus, "facts_of_nodes", lambda *_: {})
    with psycopg.connect(admin_url(url)) as admin:
        assert cluster_grants.differences(admin) == ["the cluster knows no node: run `muniment migrate`"]
