"""A Postgres that is not ours logs as it likes: by default, the row of every statement that breaks a constraint.

So no caller may be able to make one of our statements break one. The calls below try, and the log is searched for all
that callers choose: contents, keys, labels, tags, queries, reasons, and the ids of agents, conversations, notes and
passages. None of them may appear. A statement's text does appear, without its parameters.
"""

from __future__ import annotations

import contextlib
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc
import psycopg
import pytest
from psycopg import conninfo as libpq

from muniment.cli.failures import Failure
from muniment_server.admin import backup, dumps, moving
from muniment_server.domain.ids import TenantNumber
from muniment_server.monitor.queries import HOST_QUERIES
from muniment_server.postgres import roles
from muniment_server.postgres.pool import operator_conninfo
from tests import rpcs
from tests.rpcs import RPCS, World
from tests.support.answers import LEVELS, PUBLIC, RESTRICTED, in_future, invalid, refusal
from tests.support.canaries import new_canary, postgres_log, use_everything
from tests.support.concurrency import in_background, locked, together, wait_until_blocked
from tests.support.databases import cloned, unpinned_postgres
from tests.support.labels import untrusted
from tests.support.methods import POLICIES
from tests.support.services import serving

WRITES = ("SaveMemory", "AddNote", "UpdateBlock", "StorePassage")
"""A write of each kind of item."""
PAST = {"seconds": 1}
LATE = 0.15
"""A deadline that passes while a statement waits. Seconds."""
ERRORS = {
    "canceling statement due to statement timeout",
    "canceling statement due to user request",
    "deadlock detected",
}
"""What callers may make the database log: their own delay, and that of others. Nothing about what they sent."""
LOCK_ALL = "LOCK TABLE vault.agent, {} IN ACCESS EXCLUSIVE MODE".format(
    ", ".join(f"{untrusted(level).role}.{table}" for level in LEVELS for table in ("item", "shelf"))
)
LOCK_INDEX = "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE".format(
    ", ".join(f"{untrusted(level).role}.chunk" for level in LEVELS)
)

REFUSE_ROWS = (
    """
    CREATE FUNCTION public.refuse_rows() RETURNS event_trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF to_regclass('{table}') IS NOT NULL THEN
            ALTER TABLE {table} ADD CONSTRAINT refuses_rows CHECK (tenant IS NULL);
        END IF;
    EXCEPTION WHEN duplicate_object THEN
        NULL;
    END $$
    """,
    "CREATE EVENT TRIGGER refuse_rows ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION refuse_rows()",
)
"""A database in which a table, once it is made, accepts no rows."""


@pytest.fixture(scope="module")
def external():
    """A Postgres with the settings for logs that it comes with."""
    with unpinned_postgres() as server:
        yield server


@pytest.fixture
def service(external):
    """A server over a database of it."""
    with cloned(external) as database, serving(database) as served:
        yield served


@pytest.fixture
def said(external):
    """What it logs during the test, so far."""
    before = len(postgres_log(external))
    return lambda: postgres_log(external)[before:]


def attempt(call, **fields):
    """Call; whether it succeeds does not matter."""
    with contextlib.suppress(grpc.RpcError):
        call(**fields)


def be_late(service, word, lock):
    """Each method at each level, canceled while its statement waits for *lock*."""
    sessions = [service.session(level) for level in LEVELS]
    for session in sessions:
        session.list_memories()  # from now on the server remembers it, and need not look it up while all is locked
    host = service.host()
    calls = [
        *(
            (session, rpc)
            for session in sessions
            for rpc in RPCS
            if POLICIES[rpc].for_sessions and rpc != "CloseSession"
        ),
        *((host, rpc) for rpc in RPCS if POLICIES[rpc].for_hosts),
    ]
    with (
        service.database.as_owner() as owner,
        owner.transaction(),
        ThreadPoolExecutor(4) as pool,
    ):
        owner.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # it waits for all calls
        owner.execute(lock.encode())
        for caller, rpc in calls:
            world = World(word, caller.session_id or sessions[0].session_id)
            pool.submit(attempt, partial(rpcs.call, caller, rpc, RPCS[rpc].request(world), timeout=LATE))


def be_late_with_writes(service, session, word):
    """Writes that are canceled while they wait for their session's lock."""
    with locked(service, session):
        for rpc in WRITES:
            attempt(partial(session.call, rpc, timeout=LATE, **RPCS[rpc].request(World(word))))


def meet(service, word):
    """What is unique, made by several at once, and with other contents."""
    host = service.host()
    opening = {"agent_id": word, "conversation_id": word}
    world = World(word)
    together(*[partial(attempt, host.create_agent, **RPCS["CreateAgent"].request(world) | {"agent_id": word})] * 3)
    together(*[partial(attempt, host.open_session, taint=level, **opening) for level in LEVELS])
    together(
        *[partial(attempt, host.create_shared_block, owner_agent_id=word, label=f"{word}{n // 2}") for n in range(4)]
    )
    assert host.list_sessions(agent_id=word).sessions
    assert not host.list_block_consumers(owner_agent_id=word, label=f"{word}0").agent_ids
    for level in LEVELS:
        one, other = service.session(level, agent_id=word), service.session(level, agent_id=word)
        for rpc in WRITES:
            made = [RPCS[rpc].request(world) | {"content": f"{word} {n}"} for n in range(4)]
            together(*[partial(attempt, partial(who.call, rpc), **made[n]) for n, who in enumerate([one, other] * 2)])
        several = [
            {"content": f"{word} {n}", "passage_id": str(uuid.uuid5(uuid.UUID(world.new), str(n)))} for n in range(9)
        ]
        together(
            partial(attempt, partial(one.import_passages, *several)),
            partial(attempt, partial(other.import_passages, *several[::-1])),
        )


