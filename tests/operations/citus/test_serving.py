"""A prepared cluster is served by a real process: every RPC, faults on one worker, and what must not be served."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muniment_server.background.census import Censuses
from muniment_server.domain.classification import Classification
from muniment_server.postgres.placement import Placement
from tests.clients.conformance import scenarios
from tests.clients.conformance.clients import CLIENTS
from tests.clients.conformance.servers import Elsewhere
from tests.clients.conformance.suite import Suite
from tests.operations.citus.cluster import Cluster, folder_of_nodes, missing, running, wait_for_standby
from tests.operations.citus.served import DATABASE, SERVABLE, ServedCluster, new_host_key, serving
from tests.proof.faults.load import channel_to
from tests.rpcs import RPCS, filled, observe
from tests.support.commands import run_process, wait_until
from tests.support.external_postgres import admin_url, migrate
from tests.support.methods import POLICIES
from tests.support.services import Caller, Outcome

pytestmark = [
    pytest.mark.proof,
    pytest.mark.deep,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_CHECKED = 75.0
"""Seconds within which a server has verified the grants again: it does so once a minute."""
_LOCK_SECONDS = 5
"""How long a statement waits for a lock."""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with folder_of_nodes() as made:
        yield made


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[Cluster]:
    with running(home, **SERVABLE, **{"citus.recover_2pc_interval": "1s"}) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def served(home: Path, cluster: Cluster) -> Iterator[ServedCluster]:
    with serving(home, cluster, "--metrics", f"unix:{home}/metrics") as server:
        yield server
        print(server.log[-10_000:])


@pytest.fixture(scope="module")
def host(served: ServedCluster) -> Iterator[Caller]:
    with channel_to(served.address) as channel:
        yield Caller(channel, served.host_key)


def _session(host: Caller, taint: Classification, agent_id: str) -> Caller:
    """A session of a new agent."""
    host.create_agent(agent_id=agent_id)
    opened = host.open_session(agent_id=agent_id, taint=int(taint))
    return Caller(host.channel, opened.token, opened.session.session_id, opened.session.conversation_id)


def _refused(host: Caller, level: Classification) -> list[str]:
    """The rows of tests/rpcs.py that are refused, each played for an agent of its own."""
    outcomes = {}
    for rpc, row in RPCS.items():
        session, world = filled(host, level, word=f"every-{rpc}-{level.name}")
        outcomes[rpc] = observe(host if POLICIES[rpc].for_hosts else session, rpc, row.request(world))
    return [f"{rpc} at {level.name}: {one}" for rpc, one in outcomes.items() if one.code is not grpc.StatusCode.OK]


def _ready(host: Caller) -> bool:
    stub: Any = health_pb2_grpc.HealthStub(host.channel)
    answer = stub.Check(health_pb2.HealthCheckRequest(service="readiness"), timeout=5)
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def test_every_rpc_is_answered(served: ServedCluster) -> None:
    """At each level, by four callers at the same time, with stubs that retry nothing."""
    with ThreadPoolExecutor() as callers, channel_to(served.address) as channel:
        hosts = [Caller(channel, served.host_key) for _ in Classification]
        refused = [rpc for each in callers.map(_refused, hosts, Classification) for rpc in each]

    assert refused == []


def test_the_python_client_sees_what_the_scenarios_say(
    served: ServedCluster, cluster: Cluster, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, tenant, ceiling in (
        ("MUNIMENT_HOST_KEY", "played", "restricted"),
        ("MUNIMENT_INTERNAL_HOST_KEY", "played", "internal"),
        ("MUNIMENT_OTHER_HOST_KEY", "neighbor", "restricted"),
        ("MUNIMENT_EXPIRED_HOST_KEY", "expired", "restricted"),
    ):
        monkeypatch.setenv(variable, new_host_key(home, cluster, tenant, ceiling))
    with cluster.admin(cluster.coordinator, DATABASE) as admin:
        admin.execute(
            "UPDATE vault.host_key SET expire_time = vault.clock()"
            " WHERE tenant = (SELECT tenant FROM vault.tenant WHERE name = 'expired')"
        )
    client = next(client for client in CLIENTS if client.language == "python")

    played = Suite(scenarios.load()).play(client, Elsewhere(served.address, None))

    assert (played.failures, played.left_out) == ([], ())
    assert played.steps > 0


def test_a_grant_on_one_shard_of_one_worker_closes_the_gate_until_it_is_gone(
    served: ServedCluster, cluster: Cluster, host: Caller
) -> None:
    session = _session(host, PUBLIC, "gate")
    port, shard = served.shard("muniment_restricted.item", 1)
    assert _ready(host)
    with cluster.admin_of_node_alone(port, DATABASE) as admin:
        admin.execute(f"GRANT SELECT ON {shard} TO muniment_public".encode())
        try:
            wait_until(lambda: not _ready(host), "the gate closes", seconds=_CHECKED)
            refused = session.observe("GetMemory", key="plan")
        finally:
            admin.execute(f"REVOKE SELECT ON {shard} FROM muniment_public".encode())

    assert refused.code is grpc.StatusCode.UNAVAILABLE
    assert f"muniment_public: SELECT on muniment_restricted.item in its shard {shard} at 127.0.0.1:{port}" in served.log
    wait_until(lambda: _ready(host), "the gate opens", seconds=10)
    wait_until(lambda: session.observe("GetMemory", key="plan").code is grpc.StatusCode.NOT_FOUND, "a call", seconds=10)


def test_a_row_that_is_locked_on_a_worker_fails_a_write_within_the_limit(
    served: ServedCluster, cluster: Cluster, host: Caller
) -> None:
    """The coordinator's session has that limit, and its connection to the worker does not get it from there."""
    session = _session(host, PUBLIC, "locked")
    port, shard = served.shard("vault.conversation", 1)
    with cluster.admin_of_node_alone(port, DATABASE) as admin, admin.transaction():
        admin.execute(f"SELECT FROM {shard} WHERE conversation_id = %s FOR UPDATE".encode(), [session.conversation_id])
        begun = time.monotonic()
        refused = session.observe("SaveMemory", key="plan", content="x")
        waited = time.monotonic() - begun

    assert refused.code is grpc.StatusCode.UNAVAILABLE
    assert _LOCK_SECONDS <= waited < _LOCK_SECONDS + 3
    assert session.observe("SaveMemory", key="plan", content="x").code is grpc.StatusCode.OK


