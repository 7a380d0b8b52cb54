"""A cluster is migrated: levels are kept apart on each node and shard, and faults are found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.engines.citus import cluster as citus
from muniment_server.engines.citus import grants as cluster_grants
from muniment_server.engines.citus.statements import for_cluster
from muniment_server.monitor import grants
from muniment_server.postgres import migrate as migrations
from muniment_server.postgres import roles
from muniment_server.runtime import databases
from tests.operations.citus.cluster import Cluster, folder_of_nodes, missing, running
from tests.support.commands import run_process
from tests.support.external_postgres import admin_url, migrate
from tests.support.labels import untrusted
from tests.support.named_queries import EMBEDDER, ERASER, Named, filled, literals_of, named

pytestmark = [
    pytest.mark.proof,
    pytest.mark.deep,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

_FAULTS_OF_SHARDS = {
    "GRANT SELECT ON {shard} TO muniment_public": (
        "muniment_restricted.item",
        "REVOKE SELECT ON {shard} FROM muniment_public",
        "not in the matrix: muniment_public: SELECT on muniment_restricted.item in its shard {shard}",
    ),
    "GRANT UPDATE (taint) ON {shard} TO muniment_public": (
        "vault.conversation",
        "REVOKE UPDATE (taint) ON {shard} FROM muniment_public",
        "not in the matrix: muniment_public: UPDATE (taint) on vault.conversation in its shard {shard}",
    ),
    "REVOKE INSERT ON {shard} FROM muniment_public": (
        "muniment_public.audit",
        "GRANT INSERT ON {shard} TO muniment_public",
        "missing: muniment_public: INSERT on muniment_public.audit in its shard {shard}",
    ),
    "ALTER TABLE {shard} DISABLE ROW LEVEL SECURITY": (
        "vault.conversation",
        "ALTER TABLE {shard} ENABLE ROW LEVEL SECURITY",
        "missing: row security: enabled on vault.conversation in its shard {shard}",
    ),
    "CREATE POLICY leak ON {shard} TO muniment_public USING (TRUE)": (
        "vault.session",
        "DROP POLICY leak ON {shard}",
        "not in the matrix: muniment_public: rows true on vault.session in its shard {shard}",
    ),
    "ALTER POLICY confidential ON {shard} USING (taint = 4)": (
        "vault.conversation",
        "ALTER POLICY confidential ON {shard} USING (taint = 3)",
        "not in the matrix: muniment_confidential: rows (taint = 4) on vault.conversation in its shard {shard}",
    ),
    "ALTER TABLE {shard} OWNER TO muniment_control": (
        "muniment_internal.item",
        "ALTER TABLE {shard} OWNER TO muniment_owner",
        "not in the matrix: muniment_control: owns on muniment_internal.item in its shard {shard}",
    ),
}
"""For each statement that causes a fault in a shard: its table, the remedy, and what must be reported."""

_FAULTS_OF_NODES = {
    "GRANT SELECT ON muniment_restricted.item TO muniment_public": (
        "REVOKE SELECT ON muniment_restricted.item FROM muniment_public",
        "not in the matrix: muniment_public: SELECT on muniment_restricted.item",
    ),
    "ALTER TABLE vault.session DISABLE ROW LEVEL SECURITY": (
        "ALTER TABLE vault.session ENABLE ROW LEVEL SECURITY",
        "missing: row security: enabled on vault.session",
    ),
    "DROP POLICY public ON vault.conversation": (
        "CREATE POLICY public ON vault.conversation TO muniment_public USING (taint = 1)",
        "missing: muniment_public: rows (taint = 1) on vault.conversation",
    ),
    "ALTER VIEW muniment_public.session RESET (security_invoker)": (
        "ALTER VIEW muniment_public.session SET (security_invoker = true)",
        "missing: view: security_invoker=true on muniment_public.session",
    ),
    "REVOKE SELECT ON muniment_public.visible FROM muniment_public": (
        "GRANT SELECT ON muniment_public.visible TO muniment_public",
        "missing: muniment_public: SELECT on muniment_public.visible",
    ),
    "ALTER ROLE muniment_public BYPASSRLS": (
        "ALTER ROLE muniment_public NOBYPASSRLS",
        "not in the matrix: muniment_public: bypasses row security on role",
    ),
    "GRANT muniment_restricted TO muniment_public": (
        "REVOKE muniment_restricted FROM muniment_public",
        "not in the matrix: muniment_public: is a member of muniment_restricted on role",
    ),
    "ALTER ROLE muniment_public RESET lock_timeout": (
        "ALTER ROLE muniment_public SET lock_timeout = '5s'",
        "missing: muniment_public: lock_timeout=5s on setting",
    ),
    "GRANT EXECUTE ON FUNCTION citus_internal.add_tenant_schema(oid, integer) TO muniment_public": (
        "REVOKE EXECUTE ON FUNCTION citus_internal.add_tenant_schema(oid, integer) FROM muniment_public",
        "not in the matrix: muniment_public: EXECUTE on function citus_internal.add_tenant_schema(oid,integer)",
    ),
    "GRANT EXECUTE ON FUNCTION citus_check_connection_to_node(text, integer) TO muniment_public": (
        "REVOKE EXECUTE ON FUNCTION citus_check_connection_to_node(text, integer) FROM muniment_public",
        "not in the matrix: muniment_public: EXECUTE on function citus_check_connection_to_node(text,integer)",
    ),
    "GRANT EXECUTE ON FUNCTION master_run_on_worker TO muniment_public": (
        "REVOKE EXECUTE ON FUNCTION master_run_on_worker FROM muniment_public",
        "not in the matrix: muniment_public: EXECUTE on function master_run_on_worker(text[],integer[],text[],boolean)",
    ),
    "ALTER TABLE vault.session DROP CONSTRAINT fence_is_empty": (
        "ALTER TABLE vault.session ADD CONSTRAINT fence_is_empty CHECK (fence = 0)",
        "missing: pinned: CHECK ((fence = 0)) on vault.session",
    ),
    "GRANT CREATE ON DATABASE kept TO muniment_public": (
        "REVOKE CREATE ON DATABASE kept FROM muniment_public",
        "not in the matrix: muniment_public: CREATE on database",
    ),
}
"""For each statement that causes a fault on a node: the remedy, and what must be reported."""

_LATER = """
CREATE TABLE vault.later (tenant bigint NOT NULL PRIMARY KEY);
ALTER TABLE vault.session ADD COLUMN later integer NOT NULL DEFAULT 0;
"""
_ROWS = """
INSERT INTO vault.tenant (name) SELECT 'tenant ' || n FROM generate_series(1, 40) AS n;
INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled, user_profile_enabled,
                         memory_char_limit, user_char_limit)
