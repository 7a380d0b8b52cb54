"""A tenant moves to another server with everything that it has, and is served by one of the two at most."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from rich.status import Status

from muniment.cli.failures import Failure
from muniment_server.admin import tenant
from muniment_server.admin.moving import CannotMove, Move, Plan, Step
from muniment_server.domain.ids import TenantNumber
from tests.operations.servers import moving
from tests.operations.servers.conftest import Servers, session_of
from tests.operations.servers.moving import BROKEN, LATE, STEPS, Serve
from tests.proof.noninterference.mutants.scheme import Mutant, applied
from tests.support.commands import COMMAND, environment_in
from tests.support.concurrency import lock_rows, wait_until_blocked
from tests.support.services import Caller

_PARTS = 6


def test_everything_moves_and_hosts_go_on_with_new_keys(servers: Servers, served: Serve) -> None:
    moving.everything_moves_and_hosts_go_on_with_new_keys(servers, served)


def test_embeddings_move_with_their_lists(servers: Servers, served: Serve) -> None:
    moving.embeddings_move_with_their_lists(servers, served)


def test_the_audit_log_moves_with_its_seals(servers: Servers, served: Serve) -> None:
    moving.the_audit_log_moves_with_its_seals(servers, served)


def test_a_process_with_an_old_file_finds_no_session_and_writes_nothing(servers: Servers, served: Serve) -> None:
    moving.a_process_with_an_old_file_finds_no_session_and_writes_nothing(servers, served)


def test_a_dry_run_changes_nothing(servers: Servers, served: Serve) -> None:
    moving.a_dry_run_changes_nothing(servers, served)


def test_a_move_that_was_interrupted_can_be_given_up(servers: Servers, served: Serve) -> None:
    moving.a_move_that_was_interrupted_can_be_given_up(servers, served)


def test_doctor_names_a_tenant_that_has_arrived_and_is_not_served_yet(servers: Servers) -> None:
    servers.key("acme", "a")
    with servers.owners() as connections:
        move = Move(connections, "acme")
        plan = move.plan("b")
        assert plan is not None
        for step in move.run(plan):
            if step.name == "let go":
                break

    done = servers.run("doctor")

    assert "b: this server has a copy of the tenant acme, by a move from a that has not ended" in done.stdout
    assert "run `muniment tenant move acme --to NAME` with the name of this server" in done.stdout
    assert servers.run("tenant", "move", "acme", "--to", "b", "--yes").returncode == 0
    assert "acme is moving" not in servers.run("doctor").stdout


def test_a_move_can_be_given_up_when_its_target_is_gone(servers: Servers, served: Serve) -> None:
    key = servers.key("acme", "a")
    host = moving.filled(served({}), key)
    with servers.owners() as connections:
        plan = Move(connections, "acme").plan("b")
        assert plan is not None
        next(Move(connections, "acme").run(plan))
    servers.write({}, "a")

    done = servers.run("tenant", "move", "acme", "--to", "a", "--yes")

    assert done.returncode == 0, done.stderr
    again = Caller(host.channel, servers.key("acme", "a"))
    assert session_of(again, moving.PUBLIC).get_memory(key="plan").memory.content == "the newer plan at PUBLIC"


def test_a_move_names_a_server_that_is_away(servers: Servers) -> None:
    """Also one that has nothing to do with the move: it might have the tenant, too."""
    servers.key("acme", "a")
    file = servers.file.read_text()
    servers.file.write_text(file.replace("[servers]", '[servers]\nc = "postgresql://127.0.0.1:1/muniment"'))

    refused = servers.run("tenant", "move", "acme", "--to", "b", "--yes")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "the server c cannot be reached: " in refused.stderr
    assert "take the server out of the file until the move has ended" in refused.stderr
    servers.file.write_text(file)
    assert servers.run("tenant", "move", "acme", "--to", "b", "--yes").returncode == 0


def test_ctrl_c_says_that_the_tenant_is_not_served_and_how_to_go_on(servers: Servers, served: Serve) -> None:
    key = servers.key("acme", "a")
    Caller(served({}), key).create_agent(agent_id="alice")
    command = [*COMMAND, "tenant", "move", "acme", "--to", "b", "--yes", "--servers", str(servers.file)]
    environment = environment_in(servers.folder, PGUSER="postgres")

    with servers.databases["a"].as_owner() as owner, owner.transaction():
        owner.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # on a busy machine the block may take long
        lock_rows(owner, "vault.agent")
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as move:
            wait_until_blocked(SimpleNamespace(database=servers.databases["a"]))
            move.send_signal(signal.SIGINT)
            assert move.stderr is not None
            output = move.stderr.read()

    assert move.returncode == 1
    assert "no server serves the tenant until this command has ended\n  run it again" in output
    assert "or give the move up: --to a" in output
    assert "the tenant acme is moving to b" in servers.run("doctor").stdout
    assert servers.run("tenant", "move", "acme", "--to", "a", "--yes").returncode == 0


@pytest.mark.parametrize(
    ("done", "words"),
    [
        ("", "if `muniment doctor` says that the tenant is moving"),
        ("close", "or give the move up: --to a"),
        ("compare", "or give the move up: --to a"),
        ("arrive", "run it again"),
        ("let go", "run it again"),
    ],
)
def test_an_interrupted_move_can_be_given_up_until_the_source_may_have_let_go(done: str, words: str) -> None:
    class Interrupted(Move):
        def __init__(self) -> None: ...

        def rows(self, plan: Plan) -> list[Step]:
            return []

        def run(self, plan: Plan) -> Iterator[Step]:
            yield from [Step(done)] if done else []
            raise KeyboardInterrupt

    with pytest.raises(Failure) as failed:
        tenant._carry_out(Interrupted(), Plan(TenantNumber(1), "a", "b"))

    assert failed.value.hint.startswith(words) or failed.value.hint.endswith(words)
    assert ("give the move up" in failed.value.hint) == ("give the move up" in words)


def test_the_progress_of_a_move_says_what_is_done_and_how_many_rows_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [Step("copy", "large", 10), Step("copy", "small", 1), Step("compare", "small"), Step("compare", "large")]

    class Counted(Move):
        def __init__(self) -> None: ...

        def rows(self, plan: Plan) -> list[Step]:
            return steps[:2]

        def run(self, plan: Plan) -> Iterator[Step]:
            yield from [Step("close"), *steps, Step("activate")]

    shown: list[str] = []
    monkeypatch.setattr(Status, "update", lambda _, text: shown.append(text))

    assert tenant._carry_out(Counted(), Plan(TenantNumber(1), "a", "b")) == 11
    assert shown == [
        f"Moving: {step}, {copied} of 11 rows are copied"
        for step, copied in (
            ("close", 0), ("copy", 10), ("copy", 11), ("compare", 11), ("compare", 11), ("activate", 11),
        )
    ]  # fmt: skip


@pytest.mark.parametrize("dry", [["--dry-run"], []], ids=["dry run", "move"])
def test_a_move_onto_the_number_of_another_tenant_is_refused_before_anything_ends(
    servers: Servers, served: Serve, dry: list[str]
) -> None:
    """Two databases that have served by themselves both have a tenant 1."""
    key = servers.key("acme", "a")
    host = moving.filled(served({}), key)
    _give_number(servers, "b", moving.number_of(key))

    refused = servers.run("tenant", "move", "acme", "--to", "b", "--yes", *dry)

    assert refused.returncode == 1
    assert f"the server b has another tenant with the number {moving.number_of(key)}" in refused.stderr
    assert session_of(host, moving.PUBLIC).get_memory(key="plan").memory.content == "the newer plan at PUBLIC"


def test_giving_up_a_move_leaves_another_tenant_of_that_number_alone(servers: Servers, served: Serve) -> None:
    key = servers.key("acme", "a")
    moving.filled(served({}), key)
    with servers.owners() as connections:
        plan = Move(connections, "acme").plan("b")
        assert plan is not None
        next(Move(connections, "acme").run(plan))
    _give_number(servers, "b", moving.number_of(key))
    before = moving.rows_of(servers, "b", moving.number_of(key))

    assert [step.name for step in moving.moved(servers, to="a")] == ["drop", "stay"]

    assert moving.rows_of(servers, "b", moving.number_of(key)) == before != {}


def test_a_command_waits_for_a_move_that_no_row_shows_yet(servers: Servers, served: Serve) -> None:
    """As while the commit with which it begins is in doubt: "nothing to do" would be wrong a moment later."""
    servers.key("acme", "a")
    with servers.owners() as connections, ThreadPoolExecutor(1) as pool:
        with servers.databases["a"].as_owner() as owner, owner.transaction():
            owner.execute("UPDATE vault.tenant SET moving_to = 'b' WHERE name = 'acme'")
            planned = pool.submit(Move(connections, "acme").plan, "a")
            wait_until_blocked(SimpleNamespace(database=servers.databases["a"]))
        plan = planned.result(60)

    assert plan is not None
    assert plan.gives_up


def _give_number(servers: Servers, server: str, number: int) -> None:
    """Another tenant of this number, which has arrived there from elsewhere: not by the move of `acme`."""
    with servers.databases[server].as_owner() as owner:
        owner.execute(
            "INSERT INTO vault.tenant (tenant, name, moving_from) OVERRIDING SYSTEM VALUE VALUES (%s, 'globex', 'c')",
            [number],
        )


def test_a_key_for_a_tenant_that_leaves_meanwhile_is_refused(servers: Servers, served: Serve) -> None:
    servers.key("acme", "a")
    with servers.databases["a"].as_owner() as owner, ThreadPoolExecutor(1) as pool, owner.transaction():
        owner.execute("SELECT FROM vault.tenant WHERE name = 'acme' FOR UPDATE")
        created = pool.submit(
            servers.run, "host-key", "create", "--tenant", "acme", "--ceiling", "public", "--server", "a"
        )
        wait_until_blocked(SimpleNamespace(database=servers.databases["a"]))
        owner.execute("DELETE FROM vault.host_key")
        owner.execute("DELETE FROM vault.tenant WHERE name = 'acme'")

    assert "is moving" in created.result(30).stderr


def test_what_is_written_while_it_is_copied_is_moved_or_refused(servers: Servers, served: Serve) -> None:
    moving.what_is_written_while_it_is_copied_is_moved_or_refused(servers, served)


@pytest.mark.parametrize("late", LATE)
def test_from_the_copy_on_no_call_adds_a_row(late: str, servers: Servers, served: Serve) -> None:
    moving.from_the_copy_on_no_call_adds_a_row(late, servers, served)


def test_rows_that_change_meanwhile_are_copied_again(servers: Servers, served: Serve) -> None:
    moving.rows_that_change_meanwhile_are_copied_again(servers, served)


def test_at_no_step_do_two_servers_have_a_tenant_that_is_served(servers: Servers, served: Serve) -> None:
    moving.at_no_step_do_two_servers_have_a_tenant_that_is_served(servers, served)


def test_a_server_with_another_tenant_of_the_name_is_no_target(servers: Servers) -> None:
    servers.key("acme", "a")
    with servers.owners() as connections:
        connections["b"].execute("INSERT INTO vault.tenant (name) VALUES ('acme')")
        with pytest.raises(CannotMove, match="both have this tenant"):
            Move(connections, "acme").plan("b")


def test_a_second_run_waits_for_the_first_one_and_ends_what_it_leaves(servers: Servers) -> None:
    """So does a run after one that was killed, as long as the database still commits."""
    servers.key("acme", "a")
    with servers.owners() as connections, ThreadPoolExecutor(1) as second:
        move = Move(connections, "acme")
        plan = move.plan("b")
        assert plan is not None
        first = move.run(plan)
        while next(first).name != "arrive":
            pass
        again = second.submit(moving.moved, servers)
        wait_until_blocked(SimpleNamespace(database=servers.databases["a"]))
        assert next(first).name == "let go"

        assert [step.name for step in again.result(30)] == ["activate"]


def test_a_tenant_that_is_there_stays(servers: Servers) -> None:
    servers.key("acme", "a")

    done = servers.run("tenant", "move", "acme", "--to", "a", "--yes")

    assert (done.returncode, "Nothing to do" in done.stderr) == (0, True)


@pytest.mark.proof
@pytest.mark.sampled
@pytest.mark.parametrize("part", range(_PARTS))
def test_a_move_that_is_killed_at_any_step_ends_when_it_is_run_again(
    part: int, servers: Servers, served: Serve
) -> None:
    moving.a_move_that_is_killed_ends_when_it_is_run_again(servers, served, STEPS[part::_PARTS])


def test_the_steps_of_a_move_are_those_that_are_killed(servers: Servers) -> None:
    servers.key("acme", "a")

    assert len(moving.moved(servers)) == len(STEPS)


@pytest.mark.proof
@pytest.mark.parametrize("name", BROKEN)
def test_a_guard_of_a_move_that_is_missing_is_noticed(name: str, servers: Servers, served: Serve) -> None:
    noticed_by, patch = BROKEN[name]
    with applied(Mutant(name, "", (patch,))), pytest.raises((AssertionError, pytest.fail.Exception)):
        noticed_by(servers, served)