def meet_the_end(service, word):
    """Calls for an agent that is being deleted, each of which would write a row without an owner."""
    host, shared = service.host(), {"owner_agent_id": word, "label": word}
    for n in range(6):
        attempt(host.create_agent, agent_id=word)
        attempt(host.create_shared_block, **shared)
        session = service.session(LEVELS[n % len(LEVELS)], agent_id=word)
        world = World(f"{word}-{n}")
        together(
            partial(attempt, host.delete_agent, agent_id=word),
            partial(attempt, host.open_session, agent_id=word, conversation_id=word, taint=PUBLIC),
            partial(attempt, host.attach_block, agent_id="alice", **shared),
            partial(attempt, host.create_shared_block, owner_agent_id=word, label=word + "-late"),
            partial(attempt, host.reset_session, session_id=session.session_id),
            *[
                partial(attempt, partial(session.call, rpc), **RPCS[rpc].request(world))
                for rpc in ("SaveMemory", "StorePassage")
            ],
        )


def deadlock(service, session, word):
    """A save that is half done, and another that waits for it, and has what it needs next."""
    etag = session.save_memory(key=word, content=word).memory.etag
    with (
        contextlib.suppress(psycopg.errors.DeadlockDetected),
        service.database.as_owner() as owner,
        owner.transaction(),
    ):
        owner.execute("SELECT FROM muniment_restricted.item WHERE name = %s FOR UPDATE", [word])
        saving, _ = in_background(session.save_memory, key=word, content=word + "2", etag=etag)
        wait_until_blocked(service)
        owner.execute("SELECT FROM vault.conversation WHERE conversation_id = %s FOR UPDATE", [session.conversation_id])
    saving.join(20)


def test_the_settings_are_the_defaults(external):
    with cloned(external) as database, database.as_admin() as admin:
        found: dict[str, str] = dict(
            admin.execute(
                "SELECT name, setting FROM pg_settings WHERE name IN ('log_error_verbosity', 'log_min_messages',"
                " 'log_min_error_statement', 'log_parameter_max_length_on_error') AND setting = boot_val"
            ).fetchall()
        )

    assert found == {
        "log_error_verbosity": "default",
        "log_min_messages": "warning",
        "log_min_error_statement": "error",
        "log_parameter_max_length_on_error": "0",
    }


def test_c63_a_violated_constraint_is_logged_with_its_row(service, said):
    """What this module is about: it would be found."""
    word = new_canary()
    with service.database.as_owner() as owner:
        service.agent()
        with pytest.raises(psycopg.errors.CheckViolation):
            owner.execute(
                "INSERT INTO vault.conversation (tenant, agent, conversation_id, taint)"
                " SELECT tenant, agent, %s, 9 FROM vault.agent",
                [word],
            )

    assert "Failing row contains (1, " in said()
    assert word in said()


@pytest.mark.proof
def test_c63_no_call_makes_a_postgres_with_default_settings_log_what_callers_choose(service, said):
    word = new_canary()
    use_everything(service, word)
    meet(service, word + "-met")
    meet_the_end(service, word + "-end")
    be_late_with_writes(service, service.session(RESTRICTED), word)
    be_late(service, word, LOCK_ALL)
    be_late(service, word, LOCK_INDEX)
    deadlock(service, service.session(RESTRICTED), word)
    log = said()

    assert log.count("ERROR:  canceling statement") > 50
    assert "STATEMENT:  WITH session AS" in log
    assert "ERROR:  deadlock detected" in log
    assert [line for line in log.splitlines() if any(name in line for name in World(word).names())] == []
    assert {line.partition("ERROR:  ")[2] for line in log.splitlines() if "ERROR:  " in line} <= ERRORS


@pytest.mark.parametrize("level", LEVELS)
def test_c63_a_memory_that_expires_in_the_past_is_not_logged(service, said, level):
    """With an etag too, current or of a lower version; and where the version before has expired."""
    session, word = service.session(level), new_canary()
    etag = service.session(PUBLIC).save_memory(key=word, content=word).memory.etag
    for fields in ({}, {"etag": etag}):
        assert invalid(session.save_memory, key=word, content=word, expire_time=PAST, **fields) == ["expire_time"]
    etag = session.save_memory(key=word, content=word, expire_time=in_future(seconds=0.3)).memory.etag
    assert invalid(session.save_memory, key=word, content=word, expire_time=PAST, etag=etag) == ["expire_time"]
    while any(memory.etag == etag for memory in session.list_memories().memories):
        pass  # until it has expired
    for fields in ({}, {"etag": etag}):
        attempt(session.save_memory, key=word, content=word, expire_time=PAST, **fields)

    assert "ERROR" not in said()