SELECT tenant, 1, 'alice', '', 'english', TRUE, TRUE, 1, 1 FROM vault.tenant;
INSERT INTO vault.conversation (tenant, agent, conversation_id, taint)
SELECT tenant, 1, 'at ' || taint, taint FROM vault.tenant, generate_series(1, 4) AS taint;
INSERT INTO vault.session (tenant, agent, session_id, conversation_id, level, token_hash, expire_time)
SELECT tenant, agent, gen_random_uuid(), conversation_id, taint, decode(md5(tenant || conversation_id), 'hex'),
       'infinity'
  FROM vault.conversation;
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with folder_of_nodes() as made:
        yield made


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[Cluster]:
    with running(home) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def passfile(home: Path) -> Path:
    """The passfile of `kept`, once it is migrated."""
    return home / "passfile"


@pytest.fixture(scope="module")
def migrated(cluster: Cluster, home: Path, passfile: Path) -> str:
    """What the first `muniment migrate` of `kept` prints, a database of the cluster with the sessions of 40 tenants."""
    cluster.create("kept")
    cluster.join("kept")
    done = migrate(home, cluster.url(cluster.coordinator, "kept"), passfile)
    assert done.returncode == 0, done.stderr
    with cluster.admin(cluster.coordinator, "kept") as admin:
        admin.execute(_ROWS)
    return done.stdout


