"""Law 6: a high session never locks or blocks a low one."""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.proof.races.mutants import impatience
from tests.support.invariants import broken_invariants
from tests.support.named_queries import filled, parameters
from tests.support.services import failure_of

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
LEVELS = tuple(Classification)
UP = [(low, high) for low in LEVELS for high in LEVELS if low < high]
NOTE = "00000000-0000-4000-8000-000000000001"
PASSAGES = [
    {"position": position, "name": str(uuid.uuid4()), "content": "held", "tags": [], "item_id": str(uuid.uuid4()),
     "change_id": str(uuid.uuid4())} for position in range(2)
]  # fmt: skip
MODES = ("FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE")


@pytest.fixture
def crowded(service):
    """A service that was used at every level, with no lock waited for longer than 50 ms."""
    with impatience():
        service.session(PUBLIC).add_note(note_id=NOTE, content="text")
        for level in LEVELS:
            session = service.session(level, conversation_id=f"c{level.value}")
            session.save_memory(key="plan", content=level.name)
            session.save_memory(key="gone", content=level.name)
            session.delete_memory(key="gone")
            session.update_note(note_id=NOTE, content=level.name)
            session.update_block(label="plan", content=level.name)
            session.store_passage(content=level.name)
        yield service


@contextmanager
def holding(service, level):
    """A transaction at *level*, with every lock it can get: a save, a delete, and every row it may lock."""
    opened = service.session(level, conversation_id="holder")
    with service.database.connect(level.role) as connection:
        (row,) = connection.execute(
            "SELECT tenant, agent FROM session WHERE session_id = %s", [opened.session_id]
        ).fetchall()
        literals = {
            "tenant": str(row.tenant), "session_id": f"'{opened.session_id}'::uuid", "kind": "1", "tier": "1",
            "position": "0", "content": "'held'", "tags": "'{}'", "expire_time": "NULL", "method": "'SaveMemory'",
            "etag_item": "NULL::uuid", "etag_revision": "NULL::integer",
            "passages": f"'{json.dumps(PASSAGES)}'::jsonb", "count": "2", "stemmers": "'{}'",
            "names": "'{plan,new}'",
            "texts": """'[{"name": "plan"}, {"name": "new"}]'::jsonb""",
        }  # fmt: skip

        def run(query: str, name: str = "", kind: int = 1) -> None:
            text = SESSION_QUERIES[query]
            ids = {each: f"'{uuid.uuid4()}'::uuid" for each in parameters(text) if each not in literals}
            given = literals | ids | {"name": f"'{name}'", "kind": str(kind)}
            connection.execute(filled(text, given).encode())

        with connection.transaction(force_rollback=True):
            run("lock_writes")
            for kind, name in ((1, "plan"), (2, NOTE), (3, "plan")):
                run("save_item", name, kind)
                run("save_item", "new", kind)
                run("delete_item", name, kind)
            run("store_passages")
            run("index_items")
            run("fold_stats")
            connection.execute("SELECT FROM item FOR UPDATE")
            connection.execute("SELECT FROM stat FOR UPDATE")
            connection.execute("SELECT FROM session WHERE session_id = %s FOR UPDATE", [opened.session_id])
            connection.execute("SELECT FROM shelf FOR UPDATE")
            yield