def test_c63_attaching_a_block_whose_declaration_ends_meanwhile_logs_no_label(service, said):
    """A foreign key that fails is logged with its key."""
    host, label = service.host(), new_canary()
    shared = {"owner_agent_id": service.agent(), "label": label}
    service.agent("bob")
    host.create_shared_block(**shared)
    with service.database.connect(roles.CONTROL) as control, control.transaction():
        ending = {"tenant": 1, "ceiling": 4, "change_id": uuid.uuid4(), "host_key_id": uuid.uuid4(), **shared}
        control.execute(HOST_QUERIES["delete_shared_block"], ending)
        attaching, outcomes = in_background(host.attach_block, agent_id="bob", **shared)
        wait_until_blocked(service)
    attaching.join(20)

    assert outcomes[0].code is grpc.StatusCode.NOT_FOUND
    assert refusal(host.attach_block, agent_id="bob", **shared) == "NOT_FOUND SHARED_BLOCK_NOT_FOUND"
    assert "ERROR" not in said()


class CanceledMidway:
    """A connection whose copy stops in the middle, until a statement of another connection has been canceled."""

    def __init__(self, connection, admin, other):
        self._connection = connection
        self._cancel = partial(admin.execute, "SELECT pg_cancel_backend(%s)", [other.info.backend_pid])

    def cursor(self):
        return self

    @contextlib.contextmanager
    def copy(self, statement):
        with self._connection.cursor().copy(statement) as rows:
            yield self._canceled(list(rows))

    def _canceled(self, rows):
        yield from rows[: len(rows) // 2]
        self._cancel()
        yield from rows[len(rows) // 2 :]


def test_a_move_of_a_tenant_that_is_canceled_leaves_no_name_in_the_log(external, said):
    canary = new_canary()
    with cloned(external) as source, cloned(external) as target, source.as_owner() as sent, target.as_owner() as other:
        with serving(source) as service:
            session = service.session(RESTRICTED)
            for batch in range(4):
                session.save_memories(memories=[{"key": f"{canary}-{batch}-{n}", "content": "x"} for n in range(100)])
        (table,) = (each for each in moving._tables(sent) if str(each) == "muniment_restricted.item")
        with target.as_admin() as admin, pytest.raises(psycopg.errors.QueryCanceled):
            moving._copy(CanceledMidway(sent, admin, other), other, TenantNumber(1), table)  # type: ignore[arg-type]

    assert "canceling statement due to user request" in said()
    assert canary not in said()


COPIED_IN_A_RESTORE = ["muniment_restricted.item", "vault.session"]


@pytest.mark.parametrize("table", COPIED_IN_A_RESTORE)
def test_a_restore_whose_copy_fails_logs_no_row(external, tmp_path, said, table):
    word = new_canary()
    with cloned(external) as source, serving(source) as service, (tmp_path / "muniment.dump").open("wb") as file:
        service.session(RESTRICTED, conversation_id=word).save_memory(key=word, content=word)
        dumps.dump(source.admin, file)
    with cloned(external) as restored:
        with restored.as_admin() as admin:
            for statement in REFUSE_ROWS:
                admin.execute(statement.replace("{table}", table).encode())
        with pytest.raises(Failure), dumps.emptied(restored.admin, tmp_path / "muniment.dump"):
            backup._restore(restored.admin, tmp_path / "muniment.dump", ())

    assert "refuses_rows" in said()
    assert word not in said()


@pytest.mark.proof
@pytest.mark.parametrize("table", COPIED_IN_A_RESTORE)
def test_as_the_database_logs_by_itself_that_test_fails(external, tmp_path, said, monkeypatch, table):
    monkeypatch.setattr(dumps, "without_rows_in_log", lambda admin: admin)
    with pytest.raises(AssertionError, match="not in"):
        test_a_restore_whose_copy_fails_logs_no_row(external, tmp_path, said, table)


def test_the_conninfo_of_a_login_that_may_not_choose_what_is_logged_stays_as_it_is(external):
    """Connections with a setting that a login may not change are refused."""
    with cloned(external) as database:
        assert dumps.without_rows_in_log(database.conninfo(roles.CONTROL)) == database.conninfo(roles.CONTROL)


def test_the_options_of_a_url_or_of_pgoptions_stay(external, monkeypatch):
    with cloned(external) as database:
        monkeypatch.setenv("PGOPTIONS", "-c geqo_seed=0.25")
        named = libpq.make_conninfo(database.admin, options="-c geqo_seed=0.5")
        for admin, seed in ((database.admin, "0.25"), (named, "0.5")):
            with psycopg.connect(operator_conninfo(dumps.without_rows_in_log(admin))) as connection:
                found = connection.execute(
                    "SELECT current_setting('geqo_seed'), current_setting('log_error_verbosity'), current_user"
                ).fetchone()
            assert found == (seed, "terse", roles.OWNER)