def login(cluster: Cluster, passfile: Path, role: str, port: int | None = None) -> psycopg.Connection[Any]:
    """A connection to a node, the coordinator if none is named, as a serving role."""
    url = cluster.url(port or cluster.coordinator, "kept")
    return psycopg.connect(url, user=role, passfile=str(passfile), autocommit=True)


def differences(cluster: Cluster, passfile: Path) -> list[str]:
    with login(cluster, passfile, roles.CONTROL) as connection:
        return cluster_grants.differences(connection)


def shard_of(cluster: Cluster, table: str) -> tuple[int, str]:
    """The port and the name of a shard of *table*."""
    with cluster.admin(cluster.coordinator, "kept") as admin:
        port, name = admin.execute(
            "SELECT nodeport, shard_name FROM citus_shards WHERE table_name = %s::regclass ORDER BY shardid DESC",
            [table],
        ).fetchall()[0]
    return port, name


def test_the_tables_are_distributed(cluster: Cluster, migrated: str) -> None:
    with cluster.admin(cluster.coordinator, "kept") as admin:
        spread = admin.execute(
            "SELECT table_name, nodeport FROM citus_shards WHERE table_name <> 'vault.migration'::regclass"
        ).fetchall()
        groups = admin.execute(
            "SELECT DISTINCT colocation_id FROM citus_tables WHERE table_name <> 'vault.migration'::regclass"
        ).fetchall()
        local = citus.undistributed(admin)

    assert re.search(r"^distributed \d+ tables by tenant$", migrated, re.MULTILINE)
    assert {port for _, port in spread} == set(cluster.workers)
    assert (len(groups), local) == (1, {})


def test_a_database_that_was_prepared_before_is_not_distributed(
    cluster: Cluster, home: Path, passfile: Path, migrated: str
) -> None:
    url = cluster.url(cluster.coordinator, "early")
    cluster.create("early")
    assert migrate(home, url, passfile).returncode == 0
    cluster.join("early")

    refused = migrate(home, url, passfile)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "run `muniment distribute`" in refused.stderr
    # The first migration has reset the settings of roles, which belong to all databases of a server.
    assert migrate(home, cluster.url(cluster.coordinator, "kept"), passfile).returncode == 0


def test_a_second_run_changes_nothing(cluster: Cluster, home: Path, passfile: Path, migrated: str) -> None:
    again = migrate(home, cluster.url(cluster.coordinator, "kept"), passfile)

    assert (again.returncode, again.stdout) == (0, "")
    assert "Nothing to do" in again.stderr


def test_a_cluster_is_migrated_after_another_database_of_its_nodes_was_prepared(
    cluster: Cluster, home: Path, passfile: Path, migrated: str
) -> None:
    """As a trial restore does. The owner has another password then, which only the other database knows."""
    with cluster.admin(cluster.coordinator, "kept") as admin:
        admin.execute(f"ALTER ROLE {roles.OWNER} PASSWORD 'of another database'".encode())

    done = migrate(home, cluster.url(cluster.coordinator, "kept"), passfile)

    assert done.returncode == 0, done.stderr
    assert f"let the nodes of the cluster log in to each other as {roles.OWNER}" in done.stdout


@pytest.mark.parametrize("role", roles.SERVING)
def test_a_worker_notices_when_the_coordinator_is_gone(
    cluster: Cluster, passfile: Path, migrated: str, role: str
) -> None:
    """No time limit ends a COPY that waits for rows, and its locks would stay for hours."""
    for port in cluster.workers:
        with login(cluster, passfile, role, port) as connection:
            assert connection.execute("SHOW tcp_keepalives_idle").fetchone() == ("10",)


def test_a_worker_is_not_migrated(cluster: Cluster, home: Path, passfile: Path, migrated: str) -> None:
    for port in cluster.workers:
        refused = migrate(home, cluster.url(port, "kept"), passfile)

        assert (refused.returncode, refused.stdout) == (1, "")
        assert "name the database of the coordinator" in refused.stderr


