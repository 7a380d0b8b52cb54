"""Which databases of a Citus cluster are refused. What tells one is put into the catalog here; tests/operations/citus
has a real cluster, and serves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from muniment_server.admin import checks
from muniment_server.engines.citus import cluster as citus
from muniment_server.engines.citus import grants as cluster_grants
from muniment_server.postgres import migrate as migrations
from muniment_server.postgres import roles
from muniment_server.postgres.migrate import NotConfirmed
from muniment_server.runtime import databases
from muniment_server.runtime import passfile as passfiles
from tests.support.commands import run_process
from tests.support.external_postgres import admin_url, migrate
from tests.support.unconfirmed import unconfirmed_commits, unconfirmed_rows

_COORDINATOR, _WORKER = 0, 1
_CATALOG = {
    "pg_dist_node": "(nodename text, nodeport integer, groupid integer, isactive boolean DEFAULT TRUE)",
    "pg_dist_partition": "(logicalrelid regclass)",
    "pg_dist_shard": "(logicalrelid regclass, shardid bigint)",
    "pg_dist_local_group": "(groupid integer)",
}
_NO_NODES = """
CREATE FUNCTION pg_catalog.run_command_on_workers(text)
RETURNS TABLE (nodename text, nodeport integer, success boolean, result text)
LANGUAGE SQL AS 'SELECT NULL, 0, TRUE, NULL WHERE FALSE';
"""


@contextmanager
def _node(url: str, group: int) -> Iterator[None]:
    """The migrated database looks like one of a cluster that distributes none of its tables."""
    with psycopg.connect(admin_url(url), autocommit=True) as admin:
        admin.execute("SET allow_system_table_mods = on")
        for name, columns in _CATALOG.items():
            admin.execute(f"CREATE TABLE pg_catalog.{name} {columns}".encode())
            admin.execute(f"GRANT SELECT ON pg_catalog.{name} TO PUBLIC".encode())
        admin.execute("INSERT INTO pg_dist_local_group VALUES (%s)", [group])
        admin.execute(_NO_NODES)
        try:
            yield
        finally:
            for name in _CATALOG:
                admin.execute(f"DROP TABLE pg_catalog.{name}".encode())
            admin.execute("DROP FUNCTION pg_catalog.run_command_on_workers")


@pytest.mark.parametrize(
    ("group", "refusal"),
    [
        (_WORKER, "this is a worker of a Citus cluster: name the database of the coordinator"),
        (
            _COORDINATOR,
            "the tables of the database are not distributed over the nodes of its cluster: run `muniment distribute`",
        ),
    ],
)
def test_a_worker_and_a_database_that_is_not_distributed_are_refused(
    folder: Path, url: str, passfile: Path, group: int, refusal: str
) -> None:
    state = folder / "state"
    options = ("--database-url", url, "--passfile", str(passfile), "--state-dir", str(state))

    with _node(url, group):
        refused = run_process(folder, "serve", "--listen", "127.0.0.1:0", *options)
        examined = run_process(folder, "doctor", *options)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refusal in refused.stderr
    assert f"✗ {refusal}" in examined.stdout
    assert not [file for file in state.rglob("*") if file.is_file()]  # no epoch, which the coordinator would not have


def test_a_cluster_that_knows_no_node_is_not_taken_for_one_whose_grants_are_right(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As right after CREATE EXTENSION: there is no node whose grants could be compared."""
    monkeypatch.setattr(citus, "facts_of_nodes", lambda *_: {})
    with psycopg.connect(admin_url(url)) as admin:
        for found in (cluster_grants.differences(admin), cluster_grants.by_node(admin, None)):
            assert found == ["the cluster knows no node: run `muniment migrate`"]


