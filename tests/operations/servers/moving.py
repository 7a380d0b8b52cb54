"""What must hold while a tenant moves from the server `a` to the server `b`, each of which may be a Citus cluster."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from functools import partial
from typing import Any

import grpc
import psycopg
import pytest

from muniment_server.admin import moving
from muniment_server.admin.moving import Move, Step
from muniment_server.background.sealer import Sealer
from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification, Label
from muniment_server.embedder.lists import ListSizes, maintain_lists
from muniment_server.postgres.placement import ONLY, PlacedDatabase
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.process.stop_signal import StopSignal
from tests.operations.servers.conftest import Servers, session_of
from tests.proof.noninterference.mutants.scheme import Patch, edit, setting
from tests.support.embedders import Quick, embed_all
from tests.support.labels import untrusted
from tests.support.services import Caller

PUBLIC, RESTRICTED = Classification.PUBLIC, Classification.RESTRICTED
Serve = Callable[[dict[int, str]], grpc.Channel]
Scenario = Callable[[Servers, Serve], None]


def moved(servers: Servers, *, name: str = "acme", to: str = "b") -> list[Step]:
    """Move a tenant, and return the steps."""
    with servers.owners() as connections:
        move = Move(connections, name)
        plan = move.plan(to)
        return [] if plan is None else list(move.run(plan))


def number_of(key: str) -> int:
    """The tenant of a host key."""
    token = tokens.parse(key)
    assert token is not None
    return int(token.tenant)


def rows_of(servers: Servers, server: str, tenant: int) -> dict[str, int]:
    """How many rows of *tenant* a server has, by table."""
    with servers.databases[server].as_owner() as owner:
        tables: Any = owner.execute(
            "SELECT table_schema || '.' || table_name AS name FROM information_schema.columns"
            " JOIN information_schema.tables USING (table_schema, table_name)"
            " WHERE column_name = 'tenant' AND table_type = 'BASE TABLE'"
        ).fetchall()
        counts: Any = {
            table.name: owner.execute(f"SELECT count(*) AS n FROM {table.name} WHERE tenant = %s", [tenant]).fetchone()
            for table in tables
        }
    return {name: found.n for name, found in counts.items() if found.n}


def filled(channel: grpc.Channel, key: str) -> Caller:
    """A tenant with something in nearly every table."""
    host = Caller(channel, key)
    for agent in ("alice", "bob"):
        host.create_agent(agent_id=agent)
    for label in Label:
        session = session_of(host, label)
        session.save_memory(key="plan", content=f"the plan at {label.name}")
        session.save_memory(key="plan", content=f"the newer plan at {label.name}")
        session.add_note(content="a note")
        session.store_passage(content=f"a passage about ships at {label.name}")
        session.save_memory(key="gone", content="deleted")
        session.delete_memory(key="gone")
    host.create_shared_block(owner_agent_id="alice", label="rules", content="be kind")
    host.attach_block(owner_agent_id="alice", label="rules", agent_id="bob")
    return host


def everything_moves_and_hosts_go_on_with_new_keys(servers: Servers, served: Serve) -> None:
    """The other tenants stay, and so does what the tenant's sessions see, with each label."""
    key, others = servers.key("acme", "a"), servers.key("other", "a")
    tenant = number_of(key)
    channel = served({})
    host, other = filled(channel, key), Caller(channel, others)
    other.create_agent(agent_id="alice")
    before = {label: _seen(session_of(host, label)) for label in Label}
    rows = rows_of(servers, "a", tenant)
    other_rows = rows_of(servers, "a", number_of(others))

    done = servers.run("tenant", "move", "acme", "--to", "b", "--yes")

    assert done.returncode == 0, done.stderr
    assert f'Write {tenant} = "b" below [tenants] in the file of servers (add the section if' in done.stderr
    assert rows_of(servers, "a", tenant) == {}
    arrived = rows_of(servers, "b", tenant)
    assert {name: count for name, count in arrived.items() if "audit" not in name} == {
        name: count for name, count in rows.items() if "audit" not in name
    }
    assert rows_of(servers, "a", number_of(others)) == other_rows
    session_of(other, PUBLIC).save_memory(key="still", content="here")
    moved = Caller(served({tenant: "b"}), servers.key("acme", "b"))
    assert {label: _seen(session_of(moved, label)) for label in Label} == before
    assert "complete" in _doctor(servers)