def test_a_call_whose_deadline_passes_ends_on_the_worker_too(
    served: ServedCluster, cluster: Cluster, host: Caller
) -> None:
    session = _session(host, PUBLIC, "late")
    port, shard = served.shard("vault.conversation", 1)
    with cluster.admin_of_node_alone(port, DATABASE) as admin, admin.transaction():
        admin.execute(f"SELECT FROM {shard} WHERE conversation_id = %s FOR UPDATE".encode(), [session.conversation_id])
        with pytest.raises(grpc.RpcError) as late:
            session.save_memory(key="plan", content="x", timeout=1.0)
        with cluster.admin(port) as looking:
            waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            wait_until(lambda: not looking.execute(waiting).fetchall(), "no statement waits", seconds=3)

    assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_what_a_worker_has_not_confirmed_is_not_acknowledged(
    served: ServedCluster, cluster: Cluster, host: Caller
) -> None:
    """The worker dies before it says that it has committed: it waits for a standby that does not exist."""
    session = _session(host, PUBLIC, "phases")
    port, _ = served.shard("vault.conversation", 1)
    node = next(node for node in cluster.nodes if node.port == port)
    wait_for_standby(cluster, port, "none")
    with ThreadPoolExecutor(1) as caller:
        with cluster.admin(port) as worker:
            call = caller.submit(session.observe, "SaveMemory", key="plan", content="x")
            waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'muniment_public'"
            wait_until(lambda: worker.execute(waiting).fetchall() or call.done(), "the commit")
            assert not call.done()
            node.kill()
        outcome: Outcome = call.result()
    node.start()
    wait_for_standby(cluster, port, "")

    assert outcome.code is grpc.StatusCode.UNAVAILABLE
    wait_until(lambda: session.observe("GetMemory", key="plan").code is grpc.StatusCode.OK, "what was committed")
    assert served.prepared() == 0


def test_doctor_says_on_how_many_nodes_the_grants_are_right(
    served: ServedCluster, cluster: Cluster, home: Path
) -> None:
    url = cluster.url(cluster.coordinator, DATABASE)
    examined = run_process(home, "doctor", "--database-url", url, "--passfile", str(home / "passfile"))

    assert "✓ this is a Citus cluster, and the grants are as required on each of its 3 nodes" in examined.stdout


