"""The eraser: what DeleteAgent leaves is gone for everybody at once, and is erased in batches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event, current_thread

import psycopg
import pytest

from muniment_server.admin.connection import NoSuchAgent, connect_operator
from muniment_server.admin.history import revisions_of
from muniment_server.admin.inspection import broken_index, broken_ledgers, erasing
from muniment_server.background import eraser
from muniment_server.background.eraser import Eraser, _Interrupted
from muniment_server.domain.classification import Label
from muniment_server.domain.items import ItemKind
from muniment_server.postgres import roles
from muniment_server.postgres.pool import SINGLE, RoleConnection
from muniment_server.postgres.pool import Database as RoleDatabase
from tests.support.answers import PUBLIC, RESTRICTED, keys, refusal
from tests.support.commands import wait_until
from tests.support.databases import Database
from tests.support.erasing import erase_all
from tests.support.labels import untrusted

_CANARY = "whale"
_TABLES = """
SELECT format('%I.%I', table_schema, table_name)
  FROM information_schema.tables
 WHERE table_type = 'BASE TABLE'
   AND (table_schema = 'vault' OR table_schema LIKE 'muniment%')
"""


def fill(service, agent_id="alice"):
    """A canary of the agent in every table that holds content, at every label."""
    for label in Label:
        session = service.session(label, agent_id=agent_id, conversation_id=f"{_CANARY}{label.value}")
        for number in range(4):
            session.save_memory(key=f"{_CANARY}{number % 2}", content=f"{_CANARY} {number}", tags=[_CANARY])
            session.store_passage(content=f"{_CANARY} {number}", thread=_CANARY)
        session.add_note(content=f"{_CANARY} {label.name}")
        session.update_block(label=_CANARY, content=_CANARY)


def tables_with_canary(database: Database) -> set[str]:
    """The tables with a row that holds the canary anywhere."""
    with database.as_owner() as owner:
        tables = [name for (name,) in owner.execute(_TABLES.encode()).fetchall()]
        return {
            name
            for name in tables
            if owner.execute(f"SELECT 1 FROM {name} AS it WHERE it::text LIKE '%{_CANARY}%'".encode()).fetchone()
        }


@contextmanager
def as_eraser(database: Database) -> Iterator[RoleConnection]:
    """A connection of a server as the eraser. Statements are adapted to a cluster, as are those of a server."""
    with closing(RoleConnection.connect(database.conninfo(roles.ERASER), autocommit=True)) as connection:
        connection.apply_settings()
        connection.execute("SET idle_in_transaction_session_timeout = 0")  # on a busy machine the block may take long
        yield connection


@contextmanager
def eraser_of(database: Database, may_erase) -> Iterator[Eraser]:
    with closing(RoleDatabase(database.conninfo, pool_sizes=SINGLE)) as connections:
        yield Eraser(connections, may_erase)


def erase_some(database: Database, batches: int) -> None:
    """Erase so many batches at most, as a server that is killed then."""
    left = iter(range(batches))
    with eraser_of(database, lambda: next(left, None) is not None) as some, pytest.raises(_Interrupted):
        some.erase_all()


def test_no_table_holds_any_of_an_erased_agent(service):
    fill(service)
    before = tables_with_canary(service.database)
    service.host().delete_agent(agent_id="alice")
    erase_all(service.database)

    assert {name.split(".")[1] for name in before} == {
        "item",
        "revision",
        "chunk",
        "meaning",
        "session",
        "conversation",
    }
    assert tables_with_canary(service.database) == set()


def test_until_it_is_erased_a_deleted_agent_is_gone_for_everybody(service):
    host = service.host()
    fill(service)
    own = service.session(RESTRICTED)
    host.delete_agent(agent_id="alice")

    assert refusal(own.list_memories) == "UNAUTHENTICATED CREDENTIAL_INVALID"
    assert refusal(host.get_session, session_id=own.session_id) == "NOT_FOUND SESSION_NOT_FOUND"
    assert refusal(host.raise_taint, session_id=own.session_id, taint=4) == "NOT_FOUND SESSION_NOT_FOUND"
    assert refusal(host.list_sessions, agent_id="alice") == "NOT_FOUND AGENT_NOT_FOUND"
    assert list(host.list_agents().agents) == []
    assert tables_with_canary(service.database) != set()


def test_the_audit_log_says_the_same_of_a_refusal_before_and_after_the_erasing(service):
    low = service.host(ceiling=PUBLIC)
    session = service.session(PUBLIC)
    service.host().delete_agent(agent_id="alice")
    assert refusal(low.raise_taint, session_id=session.session_id, taint=4) == "PERMISSION_DENIED CEILING_EXCEEDED"
    erase_all(service.database)
    assert refusal(low.raise_taint, session_id=session.session_id, taint=4) == "PERMISSION_DENIED CEILING_EXCEEDED"

    events = service.host().list_audit_events().audit_events
    refused = [event.agent_id for event in events if event.outcome == "CEILING_EXCEEDED"]
    assert refused == ["", ""]


def test_operators_do_not_find_a_deleted_agent_by_the_id_in_the_audit_log(service):
    service.session(PUBLIC)
    host = service.host()
    host.delete_agent(agent_id="alice")
    [deleted] = {event.agent_id for event in host.list_audit_events().audit_events if event.agent_id}

    with connect_operator(service.database.admin) as operator:
        assert deleted.startswith("~")
        with pytest.raises(NoSuchAgent):
            revisions_of(operator, tenant="acme", agent_id=deleted, kind=ItemKind.MEMORY, name="plan")


def test_an_eraser_that_fails_each_second_says_so_once_a_minute(service, caplog):
    asked, often = [], Event()

    def may_erase() -> bool:
        asked.append(True)
        if len(asked) == 3:
            often.set()
        raise RuntimeError("canary")

    with eraser_of(service.database, may_erase) as broken:
        broken.start()
        assert often.wait(10)
        broken.end()

    assert [record.getMessage() for record in caplog.records if record.name == "muniment.eraser"] == [
        "erasing failed and will be retried: RuntimeError"
    ]


def test_the_eraser_goes_on_after_an_error_and_logs_only_its_kind(service, caplog):
    service.session(PUBLIC)
    service.host().delete_agent(agent_id="alice")
    asked, erased = 0, Event()

    def may_erase() -> bool:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise RuntimeError(_CANARY)
        return not erased.is_set()

    with eraser_of(service.database, may_erase) as fragile, connect_operator(service.database.admin) as operator:
        fragile.start()
        wait_until(lambda: erasing(operator) == (0, 0), "it goes on")
        erased.set()
        assert [record.getMessage() for record in caplog.records if record.name == "muniment.eraser"] == [
            "erasing failed and will be retried: RuntimeError"
        ]


def test_an_eraser_that_was_ended_logs_nothing_and_ends(database, caplog):
    """The worker closes its connections then, in the middle of a batch perhaps."""
    failed, ended = Event(), Event()
    threads = []

    def may_erase() -> bool:
        threads.append(current_thread())
        failed.set()
        assert ended.wait(20)
        raise RuntimeError

    with eraser_of(database, may_erase) as last:
        last.start()
        assert failed.wait(20)
        last.end()
        ended.set()
        threads[0].join(20)

        assert not threads[0].is_alive()
        assert [record.getMessage() for record in caplog.records if record.name == "muniment.eraser"] == []


def test_while_it_is_erased_a_successor_of_its_id_inherits_nothing(service, monkeypatch):
    monkeypatch.setattr(eraser, "_BATCH_ROWS", 2)
    fill(service)
    service.host().delete_agent(agent_id="alice")
    successor = service.session(RESTRICTED, conversation_id=f"{_CANARY}1")
    successor.save_memory(key="plan", content="zebra")
    erase_some(service.database, 20)

    for _ in range(2):
        assert keys(successor.list_memories()) == ["plan"]
        assert keys(successor.search_memories(query=_CANARY)) == []
        assert list(successor.list_passages().passages) == []
        assert len(service.host().list_sessions(agent_id="alice").sessions) == 1
        erase_all(service.database)
    with connect_operator(service.database.admin) as operator:
        assert erasing(operator) == (0, 0)


def test_erasing_goes_on_where_it_was_interrupted_and_doctor_sees_no_damage(service, monkeypatch):
    monkeypatch.setattr(eraser, "_BATCH_ROWS", 1)
    fill(service)
    service.agent("bob")
    service.host().delete_agent(agent_id="alice")
    left = []
    with connect_operator(service.database.admin) as operator:
        while (found := erasing(operator)) != (0, 0):
            left.append(found)
            assert {*broken_index(operator).values(), *broken_ledgers(operator).values()} == {0}
            erase_some(service.database, 12) if len(left) < 10 else erase_all(service.database)

    assert len(left) == 10
    assert [agents for agents, _ in left] == [1] * 10
    assert [rows for _, rows in left] == sorted((rows for _, rows in left), reverse=True)


_LEFT = """
SELECT (SELECT count(*) FROM muniment_public.chunk) AS chunks, (SELECT count(*) FROM vault.session) AS sessions,
       (SELECT count(*) FROM vault.conversation) AS conversations, (SELECT count(*) FROM muniment_public.stat) AS stats,
       (SELECT count(*) FROM muniment_public.item) AS items