@pytest.mark.parametrize(("low", "high"), UP)
@pytest.mark.parametrize("mode", MODES)
def test_c80_a_lower_row_cannot_be_locked(migrated, low, high, mode):
    """By grant: a lock needs an UPDATE right."""
    with migrated.connect(high.role) as connection:
        for statement in (f"SELECT FROM {low.role}.item {mode}", f"SELECT FROM visible {mode}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


@pytest.mark.parametrize(("low", "high"), UP)
def test_c80_what_a_high_transaction_holds_blocks_no_low_session(crowded, low, high):
    low_session = crowded.session(low, conversation_id="low")
    with holding(crowded, high):
        low_session.save_memory(key="plan", content="again")
        low_session.save_memory(key="fresh", content="text")
        low_session.get_memory(key="plan")
        low_session.list_memories()
        low_session.search_memories(query="again")
        low_session.delete_memory(key="plan")
        low_session.delete_memory(key="fresh")
        failure_of(low_session.delete_memory, key="never")
        failure_of(low_session.list_agents)
        low_session.update_note(note_id=NOTE, content="again")
        low_session.edit_notes(edits=[{"add": {"content": "new"}}, {"delete": {"note_id": NOTE}}])
        low_session.list_notes()
        low_session.update_block(label="plan", content="again")
        low_session.edit_block(label="plan", append={"content": "more"})
        low_session.delete_block(label="plan")
        low_session.list_blocks()
        low_session.store_passage(content="text")
        low_session.import_passages({"content": "text"}, {"passage_id": NOTE, "content": "text"})
        low_session.list_passages()
        low_session.render_prompt()
        low_session.get_session()
        low_session.close_session()

    assert broken_invariants(crowded.database) == []


@pytest.mark.parametrize("high", [INTERNAL, RESTRICTED])
def test_c80_what_a_high_transaction_holds_blocks_no_host(crowded, high):
    """But where the host asks for that very conversation, or to delete the agent."""
    host = crowded.host()
    with holding(crowded, high):
        opened = host.open_session(agent_id="alice", taint=PUBLIC, conversation_id="new").session
        host.raise_taint(session_id=opened.session_id, taint=high)
        host.get_session(session_id=opened.session_id)
        new = host.reset_session(session_id=opened.session_id).session
        host.close_session(session_id=new.session_id)
        host.list_sessions(agent_id="alice", include_closed=True)
        host.update_agent(agent_id="alice", display_name="A")
        host.create_agent(agent_id="bob")
        host.create_shared_block(owner_agent_id="alice", label="plan")
        host.attach_block(owner_agent_id="alice", label="plan", agent_id="bob")
        host.delete_shared_block(owner_agent_id="alice", label="plan")
        host.delete_agent(agent_id="bob")
        host.list_audit_events()


@pytest.mark.parametrize("level", LEVELS)
def test_another_session_of_the_level_is_not_blocked_either(crowded, level):
    """Writers of one conversation queue, and those of notes and blocks; others do not, but for one same name."""
    other = crowded.session(level, conversation_id="other")
    literal = "SELECT FROM session WHERE session.tenant = %s AND session.session_id = %s FOR NO KEY UPDATE"
    with crowded.database.connect(level.role) as connection:
        (row,) = connection.execute(
            "SELECT tenant, session_id FROM session WHERE conversation_id = %s", [f"c{level.value}"]
        ).fetchall()
        with connection.transaction():
            connection.execute(literal, row)
            other.save_memory(key="plan", content="text")
            other.delete_memory(key="plan")


def test_a_raise_waits_for_a_writer_of_its_conversation(crowded):
    """The test above can fail: this is what blocks, and must."""
    host = crowded.host()
    opened = host.open_session(agent_id="alice", taint=PUBLIC, conversation_id="raised").session
    with crowded.database.connect("muniment_public") as writer, writer.transaction():
        writer.execute("SELECT FROM session WHERE session_id = %s FOR NO KEY UPDATE", [opened.session_id])
        assert failure_of(host.raise_taint, session_id=opened.session_id, taint=INTERNAL).code.name == "UNAVAILABLE"


@pytest.mark.parametrize("level", LEVELS)
def test_c41_no_write_at_the_old_level_after_a_raise(crowded, level):
    """What waited for the raise finds no session, and writes at the new level or not at all."""
    session = crowded.session(PUBLIC, conversation_id="race")
    crowded.host().raise_taint(session_id=session.session_id, taint=level)

    assert session.save_memory(key="race", content="text").memory.classification == level