def _seen(session: Caller) -> Any:
    """What a session sees, without times of calls."""
    return (
        session.list_memories().SerializeToString(deterministic=True),
        session.list_notes().SerializeToString(deterministic=True),
        session.list_passages().SerializeToString(deterministic=True),
        session.search_passages(query="ships").SerializeToString(deterministic=True),
        session.list_blocks().SerializeToString(deterministic=True),
    )


def _doctor(servers: Servers) -> str:
    found = servers.run("doctor").stdout
    assert "b: ✓" not in found  # a finding begins with its sign
    return "\n".join(line for line in found.splitlines() if "b: the ledgers" in line)


def embeddings_move_with_their_lists(servers: Servers, served: Serve) -> None:
    """And the lists are kept at the target as they were."""
    key = servers.key("acme", "a")
    host = Caller(served({}), key)
    host.create_agent(agent_id="alice")
    for level in (PUBLIC, RESTRICTED):
        session = session_of(host, level)
        for number in range(24):
            session.save_memory(key=f"k{number}", content=f"word{number % 6} {number}")
    embed_all(servers.databases["a"], Quick())
    _keep_lists(servers, "a")
    before = _listed(servers, "a")

    moved(servers)

    assert [len(found) for found in before] == [24, 24]
    assert _listed(servers, "b") == before
    _keep_lists(servers, "b")
    assert _listed(servers, "b") == before


def _keep_lists(servers: Servers, server: str) -> None:
    with closing(RoleDatabase(servers.databases[server].conninfo, pool_sizes=SINGLE)) as pools:
        for level in (PUBLIC, RESTRICTED):
            maintain_lists(pools, untrusted(level), StopSignal(), ListSizes(least=20, size=4))


def _listed(servers: Servers, server: str) -> list[list[Any]]:
    """The embeddings in lists at two levels, each with the center of its list."""
    with servers.databases[server].as_owner() as owner:
        return [
            owner.execute(
                f"SELECT meaning.name, list.number, list.signs::text FROM {untrusted(level).role}.meaning"
                f"  JOIN {untrusted(level).role}.embedding_list AS list"
                "    ON (list.tenant, list.agent, list.kind, list.embedder, list.number)"
                "       = (meaning.tenant, meaning.agent, meaning.kind, meaning.embedder, meaning.list)"
                " WHERE list.signs IS NOT NULL"
                " ORDER BY meaning.name".encode()
            ).fetchall()
            for level in (PUBLIC, RESTRICTED)
        ]


def the_audit_log_moves_with_its_seals(servers: Servers, served: Serve) -> None:
    key = servers.key("acme", "a")
    filled(served({}), key)
    pools = RoleDatabase(servers.databases["a"].conninfo, pool_sizes=SINGLE)
    Sealer(PlacedDatabase(ONLY, pools), lambda: True).seal_all()
    pools.close()
    before = servers.run("audit", "checkpoint", "--tenant", "acme", "--server", "a", "--json").stdout
    assert before.count("head_hash") == 2 * len(Classification), "each label has a chain"

    moved(servers)

    assert servers.run("audit", "checkpoint", "--tenant", "acme", "--server", "b", "--json").stdout == before
    verified = servers.run("audit", "verify", "--tenant", "acme", "--server", "b")
    assert verified.returncode == 0, verified.stderr


def a_process_with_an_old_file_finds_no_session_and_writes_nothing(servers: Servers, served: Serve) -> None:
    """Nor does it with a key, an agent or a session that it remembers."""
    key = servers.key("acme", "a")
    stale = served({})
    host = filled(stale, key)
    session = session_of(host, PUBLIC)
    session.save_memory(key="last", content="before the move")

    moved(servers)

    observed = [
        session.observe("SaveMemory", key="late", content="x"),
        session.observe("GetMemory", key="last"),
        host.observe("CreateAgent", agent_id="late"),
        host.observe("OpenSession", agent_id="alice", taint=1),
        Caller(stale, servers.key("acme", "b")).observe("OpenSession", agent_id="alice", taint=1),
    ]
    assert {outcome.code for outcome in observed} == {grpc.StatusCode.UNAUTHENTICATED}
    assert rows_of(servers, "a", number_of(key)) == {}