def test_the_grants_of_each_node_and_shard_equal_the_matrix(cluster: Cluster, passfile: Path, migrated: str) -> None:
    assert differences(cluster, passfile) == []


@pytest.mark.parametrize("fault", _FAULTS_OF_SHARDS)
def test_a_fault_in_one_shard_is_found(cluster: Cluster, passfile: Path, migrated: str, fault: str) -> None:
    table, remedy, finding = _FAULTS_OF_SHARDS[fault]
    port, shard = shard_of(cluster, table)
    with cluster.admin_of_node_alone(port, "kept") as admin:
        admin.execute(fault.format(shard=shard).encode())
        try:
            found = differences(cluster, passfile)
        finally:
            admin.execute(remedy.format(shard=shard).encode())

    assert f"{finding.format(shard=shard)} at 127.0.0.1:{port}" in found
    assert differences(cluster, passfile) == []


@pytest.mark.parametrize("fault", _FAULTS_OF_NODES)
def test_a_fault_on_one_worker_is_found(cluster: Cluster, passfile: Path, migrated: str, fault: str) -> None:
    remedy, finding = _FAULTS_OF_NODES[fault]
    port = cluster.workers[1]
    with cluster.admin_of_node_alone(port, "kept") as admin:
        admin.execute(fault.encode())
        try:
            found = differences(cluster, passfile)
        finally:
            admin.execute(remedy.encode())

    assert found == [f"{finding} at 127.0.0.1:{port}"]


def test_settings_of_a_node_are_found(cluster: Cluster, passfile: Path, migrated: str) -> None:
    """The nodes of tests have no fsync, and Postgres logs statements that fail unless it is set not to."""
    quiet, port = "ALTER DATABASE kept SET log_min_error_statement = panic", cluster.workers[0]
    with cluster.admin_of_node_alone(port, "kept") as admin:
        admin.execute(quiet)
    with login(cluster, passfile, roles.CONTROL) as connection:
        found = grants.problems(connection, connections=1)
        tolerated = grants.problems(connection, connections=1, durable=False)

    others = [node for node in (cluster.coordinator, *cluster.workers) if node != port]
    logs = (
        "log_min_error_statement is error at 127.0.0.1:{}: statements that contain stored text would be logged; "
        "set it to panic with ALTER DATABASE on that node"
    )
    remedy = "an acknowledged write could be lost; turn it on in that node's configuration"
    assert sum("fsync is off at" in problem and problem.endswith(remedy) for problem in found) == 3
    assert sorted(tolerated) == sorted(logs.format(node) for node in others)


@pytest.mark.parametrize("level", Classification)
def test_a_level_reads_nothing_above_it_on_any_node_or_shard(
    cluster: Cluster, passfile: Path, migrated: str, level: Classification
) -> None:
    """Whatever SQL it runs: on the tables of the cluster, and logged in on each node, on each shard."""
    relations = _relations(cluster)
    seen = set()
    for port in (cluster.coordinator, *cluster.workers):
        with login(cluster, passfile, untrusted(level).role, port) as connection:
            connection.execute("SET citus.override_table_visibility = off")
            for relation in relations[port]:
                seen |= set(_levels_seen(connection, relation))

    assert {name for name, _ in seen} == {"vault.conversation", "vault.session"}
    assert {taint for name, taint in seen if name == "vault.conversation"} == {level.value}
    assert {opened_at for name, opened_at in seen if name == "vault.session"} == set(range(1, level.value + 1))


@pytest.mark.parametrize("level", Classification)
def test_a_level_has_no_right_on_tables_of_items_above_it(
    cluster: Cluster, passfile: Path, migrated: str, level: Classification
) -> None:
    above = [untrusted(other).role for other in Classification if other > level]
    checked = 0
    for port, relations in _relations(cluster).items():
        with login(cluster, passfile, untrusted(level).role, port) as connection:
            connection.execute("SET citus.override_table_visibility = off")
            for relation in (each for each in relations if each.split(".")[0] in above):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"SELECT FROM {relation} LIMIT 1".encode())
                checked += 1

    assert checked >= len(above) * 9 * (8 + 3)


