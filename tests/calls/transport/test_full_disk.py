"""A full disk: who is refused, who goes on, and for how long."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from muniment_server.monitor.policy import Flow, policies
from muniment_server.postgres import disk
from muniment_server.transport.server import SERVICES
from tests.support.answers import INTERNAL, PUBLIC
from tests.support.clock import StoppedClock
from tests.support.services import Service, failure_of, reason_of, serving

HOLD = 30
TEXT: dict[str, object] = {"content": "text"}
STORING: dict[str, dict[str, object]] = {
    "save_memory": {"key": "plan", **TEXT},
    "add_note": TEXT,
    "update_note": {"note_id": "0" * 8 + "-0000-0000-0000-" + "0" * 12, **TEXT},
    "edit_notes": {"edits": [{"add": TEXT}]},
    "update_block": {"label": "facts", **TEXT},
    "edit_block": {"label": "personality", "append": TEXT},
    "store_passage": TEXT,
}
"""What sessions call to store texts, apart from imports."""
FAILS = """
CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz LANGUAGE plpgsql STABLE PARALLEL SAFE
    AS $$ BEGIN RAISE disk_full; END $$
"""
WORKS = """
CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    RETURN pg_catalog.now()
"""


@contextmanager
def full_disk(database):
    """A database that finds no room, whatever is asked of it."""
    with database.as_owner() as owner:
        owner.execute(FAILS)
        yield
        owner.execute(WORKS)


@pytest.fixture
def stopped():
    return StoppedClock()


@pytest.fixture
def filled(database, stopped, tmp_path, monkeypatch):
    """A server whose disk is full once `fill` is called, and has room again after `empty`."""

    class Filled:
        service: Service

        def fill(self):
            monkeypatch.setattr(disk, "LEAST_FREE", 2**63)

        def empty(self):
            monkeypatch.setattr(disk, "LEAST_FREE", 0)

    with serving(database, clock=stopped, disk=tmp_path) as service:
        state = Filled()
        state.empty()
        state.service = service
        yield state


def reason(call, **fields):
    return reason_of(failure_of(call, **fields))


def test_every_method_that_stores_text_is_refused_on_a_full_disk():
    """Each write that is no deletion, and what hosts store for agents. The policy of a new method must say so."""
    methods = policies(SERVICES).values()
    writes = {method.name for method in methods if method.flow is Flow.WRITE and not method.name.startswith("Delete")}

    assert {method.name for method in methods if method.declared.stores_text} == writes | {
        "CreateAgent", "CreateSharedBlock", "UndeleteItem", "ApproveRelease",
    }  # fmt: skip


def test_calls_that_store_texts_are_refused_while_the_disk_is_full(filled):
    session, host = filled.service.session(PUBLIC), filled.service.host()
    filled.fill()

    assert {name: reason(session.__getattr__(name), **fields) for name, fields in STORING.items()} == dict.fromkeys(
        STORING, "STORAGE_FULL"
    )
    assert reason(host.create_agent, agent_id="bob") == "STORAGE_FULL"
    assert reason(host.create_shared_block, owner_agent_id="alice", label="house", **TEXT) == "STORAGE_FULL"
    assert reason_of(session.observe_import({"content": "text"})) == "STORAGE_FULL"


def test_a_closed_session_learns_nothing_of_a_full_disk(filled):
    session, host = filled.service.session(PUBLIC), filled.service.host()
    session.list_memories()  # so that the server remembers it
    host.close_session(session_id=session.session_id)
    filled.fill()

    assert {reason(session.__getattr__(name), **fields) for name, fields in STORING.items()} == {"CREDENTIAL_INVALID"}


def test_reads_deletions_and_what_hosts_do_with_sessions_go_on(filled):
    session, host = filled.service.session(PUBLIC), filled.service.host()
    session.save_memory(key="plan", content="text")
    filled.fill()

    session.get_memory(key="plan")
    session.search_memories(query="text")
    session.render_prompt()
    session.delete_memory(key="plan")
    host.raise_taint(session_id=session.session_id, taint=INTERNAL)
    host.reset_session(session_id=session.session_id, reason="wiped")
    filled.service.session(INTERNAL).close_session()
    host.update_agent(agent_id="alice", display_name="Alice")
    host.delete_agent(agent_id="alice")


def test_an_import_under_way_stops_when_the_disk_is_full_and_says_how_far_it_came(filled):
    session = filled.service.session(PUBLIC)

    def passages():
        yield {"content": "first"}
        filled.fill()
        yield {"content": "second"}

    assert reason(lambda: session.import_stream(passages())) == "STORAGE_FULL"


def test_a_full_disk_counts_as_full_for_half_a_minute(filled, stopped):
    session = filled.service.session(PUBLIC)
    filled.fill()
    failure_of(session.save_memory, key="plan", content="text")
    filled.empty()

    stopped.seconds += HOLD - 1
    assert reason(session.save_memory, key="plan", content="text") == "STORAGE_FULL"
    stopped.seconds += 1
    session.save_memory(key="plan", content="text")


def test_when_postgres_says_that_its_disk_is_full_no_one_stores_texts_for_half_a_minute(filled, stopped):
    one, other = filled.service.session(PUBLIC), filled.service.session(INTERNAL)
    one.list_memories()
    with full_disk(filled.service.database):
        assert reason(one.save_memory, key="plan", content="text") == "STORAGE_FULL"

    assert reason(other.save_memory, key="plan", content="text") == "STORAGE_FULL"
    one.list_memories()
    stopped.seconds += HOLD
    other.save_memory(key="plan", content="text")


def test_a_read_for_which_postgres_finds_no_room_refuses_no_one_elses_save(filled):
    """It needs room for a moment only, which whoever asks could choose."""
    one, other = filled.service.session(PUBLIC), filled.service.session(INTERNAL)
    one.list_memories()
    with full_disk(filled.service.database):
        assert reason(one.list_memories) == "STORAGE_FULL"

    other.save_memory(key="plan", content="text")


def test_a_directory_that_is_gone_is_on_the_disk_that_it_would_be_on(tmp_path):
    """An unmounted disk, or a directory that was moved away, ends no process: Postgres is away, and that is enough."""
    assert not disk.Disk(tmp_path / "gone" / "postgres").is_full