def a_dry_run_changes_nothing(servers: Servers, served: Serve) -> None:
    key = servers.key("acme", "a")
    host = filled(served({}), key)
    rows = rows_of(servers, "a", number_of(key))

    done = servers.run("tenant", "move", "acme", "--to", "b", "--dry-run")

    assert (done.returncode, "nothing was changed" in done.stderr) == (0, True)
    assert "muniment_restricted.item" in done.stdout
    assert (rows_of(servers, "a", number_of(key)), rows_of(servers, "b", number_of(key))) == (rows, {})
    session_of(host, PUBLIC).save_memory(key="still", content="here")


def a_move_that_was_interrupted_can_be_given_up(servers: Servers, served: Serve) -> None:
    key = servers.key("acme", "a")
    host = filled(served({}), key)
    with servers.owners() as connections:
        move = Move(connections, "acme")
        plan = move.plan("b")
        assert plan is not None
        next(move.run(plan))
    assert host.observe("ListAgents").code is grpc.StatusCode.UNAUTHENTICATED
    refused = servers.run("host-key", "create", "--tenant", "acme", "--ceiling", "public", "--server", "a")
    assert (refused.returncode, "is moving" in refused.stderr) == (1, True)
    assert "a: the tenant acme is moving to b, and no server serves it" in servers.run("doctor").stdout

    done = servers.run("tenant", "move", "acme", "--to", "a", "--yes")

    assert done.returncode == 0, done.stderr
    assert rows_of(servers, "b", number_of(key)) == {}
    again = Caller(host.channel, servers.key("acme", "a"))
    assert session_of(again, PUBLIC).get_memory(key="plan").memory.content == "the newer plan at PUBLIC"


def what_is_written_while_it_is_copied_is_moved_or_refused(servers: Servers, served: Serve) -> None:
    """Of the calls that had passed authentication when the tenant was closed, each is moved, or fails."""
    key = servers.key("acme", "a")
    host = filled(served({}), key)
    with servers.owners() as connections:
        move = Move(connections, "acme")
        plan = move.plan("b")
        assert plan is not None
        steps = move.run(plan)
        assert next(steps).name == "close"
        with servers.databases["a"].as_owner() as late:  # as a call does that looked its key up before
            late.execute(
                "INSERT INTO vault.session (tenant, agent, session_id, conversation_id, token_hash, expire_time)"
                " SELECT tenant, agent, gen_random_uuid(), conversation_id, 'late', 'infinity'"
                " FROM vault.conversation WHERE tenant = %s LIMIT 1",
                [number_of(key)],
            )
        list(steps)
    assert host is not None

    with servers.databases["b"].as_owner() as owner:
        found: Any = owner.execute("SELECT close_time FROM vault.session WHERE token_hash = 'late'").fetchall()
    assert [row.close_time is not None for row in found] == [True]


LATE = {
    "an agent": "INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled,"
    " user_profile_enabled, memory_char_limit, user_char_limit) VALUES (%s, 1, 'late', '', '', true, true, 1, 1)",
    "a key": "INSERT INTO vault.host_key (tenant, host_key_id, key_hash, ceiling)"
    " VALUES (%s, gen_random_uuid(), 'late', 1)",
    "a conversation": "INSERT INTO vault.conversation (tenant, agent, conversation_id, taint)"
    " SELECT tenant, agent, 'late', 1 FROM vault.agent WHERE tenant = %s",
    "a session": "INSERT INTO vault.session (tenant, agent, session_id, conversation_id, token_hash, expire_time)"
    " SELECT tenant, agent, gen_random_uuid(), conversation_id, 'late', 'infinity' FROM vault.conversation"
    " WHERE tenant = %s LIMIT 1",
    "a raise": "UPDATE vault.conversation SET taint = 4 WHERE tenant = %s",
    "a write in a session": "SELECT FROM vault.session WHERE tenant = %s FOR NO KEY UPDATE",
}