@pytest.mark.parametrize("role", roles.SERVING)
def test_large_objects_are_closed_on_each_node(cluster: Cluster, passfile: Path, migrated: str, role: str) -> None:
    for port in (cluster.coordinator, *cluster.workers):
        with login(cluster, passfile, role, port) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT lo_create(0)")


@pytest.mark.parametrize("role", roles.SERVING)
@pytest.mark.parametrize(
    "call",
    [
        "citus_internal.add_tenant_schema(1, 1)",
        "citus_unmark_object_distributed(1, 1, 1, false)",
        "master_unmark_object_distributed(1, 1, 1)",
    ],
)
def test_no_serving_role_changes_the_metadata_of_the_cluster(
    cluster: Cluster, passfile: Path, migrated: str, role: str, call: str
) -> None:
    """All levels read them. Citus lets everybody call these functions."""
    for port in (cluster.coordinator, *cluster.workers):
        with login(cluster, passfile, role, port) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f"SELECT {call}".encode())


@pytest.mark.parametrize("role", roles.SERVING)
@pytest.mark.parametrize(
    "call",
    [
        "citus_check_connection_to_node('127.0.0.1', 1)",
        "citus_check_cluster_node_health()",
        "fetch_intermediate_results(ARRAY['a'], '127.0.0.1', 1)",
        "master_run_on_worker(ARRAY['127.0.0.1'], ARRAY[1], ARRAY['SELECT 1'], FALSE)",
        "run_command_on_workers('SELECT 1')",
        "run_command_on_all_nodes('SELECT 1')",
        "run_command_on_coordinator('SELECT 1')",
    ],
)
def test_no_role_that_reads_items_has_a_node_connect_to_a_host_or_run_a_command(
    cluster: Cluster, passfile: Path, migrated: str, role: str, call: str
) -> None:
    """The host would get the role's password in clear. The control role runs commands, since it verifies grants."""
    if role == roles.CONTROL and "run" in call:
        return
    for port in (cluster.coordinator, *cluster.workers):
        with login(cluster, passfile, role, port) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f"SELECT * FROM {call}".encode())


@pytest.mark.parametrize("role", roles.SERVING)
def test_each_serving_role_asks_the_nodes_for_their_epochs(
    cluster: Cluster, passfile: Path, migrated: str, role: str
) -> None:
    with login(cluster, passfile, role) as connection:
        epochs = citus.epochs_of_nodes(connection)

    assert len(epochs) == len(cluster.workers)
    assert len({epoch.system for epoch in epochs.values()}) == len(cluster.workers)


@pytest.mark.parametrize(("table", "changed"), [("conversation", 1), ("session", 4)])
def test_the_right_to_lock_rows_that_lower_levels_read_leaves_nothing_in_them(
    cluster: Cluster, passfile: Path, migrated: str, table: str, changed: int
) -> None:
    update = f"UPDATE vault.{table} SET fence = %s WHERE tenant = 1".encode()
    with login(cluster, passfile, "muniment_restricted") as connection:
        assert connection.execute(update, [0]).rowcount == changed
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(update, [7])


_ASKED = (
    *(each for each in named(EMBEDDER) if each.role == "muniment_public"),
    *(each for each in named(ERASER) if each.name == "is_deleted"),
)


@pytest.mark.parametrize("query", _ASKED, ids=str)
def test_citus_runs_what_the_embedder_asks(cluster: Cluster, passfile: Path, migrated: str, query: Named) -> None:
    """It asks for all tenants, where Citus refuses more than for one."""
    literals = literals_of(query.text)
    with login(cluster, passfile, query.role) as connection, connection.transaction(force_rollback=True):
        connection.execute(f"SET LOCAL search_path = {query.role}".encode())
        with suppress(psycopg.errors.ForeignKeyViolation):  # the agent of the literals does not exist
            connection.execute(for_cluster(filled(query.text, literals)).encode())


@pytest.mark.parametrize("role", roles.SERVING)
def test_no_serving_role_reads_the_passwords_of_the_nodes(
    cluster: Cluster, passfile: Path, migrated: str, role: str
) -> None:
    for port in (cluster.coordinator, *cluster.workers):
        with login(cluster, passfile, role, port) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT FROM pg_dist_authinfo")