def test_hundreds_of_differences_of_a_node_are_counted_and_have_a_remedy(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a node that was added. The other one has none, and is not named."""
    right = [list(fact) for fact in sorted(cluster_grants.matrix())]
    of_nodes = {"worker1:5432": [fact for fact in right if fact[0] != roles.ERASER], "worker2:5432": right}
    monkeypatch.setattr(citus, "facts_of_nodes", lambda *_: of_nodes)
    with psycopg.connect(admin_url(url)) as admin:
        every, shown = cluster_grants.differences(admin), cluster_grants.by_node(admin, None)

    assert len(every) > 100
    assert shown[:-1] == every[:3]
    assert shown[-1] == (
        f"grants that differ from the matrix at worker1:5432: {len(every)}. Run `muniment migrate`: this repeats those "
        "that Citus omits when a node is added or shards are moved"
    )


def test_doctor_says_that_a_database_is_of_a_cluster_and_how_many_nodes_it_has(
    url: str, passfile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conninfo = f"{url}?passfile={passfile}"
    for check in ("problems_of", "warnings_of"):
        monkeypatch.setattr(databases, check, lambda *_, **__: [])

    alone = [finding.text for finding in checks._check_grants(conninfo, 0)]
    with _node(url, _COORDINATOR), psycopg.connect(admin_url(url), autocommit=True) as admin:
        for node in range(3):
            admin.execute("INSERT INTO pg_dist_node VALUES ('node', 5432, %s)", [node])
        found = [finding.text for finding in checks._check_grants(conninfo, 0)]

    expected = "this is a Citus cluster, and the grants are as required on each of its 3 nodes"
    assert [text for text in found if text not in alone] == [expected]


def test_nodes_lack_passwords_until_they_have_that_of_each_serving_role(url: str, passfile: Path) -> None:
    """As in a database that is restored beside another one of the cluster, which has the roles."""
    with psycopg.connect(admin_url(url)) as admin:
        admin.execute("SET LOCAL allow_system_table_mods = on")
        admin.execute("CREATE TABLE pg_catalog.pg_dist_authinfo (nodeid integer, rolename name, authinfo text)")
        lacking = [citus.lack_passwords(admin)]
        for role in roles.SERVING:
            admin.execute("INSERT INTO pg_dist_authinfo VALUES (0, %s, 'password=x')", [role])
            lacking.append(citus.lack_passwords(admin))
        admin.rollback()

    assert lacking == [True] * len(roles.SERVING) + [False]


def test_a_migration_that_a_node_did_not_confirm_is_no_success(folder: Path, url: str, passfile: Path) -> None:
    with unconfirmed_commits(admin_url(url)):
        failed = migrate(folder, url, passfile)
    again = migrate(folder, url, passfile)

    assert (failed.returncode, failed.stdout) == (1, "")
    assert "a node of the cluster did not confirm a commit" in failed.stderr
    assert "run the command again" in failed.stderr
    assert "Nothing to do" in again.stderr


def test_a_freeze_that_a_node_did_not_confirm_is_to_be_run_again(folder: Path, url: str, passfile: Path) -> None:
    """A session may have been opened meanwhile with a key that the node still showed as valid."""
    at = {"MUNIMENT_DATABASE_URL": admin_url(url)}
    created = run_process(folder, "host-key", "create", "--tenant", "acme", "--ceiling", "public", "--quiet", **at)
    assert created.returncode == 0, created.stderr

    with unconfirmed_rows(admin_url(url), "vault.host_key"):
        failed = run_process(folder, "tenant", "freeze", "acme", **at)
    again = run_process(folder, "tenant", "freeze", "acme", **at)

    assert failed.returncode == 1
    assert "a node of the cluster did not confirm the commit" in failed.stderr
    assert "run the command again" in failed.stderr
    assert "do not" not in failed.stderr
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("flags", [("--quiet",), ("--json",)])
def test_a_key_that_a_node_did_not_confirm_is_printed_with_an_error(
    folder: Path, url: str, passfile: Path, flags: tuple[str, ...]
) -> None:
    """It becomes valid, and could not be shown later."""
    create = ("host-key", "create", "--tenant", "acme", "--ceiling", "public", *flags)
    with unconfirmed_rows(admin_url(url), "vault.host_key"):
        failed = run_process(folder, *create, MUNIMENT_DATABASE_URL=admin_url(url))

    assert failed.returncode == 1
    assert "mun_h_" in failed.stdout
    assert "keep the key: it is accepted once the node is back" in failed.stderr


def test_a_migration_that_fails_after_a_commit_that_was_not_confirmed_says_so(
    url: str, passfile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node that has died also fails the next statement, whose error says only that it does not answer."""

    def fails(*_: object) -> None:
        raise psycopg.OperationalError("connection to the remote node failed")

    monkeypatch.setattr(migrations, "_record", fails)
    with pytest.raises(psycopg.OperationalError, match="remote node failed"):
        migrations.migrate(admin_url(url))

    with unconfirmed_commits(admin_url(url)), pytest.raises(NotConfirmed, match="did not confirm a commit"):
        migrations.migrate(admin_url(url))


def test_passwords_that_a_node_did_not_confirm_are_in_the_passfile(
    url: str, passfile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The roles have them, so that no one could log in with the passwords of before."""
    monkeypatch.setattr(passfiles, "missing_roles", lambda _: {roles.AUDITOR})
    lines = passfile.read_text().splitlines(keepends=True)
    passfile.write_text("".join(line for line in lines if f":{roles.AUDITOR}:" not in line))
    before = passfile.read_bytes()

    with unconfirmed_commits(admin_url(url)), pytest.raises(NotConfirmed):
        passfiles.migrate_with_passfile(admin_url(url), passfile)

    assert passfile.read_bytes() != before
    with psycopg.connect(admin_url(url)) as admin:
        assert set(passfiles.passwords_of_roles(admin, passfile)) == set(roles.SERVING)


def test_a_database_without_the_extension_is_not_distributed(folder: Path, url: str, passfile: Path) -> None:
    refused = run_process(folder, "distribute", "--passfile", str(passfile), MUNIMENT_DATABASE_URL=admin_url(url))

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "the database does not have the extension citus: create it on each node, and add the nodes" in refused.stderr