def from_the_copy_on_no_call_adds_a_row(late: str, servers: Servers, served: Serve) -> None:
    """It waits, and then finds nothing that its row could refer to."""
    key = servers.key("acme", "a")
    host = Caller(served({}), key)
    host.create_agent(agent_id="alice")
    session_of(host, PUBLIC)
    with servers.owners() as connections, servers.databases["a"].as_owner() as call:
        move = Move(connections, "acme")
        plan = move.plan("b")
        assert plan is not None
        steps = move.run(plan)
        while next(steps).name != "copy":
            pass
        with pytest.raises(psycopg.Error, match="lock timeout"):  # of a node, it comes without its SQLSTATE
            _at_once(call, LATE[late], number_of(key))
        list(steps)
        with suppress(psycopg.errors.ForeignKeyViolation):
            assert call.execute(LATE[late].encode(), [number_of(key)]).rowcount == 0
    assert rows_of(servers, "a", number_of(key)) == {}


def _at_once(call: psycopg.Connection[Any], statement: str, tenant: int) -> None:
    """Run *statement*, and wait for no lock, on no node of a cluster either."""
    with call.transaction():
        call.execute("SET LOCAL citus.propagate_set_commands = 'local'")
        call.execute("SET LOCAL lock_timeout = '50ms'")
        call.execute(statement.encode(), [tenant])


def rows_that_change_meanwhile_are_copied_again(servers: Servers, served: Serve) -> None:
    """Such as a seal: no lock of a move stops a sealer."""
    key = servers.key("acme", "a")
    filled(served({}), key)
    with servers.owners() as connections, servers.databases["a"].as_owner() as sealer:
        move = Move(connections, "acme")
        plan = move.plan("b")
        assert plan is not None
        seen: list[Step] = []
        for step in move.run(plan):
            seen.append(step)
            if step.table == "muniment_auditor.seal" and step.name == "copy" and not step.rows:
                sealer.execute(
                    "INSERT INTO muniment_auditor.seal (tenant, level, number, time, by_host, event_count, events_hash,"
                    " hash) VALUES (%s, 1, 1, now(), true, 1, '', '')",
                    [number_of(key)],
                )

    assert [step.rows for step in seen if step.table == "muniment_auditor.seal" and step.name == "copy"] == [0, 1]
    assert rows_of(servers, "a", number_of(key)) == {}


def at_no_step_do_two_servers_have_a_tenant_that_is_served(servers: Servers, _: Serve) -> None:
    key = servers.key("acme", "a")
    with servers.owners() as connections:
        move = Move(connections, "acme")
        plan = move.plan("b")
        assert plan is not None
        for _step in move.run(plan):
            require_one_place(servers, number_of(key))


_KILLED = """
import os, signal, sys
from muniment_server.admin.moving import Move
from muniment_server.postgres.pool import operator_conninfo
import psycopg
last, *conninfos = sys.argv[1:]
servers = dict(zip(("a", "b"), (psycopg.connect(operator_conninfo(each), autocommit=True) for each in conninfos)))
move = Move(servers, "acme")
for number, step in enumerate(move.run(move.plan("b"))):
    if number == int(last):
        os.kill(os.getpid(), signal.SIGKILL)
print(number)
"""


def a_move_that_is_killed_ends_when_it_is_run_again(servers: Servers, serve: Serve, steps: Iterable[int]) -> None:
    """What was acknowledged is there once, and at no moment do two servers take writes."""
    channel = serve({})
    for step in steps:
        key = servers.key("acme", "a")
        tenant = number_of(key)
        new = serve({tenant: "b"})
        Caller(channel, key).create_agent(agent_id="alice")
        for level in Classification:
            session_of(Caller(channel, key), level).save_memory(key="plan", content="a plan")
        with Writers(channel, new, key) as acknowledged:
            assert _run_killed(servers, step) == -signal.SIGKILL
            require_one_place(servers, tenant)
            moved(servers)
            require_one_place(servers, tenant)
        host = Caller(new, servers.key("acme", "b"))
        assert set(names_of(session_of(host, PUBLIC))) == {"plan", *acknowledged}
        assert names_of(session_of(host, RESTRICTED)).count("plan") == 1
        assert rows_of(servers, "a", tenant) == {}
        _rename(servers, tenant, f"acme-{step}")


STEPS = range(190)
"""The steps of a move: the closing, a copy and a comparison of each of 93 tables, the two commits, the activation."""


def _run_killed(servers: Servers, number: int) -> int:
    conninfos = [database.admin for database in servers.databases.values()]
    return subprocess.run([sys.executable, "-c", _KILLED, str(number), *conninfos], check=False).returncode


