"""A prepared cluster is served by a real process: every RPC, faults on one worker, and what must not be served."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muniment_server.domain.classification import Classification
from tests.citus.cluster import Cluster, folder_of_nodes, missing, running
from tests.citus.served import DATABASE, SERVABLE, ServedCluster, new_host_key, serving
from tests.conformance import scenarios
from tests.conformance.clients import CLIENTS
from tests.conformance.servers import Elsewhere
from tests.conformance.suite import Suite
from tests.faults.load import channel_to
from tests.faults.rounds import Rounds
from tests.support.commands import run_process, wait_until
from tests.support.external_postgres import admin_url, migrate
from tests.support.methods import METHODS
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
    with serving(home, cluster) as server:
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


def _ready(host: Caller) -> bool:
    stub: Any = health_pb2_grpc.HealthStub(host.channel)
    answer = stub.Check(health_pb2.HealthCheckRequest(service="readiness"), timeout=5)
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def test_every_rpc_is_answered(served: ServedCluster) -> None:
    """By stubs that retry nothing, and by the Python client, at the same time."""
    rounds = Rounds(served.address, served.host_key)
    with rounds.running():
        wait_until(lambda: rounds.rounds["_bare"] >= 6 or rounds.wrong, "rounds of calls", seconds=240)

    assert rounds.wrong == []
    assert set(rounds.called) == set(METHODS)


def test_the_python_client_sees_what_the_scenarios_say(
    served: ServedCluster, cluster: Cluster, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, tenant, ceiling in (
        ("MUNIMENT_HOST_KEY", "played", "restricted"),
        ("MUNIMENT_INTERNAL_HOST_KEY", "played", "internal"),
        ("MUNIMENT_OTHER_HOST_KEY", "neighbor", "restricted"),
    ):
        monkeypatch.setenv(variable, new_host_key(home, cluster, tenant, ceiling))
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
    """The worker dies between the two phases of a commit, which the coordinator then reports as done.

    Until the worker is back and its prepared transaction recovered, it shows the old rows. The coordinator waits
    between the phases for a standby that does not exist.
    """
    session = _session(host, PUBLIC, "phases")
    port, _ = served.shard("vault.conversation", 1)
    node = next(node for node in cluster.nodes if node.port == port)
    with cluster.admin(port) as worker, ThreadPoolExecutor(1) as caller:
        with cluster.held_between_phases():
            call = caller.submit(session.observe, "SaveMemory", key="plan", content="x")
            in_doubt = "SELECT FROM pg_prepared_xacts"
            wait_until(lambda: worker.execute(in_doubt).fetchall() or call.done(), "the first phase")
            assert not call.done()
            node.kill()
        outcome: Outcome = call.result()

    assert outcome.code is grpc.StatusCode.UNAVAILABLE
    node.start()
    wait_until(lambda: session.observe("GetMemory", key="plan").code is grpc.StatusCode.OK, "what was committed")
    assert served.prepared() == 0


def test_doctor_says_on_how_many_nodes_the_grants_are_right(
    served: ServedCluster, cluster: Cluster, home: Path
) -> None:
    url = cluster.url(cluster.coordinator, DATABASE)
    examined = run_process(home, "doctor", "--database-url", url, "--passfile", str(home / "passfile"))

    assert "✓ this is a Citus cluster, and the grants are as required on each of its 3 nodes" in examined.stdout


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