def test_while_a_worker_is_away_the_tenants_of_the_others_are_served(
    served: ServedCluster, cluster: Cluster, host: Caller
) -> None:
    """Each step of a call runs where its tenant is: see ADR 14."""
    calls = {rpc: filled(host, CONFIDENTIAL, word=f"away-{rpc}", content="ship on Friday") for rpc in RPCS}
    session, world = calls["EraseItems"]
    of_agent, item = {"agent_id": world.word}, RPCS["EraseItems"].request(world)
    port, _ = served.shard("vault.conversation", 1)
    own, other = sorted(cluster.nodes[1:], key=lambda node: node.port != port)
    before = len(served.log)
    other.stop()
    try:
        denied = [host.observe("GetMemory", key="plan").code, session.observe("GetAgent", **of_agent).code]
        codes = {
            rpc: observe(host if POLICIES[rpc].for_hosts else session, rpc, RPCS[rpc].request(world)).code
            for rpc, (session, world) in calls.items()
        }
        assert _ready(host)
        wait_until(lambda: "the audit log was not sealed" in served.log[before:], "the sealer", seconds=30)
    finally:
        other.start()

    assert denied == [grpc.StatusCode.PERMISSION_DENIED] * 2
    assert {method: code for method, code in codes.items() if code is not grpc.StatusCode.OK} == {
        "EraseItems": grpc.StatusCode.UNAVAILABLE
    }
    wait_until(lambda: host.observe("EraseItems", **item).code is grpc.StatusCode.OK, "an erasure", seconds=30)
    own.stop()
    refused = host.observe("GetAgent", **of_agent)
    own.start()
    assert refused.code is grpc.StatusCode.UNAVAILABLE
    wait_until(lambda: host.observe("GetAgent", **of_agent).code is grpc.StatusCode.OK, "a read", seconds=30)


def test_a_worker_is_not_served_and_its_epoch_is_not_kept(served: ServedCluster, cluster: Cluster, home: Path) -> None:
    state = home / "state"
    for port in cluster.workers:
        url = cluster.url(port, DATABASE)
        options = ("--database-url", url, "--passfile", str(home / "passfile"), "--state-dir", str(state))
        refused = run_process(home, "serve", "--listen", "127.0.0.1:0", *options)

        assert (refused.returncode, refused.stdout) == (1, "")
        assert "this is a worker of a Citus cluster: name the database of the coordinator" in refused.stderr
        assert "name the database of the coordinator" in run_process(home, "doctor", *options).stdout
        as_admin = {"MUNIMENT_DATABASE_URL": admin_url(url)}
        for command in (
            ("migrate", "--rotate", "--passfile", str(home / "passfile")),
            ("host-key", "list"),
            ("backup", "-"),
            ("database", "adopt", "--yes", "--state-dir", str(state)),
        ):
            done = run_process(home, *command, **as_admin)
            assert (done.returncode, done.stdout) == (1, "")
            assert "this is a worker of a Citus cluster" in done.stderr
    assert not (home / "passfile.next").exists()
    assert not list(state.rglob("*"))


def test_a_database_that_was_prepared_before_the_extension_is_not_served(
    served: ServedCluster, cluster: Cluster, home: Path
) -> None:
    url = cluster.url(cluster.coordinator, "early")
    cluster.create("early")
    assert migrate(home, url, home / "passfile").returncode == 0
    cluster.join("early")

    options = ("--database-url", url, "--passfile", str(home / "passfile"))
    refused = run_process(home, "serve", "--listen", "127.0.0.1:0", *options)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "run `muniment distribute`" in refused.stderr


def test_the_metrics_tell_which_worker_does_not_answer(served: ServedCluster, cluster: Cluster, home: Path) -> None:
    def nodes_up() -> dict[str, int]:
        shown = run_process(home, "status", "--metrics", f"unix:{home}/metrics", "--json")
        return dict(json.loads(shown.stdout)["nodes_up"])

    workers = [node for node in cluster.nodes if node.port != cluster.coordinator]
    before = nodes_up()
    workers[0].kill()
    try:
        wait_until(
            lambda: nodes_up() == {**before, f"127.0.0.1:{workers[0].port}": 0}, "the worker is away", seconds=20
        )
        shown = run_process(home, "status", "--metrics", f"unix:{home}/metrics").stdout
    finally:
        workers[0].start()

    assert before == {f"127.0.0.1:{node.port}": 1 for node in workers}
    assert f"127.0.0.1:{workers[0].port} 0" in shown
    wait_until(lambda: nodes_up() == before, "it answers again", seconds=20)


def test_the_metrics_tell_that_a_worker_hangs_also_if_none_has_answered_before(
    served: ServedCluster, cluster: Cluster, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a reload of the servers file."""
    monkeypatch.setenv("PGPASSFILE", str(home / "passfile"))
    url = cluster.url(cluster.coordinator, DATABASE)
    with Censuses(home / "epochs") as censuses, ExitStack() as hanging:
        for process in cluster.nodes[1].processes():
            os.kill(process, signal.SIGSTOP)
            hanging.callback(os.kill, process, signal.SIGCONT)
        censuses.count(Placement({"": url}, {}), None)
        wait_until(
            lambda: "muniment_node_up" in {family.name for family in censuses.families()}, "the workers are named"
        )
        (family,) = (family for family in censuses.families() if family.name == "muniment_node_up")

    assert {sample.labels["node"]: sample.value for sample in family.samples} == {
        f"127.0.0.1:{port}": 0 for port in cluster.workers
    }