def test_transactions_that_are_prepared_but_not_by_citus_are_found(
    cluster: Cluster, passfile: Path, migrated: str
) -> None:
    """Their locks outlive the connection. Citus's own are no cause for alarm until they are old."""
    conninfo, port = f"{cluster.url(cluster.coordinator, 'kept')}?passfile={passfile}", cluster.workers[1]
    before = databases.warnings_of(conninfo, connections=0)
    for gid in ("citus_0_1_1_0", "a text for lower levels"):
        with login(cluster, passfile, "muniment_restricted", port) as connection:
            connection.execute("BEGIN")
            connection.execute(f"PREPARE TRANSACTION '{gid}'".encode())
    try:
        found = [each for each in databases.warnings_of(conninfo, connections=0) if each not in before]
    finally:
        with cluster.admin(port, "kept") as admin:
            for gid in ("citus_0_1_1_0", "a text for lower levels"):
                admin.execute(f"ROLLBACK PREPARED '{gid}'".encode())

    assert len(found) == 1
    assert f"transactions of muniment_restricted that are prepared at 127.0.0.1:{port}" in found[0]
    assert "or not by Citus: 1. " in found[0]
    assert "a text" not in found[0]


def _relations(cluster: Cluster) -> dict[int, list[str]]:
    """The tables of Muniment and their shards on each node, by its port."""
    found = {}
    for port in (cluster.coordinator, *cluster.workers):
        with cluster.admin(port, "kept") as admin:
            admin.execute("SET citus.override_table_visibility = off")
            rows = admin.execute(
                "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r'"
                " AND (relnamespace = 'vault'::regnamespace OR relnamespace::regnamespace::text LIKE 'muniment%')"
            ).fetchall()
        found[port] = [name for (name,) in rows]
    return found


def _levels_seen(connection: psycopg.Connection[Any], relation: str) -> Iterator[tuple[str, int]]:
    """The table and the levels of the rows of hosts' tables that the role of *connection* reads in *relation*."""
    table = relation.rstrip("0123456789").rstrip("_")
    column = {"vault.conversation": "taint", "vault.session": "level"}.get(table)
    if column is not None:
        for (level,) in connection.execute(f"SELECT DISTINCT {column} FROM {relation}".encode()):
            yield table, level


def test_the_audit_log_names_the_operator_who_has_logged_in(cluster: Cluster, home: Path, migrated: str) -> None:
    """And not the owner, as whom the coordinator sends the statements to the nodes."""
    url = {"MUNIMENT_DATABASE_URL": admin_url(cluster.url(cluster.coordinator, "kept"))}
    commands = {
        "host-key create": ("--tenant", "tenant 1", "--ceiling", "public", "--quiet"),
        "tenant limits": ("tenant 1", "--max-agents", "7"),
        "tenant close-sessions": ("tenant 1",),
        "tenant freeze": ("tenant 1",),
        "tenant thaw": ("tenant 1",),
    }
    for command, arguments in commands.items():
        done = run_process(home, *command.split(), *arguments, **url)
        assert done.returncode == 0, done.stderr

    with cluster.admin(cluster.coordinator, "kept") as admin:
        logged = admin.execute("SELECT DISTINCT method, reason FROM muniment_control.audit").fetchall()

    assert dict(logged) == dict.fromkeys(commands, "by postgres")


def test_a_later_migration_reaches_each_node(cluster: Cluster, passfile: Path, migrated: str) -> None:
    """The last test of this file: from here on, `kept` has a table that the matrix does not."""
    later = (*migrations.migrations(), migrations.Migration(9999, "9999_later.sql", _LATER))
    with patch.object(migrations, "migrations", lambda: later):
        done = migrations.migrate(admin_url(cluster.url(cluster.coordinator, "kept")))

    found = differences(cluster, passfile)
    assert done == ["applied 9999_later", "distributed 1 tables by tenant"]
    assert found != []
    assert all("vault.later" in difference for difference in found)
