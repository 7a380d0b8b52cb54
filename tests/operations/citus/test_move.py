"""A tenant moves to a cluster, from one, and between two, also while nodes die during the commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from muniment_server.admin.moving import CannotMove, Move, Step
from muniment_server.admin.moving import _prepare as prepare
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.runtime.claims import RANGE
from tests.operations.citus.clones import ClusterPostgres, running_cluster
from tests.operations.citus.cluster import Cluster, Node, missing, wait_for_standby
from tests.operations.citus.served import SERVABLE
from tests.operations.servers import moving
from tests.operations.servers.conftest import Servers, cloned_servers, folder, root_folder, served, serving, session_of
from tests.operations.servers.moving import BROKEN, LATE, STEPS, Scenario, Serve
from tests.proof.noninterference.mutants.scheme import Mutant, applied
from tests.support.commands import Server, wait_until
from tests.support.databases import running_postgres
from tests.support.services import Caller

__all__ = ["folder", "root_folder", "served", "serving"]

pytestmark = [
    pytest.mark.proof,
    pytest.mark.deep,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

_DIRECTIONS = {"to a cluster": ("plain", "one"), "from a cluster": ("one", "plain"), "between": ("one", "other")}
_SETTINGS = {**SERVABLE, "citus.recover_2pc_interval": "-1"}
"""Transactions in doubt end when a test says so."""
_OTHER_TEXTS = {"timezone": "Asia/Kolkata", "bytea_output": "escape"}
"""Settings of the nodes of one cluster. A digest must not depend on them."""
_KILLED = (*range(0, len(STEPS) - 4, 13), *STEPS[-4:])
_ARRIVAL, _LETTING_GO, _ACTIVATION = STEPS[-3:]
"""The steps that end with a commit of the target, of the source, and of the target again."""
_WAITS = 1.0
"""Seconds after which a command that does not wait would have ended."""
_SCENARIOS: Mapping[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        moving.everything_moves_and_hosts_go_on_with_new_keys,
        moving.embeddings_move_with_their_lists,
        moving.the_audit_log_moves_with_its_seals,
        moving.a_process_with_an_old_file_finds_no_session_and_writes_nothing,
        moving.a_dry_run_changes_nothing,
        moving.a_move_that_was_interrupted_can_be_given_up,
        moving.what_is_written_while_it_is_copied_is_moved_or_refused,
        moving.rows_that_change_meanwhile_are_copied_again,
        moving.at_no_step_do_two_servers_have_a_tenant_that_is_served,
    )
}


@pytest.fixture(scope="module")
def places() -> Iterator[Mapping[str, EmbeddedPostgres | ClusterPostgres]]:
    """A plain Postgres, and two clusters."""
    with ExitStack() as stack:
        yield {
            "plain": stack.enter_context(running_postgres(durable=True)),
            "one": stack.enter_context(running_cluster(**_SETTINGS, **_OTHER_TEXTS)),
            "other": stack.enter_context(running_cluster(**_SETTINGS)),
        }


@pytest.fixture(params=_DIRECTIONS)
def servers(
    request: pytest.FixtureRequest, places: Mapping[str, EmbeddedPostgres | ClusterPostgres], folder: Path
) -> Iterator[Servers]:
    with cloned_servers([places[name] for name in _DIRECTIONS[request.param]], folder) as made:
        yield made


to_a_cluster = pytest.mark.parametrize("servers", ["to a cluster", "between"], indirect=True)
from_a_cluster = pytest.mark.parametrize("servers", ["from a cluster", "between"], indirect=True)


@pytest.mark.parametrize("name", _SCENARIOS)
def test_it_moves_as_between_plain_servers(name: str, servers: Servers, served: Serve) -> None:
    _SCENARIOS[name](servers, served)


@from_a_cluster
@pytest.mark.parametrize("late", LATE)
def test_from_the_copy_on_no_call_adds_a_row(late: str, servers: Servers, served: Serve) -> None:
    moving.from_the_copy_on_no_call_adds_a_row(late, servers, served)


@pytest.mark.timeout(900)
def test_a_move_that_is_killed_ends_when_it_is_run_again(servers: Servers, served: Serve) -> None:
    moving.a_move_that_is_killed_ends_when_it_is_run_again(servers, served, _KILLED)


def test_the_steps_of_a_move_are_those_of_plain_servers(servers: Servers) -> None:
    servers.key("acme", "a")

    assert len(moving.moved(servers)) == len(STEPS)


@pytest.mark.parametrize("servers", ["between"], indirect=True)
@pytest.mark.parametrize("name", BROKEN)
def test_a_guard_of_a_move_that_is_missing_is_noticed(name: str, servers: Servers, served: Serve) -> None:
    noticed_by, patch = BROKEN[name]
    with applied(Mutant(name, "", (patch,))), pytest.raises((AssertionError, pytest.fail.Exception)):
        noticed_by(servers, served)


def test_a_server_of_the_file_may_be_a_cluster(servers: Servers, serving: Callable[..., Server]) -> None:
    keys = {"a": servers.key("acme", "a"), "b": servers.key("globex", "b")}
    servers.write({moving.number_of(keys["b"]): "b"})
    server = serving("--servers", str(servers.file), "--drain-seconds", "1")
    with grpc.insecure_channel(server.address) as channel:
        for name, key in keys.items():
            host = Caller(channel, key)
            host.create_agent(agent_id="alice")
            session = session_of(host, moving.PUBLIC)
            session.save_memory(key="plan", content=f"at {name}")

            assert session.get_memory(key="plan").memory.content == f"at {name}"


@to_a_cluster
def test_new_tenants_of_a_cluster_get_numbers_of_its_own(servers: Servers) -> None:
    assert moving.number_of(servers.key("acme", "b")) == RANGE + 1


@to_a_cluster
def test_a_copy_that_a_node_has_not_confirmed_is_made_again(servers: Servers, served: Serve) -> None:
    """The target commits it, and the source keeps the tenant. The next run waits until the copy can be seen."""
    tenant = _filled(servers, served)
    with _in_doubt(servers, "b", _ARRIVAL) as node:
        with pytest.raises(psycopg.Error):
            moving.moved(servers)
        node.start()
        again = _after_recovery(servers, "b", lambda: moving.moved(servers))

    assert again[-1].name == "activate"
    assert any(step.name == "copy" and step.rows for step in again)
    _require_moved(servers, tenant)


@from_a_cluster
def test_a_source_whose_node_dies_when_it_lets_go_is_asked_again(servers: Servers, served: Serve) -> None:
    """Citus commits in one phase what only one node has changed. The node had committed, but could not say so."""
    tenant = _filled(servers, served)
    with _committed_unconfirmed(servers, "a", _LETTING_GO):
        moving.require_one_place(servers, tenant)
        again = moving.moved(servers)

    assert [step.name for step in again] == ["activate"]
    _require_moved(servers, tenant)


@from_a_cluster
def test_a_source_whose_node_dies_before_it_lets_go_is_copied_again(servers: Servers, served: Serve) -> None:
    tenant = _filled(servers, served)
    with servers.owners() as connections:
        steps = _steps(connections)
        assert len(list(islice(steps, _LETTING_GO))) == _LETTING_GO
        node = _node_with(servers, "a", tenant)
        node.kill()
        with pytest.raises((CannotMove, psycopg.Error)):
            next(steps)
    node.start()
    moving.require_one_place(servers, tenant)
    again = moving.moved(servers)

    assert any(step.name == "copy" and step.rows for step in again)
    _require_moved(servers, tenant)


@to_a_cluster
def test_a_target_whose_node_dies_when_it_begins_to_serve_is_asked_again(servers: Servers, served: Serve) -> None:
    tenant = _filled(servers, served)
    with _committed_unconfirmed(servers, "b", _ACTIVATION):
        again = moving.moved(servers)

    assert again == []
    _require_moved(servers, tenant)


@from_a_cluster
def test_a_source_whose_node_has_not_confirmed_that_it_is_closed_is_not_copied_before(
    servers: Servers, served: Serve
) -> None:
    tenant = _filled(servers, served)
    with _in_doubt(servers, "a", STEPS[0]) as node:
        node.start()
        _after_recovery(servers, "a", lambda: moving.moved(servers))

    _require_moved(servers, tenant)


@from_a_cluster
def test_a_move_is_given_up_though_its_beginning_was_in_doubt(servers: Servers, served: Serve) -> None:
    """Or the tenant would be closed as soon as the node is back, after the answer that it had never moved."""
    tenant = _filled(servers, served)
    with _in_doubt(servers, "a", STEPS[0]) as node:
        node.start()
        given_up = _after_recovery(servers, "a", lambda: moving.moved(servers, to="a"))

    assert [step.name for step in given_up] == ["drop", "stay"]
    assert moving.rows_of(servers, "b", tenant) == {}
    with servers.owners() as connections:
        assert Move(connections, "acme").plan("a") is None


@to_a_cluster
def test_a_move_is_not_given_up_while_a_copy_is_in_doubt(servers: Servers, served: Serve) -> None:
    """Or the copy would come after the move was given up, and no later move to another server could end."""
    tenant = _filled(servers, served)
    before = moving.rows_of(servers, "a", tenant)
    with _in_doubt(servers, "b", _ARRIVAL) as node:
        with pytest.raises(psycopg.Error):
            moving.moved(servers, to="a")
        node.start()
        given_up = _after_recovery(servers, "b", lambda: moving.moved(servers, to="a"))

    assert [step.name for step in given_up] == ["drop", "stay"]
    assert moving.rows_of(servers, "b", tenant) == {}
    assert {name: n for name, n in moving.rows_of(servers, "a", tenant).items() if "audit" not in name} == {
        name: n for name, n in before.items() if "audit" not in name
    }


@from_a_cluster
def test_what_a_node_commits_in_a_move_is_on_its_disk(servers: Servers) -> None:
    """Though the settings of that node let a commit return before."""
    tenant = moving.number_of(servers.key("acme", "a"))
    cluster, name = _cluster(servers, "a"), servers.databases["a"].name
    for port in cluster.workers:
        with cluster.admin_of_node_alone(port, name) as admin:
            admin.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())
    asked = "SELECT current_setting('synchronous_commit') FROM vault.tenant WHERE tenant = %s"
    with servers.owners() as connections:
        connection = connections["a"]
        before = connection.execute(asked, [tenant]).fetchone()
        with connection.transaction():
            prepare(connection)
            during = connection.execute(asked, [tenant]).fetchone()

    assert (before, during) == (("off",), ("on",))


def _filled(servers: Servers, served: Serve) -> int:
    """A new tenant with something in nearly every table."""
    key = servers.key("acme", "a")
    moving.filled(served({}), key)
    return moving.number_of(key)


def _require_moved(servers: Servers, tenant: int) -> None:
    assert moving.rows_of(servers, "a", tenant) == {}
    assert moving.rows_of(servers, "b", tenant)["muniment_restricted.item"] > 0
    with servers.owners() as connections:
        assert Move(connections, "acme").plan("b") is None


def _cluster(servers: Servers, server: str) -> Cluster:
    postgres = servers.databases[server].postgres
    assert isinstance(postgres, ClusterPostgres)
    return postgres.cluster


def _steps(connections: Mapping[str, psycopg.Connection[Any]]) -> Iterator[Step]:
    move = Move(connections, "acme")
    plan = move.plan("b")
    assert plan is not None
    return move.run(plan)


def _node_with(servers: Servers, server: str, tenant: int) -> Node:
    """The worker that has the rows of *tenant*."""
    cluster = _cluster(servers, server)
    with cluster.admin(cluster.coordinator, servers.databases[server].name) as admin:
        row: Any = admin.execute(
            "SELECT nodeport FROM citus_shards WHERE table_name = 'vault.tenant'::regclass"
            "   AND shardid = get_shard_id_for_distribution_column('vault.tenant', %s)",
            [tenant],
        ).fetchone()
    return next(node for node in cluster.nodes if node.port == row[0])


@contextmanager
def _in_doubt(servers: Servers, server: str, step: int) -> Iterator[Node]:
    """Move until the commit that ends *step*. Between its phases, the node that has prepared it dies: it is given."""
    cluster = _cluster(servers, server)
    with servers.owners() as connections, ThreadPoolExecutor(1) as mover:
        steps = _steps(connections)
        assert len(list(islice(steps, step))) == step
        with cluster.held_between_phases():
            committing = mover.submit(next, steps)
            node = _that_prepares(cluster, committing)
            node.kill()
        try:
            with pytest.raises(CannotMove, match=f"a node of {server} did not confirm a commit: run it again"):
                committing.result(60)
            yield node
        finally:
            if not node.runs:
                node.start()
            _recover(servers, server)


@contextmanager
def _committed_unconfirmed(servers: Servers, server: str, step: int) -> Iterator[None]:
    """Move until the commit that ends *step*. The node dies when it has committed, and has not said so; it is back."""
    cluster = _cluster(servers, server)
    with servers.owners() as connections, ThreadPoolExecutor(1) as mover:
        steps = _steps(connections)
        assert len(list(islice(steps, step))) == step
        node = _node_with(servers, server, _tenant(connections))
        wait_for_standby(cluster, node.port, "none")
        try:
            committing = mover.submit(next, steps)
            with cluster.admin(node.port) as admin:
                waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                wait_until(lambda: admin.execute(waiting).fetchall() or committing.done(), "the commit")
            assert not committing.done()
            node.kill()
            node.start()
        finally:
            wait_for_standby(cluster, node.port, "")
        with pytest.raises((CannotMove, psycopg.Error)):
            committing.result(60)
    yield


def _tenant(connections: Mapping[str, psycopg.Connection[Any]]) -> int:
    """The tenant, which one of the two has."""
    return next(
        int(number)
        for connection in connections.values()
        for (number,) in connection.execute("SELECT tenant FROM vault.tenant WHERE name = 'acme'").fetchall()
    )


def _that_prepares(cluster: Cluster, committing: Future[Step]) -> Node:
    """The worker that has a prepared transaction of an operator, as soon as there is one."""
    with ExitStack() as stack:
        workers = {node: stack.enter_context(cluster.admin(node.port)) for node in cluster.nodes[1:]}
        prepared = "SELECT FROM pg_prepared_xacts WHERE owner = 'muniment_owner'"

        def found() -> list[Node]:
            return [node for node, admin in workers.items() if admin.execute(prepared).fetchall()]

        wait_until(lambda: found() or committing.done(), "the first phase")
        assert not committing.done()
        (node,) = found()
        return node


def _after_recovery(servers: Servers, server: str, command: Callable[[], list[Step]]) -> list[Step]:
    """What *command* does, which waits until the transactions of *server* that are in doubt have ended."""
    with ThreadPoolExecutor(1) as operator:
        done = operator.submit(command)
        with pytest.raises(TimeoutError):
            done.result(_WAITS)
        _recover(servers, server)
        return done.result(60)


def _recover(servers: Servers, server: str) -> None:
    cluster = _cluster(servers, server)
    with cluster.admin(cluster.coordinator, servers.databases[server].name) as admin:
        admin.execute("SELECT recover_prepared_transactions()")