def require_one_place(servers: Servers, tenant: int) -> None:
    """One server has the tenant, or both do and neither serves it. No credential of it is valid anywhere."""
    with servers.owners() as connections:
        places = [
            place
            for connection in connections.values()
            for place in connection.execute(
                "SELECT moving_to, moving_from FROM vault.tenant WHERE tenant = %s", [tenant]
            ).fetchall()
        ]
        keys = [
            key
            for connection in connections.values()
            for key in connection.execute(
                "SELECT FROM vault.host_key WHERE tenant = %s AND revoke_time IS NULL", [tenant]
            ).fetchall()
        ]
    assert places
    assert len(places) == 1 or (None, None) not in places
    assert keys == []


class Writers:
    """Saves memories by both servers until the block ends; gives the keys of those that were acknowledged."""

    def __init__(self, channel: grpc.Channel, new: grpc.Channel, key: str) -> None:
        self._ended = threading.Event()
        host = Caller(channel, key)
        session = session_of(host, PUBLIC)
        self._acknowledged: set[str] = set()
        writes = (
            lambda key: session.save_memory(key=key, content="x"),
            lambda key: Caller(new, session.token).save_memory(key=key, content="x"),
            lambda key: session_of(host, PUBLIC).save_memory(key=key, content="x"),
            lambda key: session_of(Caller(new, host.token), PUBLIC).save_memory(key=key, content="x"),
        )
        self._threads = [
            threading.Thread(target=self._write, args=(write, number)) for number, write in enumerate(writes)
        ]

    def _write(self, write: Callable[[str], object], writer: int) -> None:
        for number in itertools.count():
            if self._ended.is_set():
                return
            with suppress(grpc.RpcError):
                write(f"w-{writer}-{number}")
                self._acknowledged.add(f"w-{writer}-{number}")

    def __enter__(self) -> set[str]:
        for thread in self._threads:
            thread.start()
        return self._acknowledged

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


def names_of(session: Caller) -> list[str]:
    """The keys of all memories that a session sees."""
    names, token = [], ""
    while True:
        page = session.list_memories(page_size=250, page_token=token)
        names += [memory.key for memory in page.memories]
        token = page.next_page_token
        if not token:
            return names


def _rename(servers: Servers, tenant: int, name: str) -> None:
    """Give *tenant* another name: the next one gets its own."""
    with servers.databases["b"].as_owner() as owner:
        owner.execute("UPDATE vault.tenant SET name = %s WHERE tenant = %s", [name, tenant])


# Guards, broken.


def unlocked(query: str) -> Patch:
    """A query without its locks."""
    return edit(moving._QUERIES, query, "FOR UPDATE", "")


def _late(what: str) -> Scenario:
    return partial(from_the_copy_on_no_call_adds_a_row, what)


BROKEN: dict[str, tuple[Scenario, Patch]] = {
    "the tenant is not locked": (_late("an agent"), unlocked("lock_moving_tenant")),
    "agents are not locked": (_late("a conversation"), unlocked("lock_agents")),
    "conversations are not locked": (_late("a raise"), unlocked("lock_moving_conversations")),
    "sessions are not locked": (_late("a write in a session"), unlocked("lock_sessions")),
    "the target serves the tenant before the source has let it go": (
        at_no_step_do_two_servers_have_a_tenant_that_is_served,
        edit(moving._QUERIES, "arrive", "%(release_approvals)s, %(server)s", "%(release_approvals)s, NULL"),
    ),
    "the source still serves the tenant while it moves": (
        at_no_step_do_two_servers_have_a_tenant_that_is_served,
        edit(moving._QUERIES, "leave", "moving_to = %(server)s", "moving_to = nullif(%(server)s, %(server)s)"),
    ),
    "host keys are not revoked": (
        a_move_that_was_interrupted_can_be_given_up,
        edit(moving._QUERIES, "revoke_host_keys", "revoke_time IS NULL", "revoke_time IS NOT NULL"),
    ),
    "sessions that calls under way have opened stay open": (
        what_is_written_while_it_is_copied_is_moved_or_refused,
        edit(moving._QUERIES, "close_sessions", "closed.close_time IS NULL", "FALSE"),
    ),
    "what has arrived is not compared": (
        rows_that_change_meanwhile_are_copied_again,
        setting(moving, "_NOT_COMPARED", frozenset({"seal"})),
    ),
}
"""Guards of a move, each with a scenario that notices that it is missing, and how to take it out."""