"""


def save_some(service, *agent_ids: str) -> None:
    """Six memories of each agent."""
    for agent_id in agent_ids:
        session = service.session(PUBLIC, agent_id=agent_id)
        for number in range(6):
            session.save_memory(key=f"key{number}", content="a cat")


def test_what_would_be_sent_to_a_model_is_erased_first_of_all_deleted_agents(service, monkeypatch):
    """Chunks, with which the queue goes: before the sessions, the statistics and the items of any agent."""
    monkeypatch.setattr(eraser, "_BATCH_ROWS", 2)
    save_some(service, "alice", "bob", "carol")
    for agent_id in ("alice", "bob", "carol"):
        service.host().delete_agent(agent_id=agent_id)
    seen: list[tuple[int, list[int]]] = []
    with service.database.as_owner() as owner:

        def look():
            chunks, *others = owner.execute(_LEFT.encode()).fetchone()
            seen.append((chunks, others))
            return others == seen[0][1]

        with eraser_of(service.database, look) as some, pytest.raises(_Interrupted):
            some.erase_all()

    assert (seen[0][0], seen[-1][0]) == (18, 0)


def test_the_chunks_of_an_agent_that_is_deleted_later_do_not_wait_for_the_rest_of_another(service, monkeypatch):
    monkeypatch.setattr(eraser, "_BATCH_ROWS", 1)
    save_some(service, "alice", "bob")
    service.host().delete_agent(agent_id="alice")
    seen: list[tuple[int, int]] = []
    with service.database.as_owner() as owner:

        def look():
            chunks, *_, items = owner.execute(_LEFT.encode()).fetchone()
            if items == 11 and chunks == 6 and not seen:
                service.host().delete_agent(agent_id="bob")
            if items < 12:
                seen.append((chunks, items))
            return chunks > 0

        with eraser_of(service.database, look) as some, pytest.raises(_Interrupted):
            some.erase_all()

    assert (seen[0], seen[-1]) == ((6, 11), (0, 11))


@pytest.mark.parametrize(("schema", "query"), [*eraser._CHUNK_STEPS, *eraser._STEPS[:-1]])
def test_a_batch_is_found_by_an_index_and_looks_at_no_other_rows(service, schema, query):
    """Otherwise the time of all batches grows with the square of the rows."""
    with as_eraser(service.database) as connection, connection.transaction():
        connection.execute(eraser._QUERIES["prepare_batch"], {"schema": schema})
        rows = connection.execute(
            f"EXPLAIN {eraser._QUERIES[query]}", {"tenant": 1, "agent": 1, "most": eraser._BATCH_ROWS}
        ).fetchall()

    plan = "\n".join(line for (line,) in rows)
    assert "Index" in plan
    assert not re.search("Seq Scan|Bitmap|Sort Key", plan), plan


def test_while_another_server_erases_nothing_is_erased(service):
    fill(service)
    service.host().delete_agent(agent_id="alice")
    before = tables_with_canary(service.database)
    with service.database.connect(roles.ERASER) as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(%s)", [eraser._LOCK])
        with eraser_of(service.database, lambda: True) as second, pytest.raises(_Interrupted):
            second.erase_all()

    assert tables_with_canary(service.database) == before


def test_the_eraser_waits_for_no_session_and_no_session_for_it(service):
    """Its locks are on rows of deleted agents only. One that a call waited for would be given up after 5 s."""
    service.session(PUBLIC).save_memory(key="plan", content="text")
    bob = service.session(PUBLIC, agent_id="bob")
    service.host().delete_agent(agent_id="alice")
    with as_eraser(service.database) as connection, connection.transaction():
        [(tenant, agent)] = connection.execute(eraser._QUERIES["deleted_agents"], {"most": 2}).fetchall()
        connection.execute(eraser._QUERIES["prepare_batch"], {"schema": untrusted(PUBLIC).role})
        batch = {"tenant": tenant, "agent": agent, "most": eraser._BATCH_ROWS}
        assert connection.execute(eraser._QUERIES["erase_items"], batch).rowcount > 0

        assert bob.save_memory(key="plan", content="text").memory.content == "text"
        assert service.session(PUBLIC).save_memory(key="plan", content="text").memory.content == "text"


@pytest.mark.plain_postgres("ADR 14: on a cluster, the eraser can delete rows of agents that are not deleted")
def test_the_eraser_cannot_touch_a_row_of_an_agent_that_is_not_deleted(service):
    fill(service)
    with service.database.connect(roles.ERASER) as connection:
        views = ["agent", "session", "conversation"]
        for level in roles.LABELS:
            views += [f"{level}.erasable_{name}" for name in ("item", "revision", "chunk", "stat")]
        assert [connection.execute(f"DELETE FROM {view}".encode()).rowcount for view in views] == [0] * len(views)
        for table in ("vault.agent", "vault.session", "muniment_public.item", "muniment_public.chunk"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"DELETE FROM {table}".encode())
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("SELECT content FROM muniment_public.erasable_item")
