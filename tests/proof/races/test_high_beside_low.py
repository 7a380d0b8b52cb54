"""Law 6: a high session never makes a low one wait, nor a host that works elsewhere.

At the level of the database for the high side, which holds in one transaction all that its role may lock; over gRPC for
the low side, with a lock timeout of 50 ms, so that a caller that waits for it gets UNAVAILABLE.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from muniment_server.domain.classification import Classification
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.engines.citus import cluster as citus
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.proof.races.crew import code_of, opened
from tests.proof.races.mutants import impatience
from tests.support.databases import cloned
from tests.support.services import Caller, Service, serving

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_LOWER = (PUBLIC, INTERNAL, CONFIDENTIAL)
_NOTE, _PASSAGE = (str(uuid.UUID(int=number, version=4)) for number in (1, 2))
_OLD_NOTE, _OLD_PASSAGE = (str(uuid.UUID(int=number, version=4)) for number in (3, 4))
_ROW_LOCKS = ("FOR KEY SHARE", "FOR SHARE", "FOR NO KEY UPDATE", "FOR UPDATE")
_MODES = (
    "ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
)  # fmt: skip
_SAVE = "a save"
_OWN = ("FOR UPDATE of muniment_restricted.shelf", "FOR UPDATE of muniment_restricted.session")
_RELATIONS = """
SELECT schema.nspname || '.' || relation.relname AS name
  FROM pg_class AS relation JOIN pg_namespace AS schema ON schema.oid = relation.relnamespace
 WHERE relation.relkind IN ('r', 'v', 'p')
   AND (schema.nspname = 'vault' OR schema.nspname LIKE 'muniment%')
 ORDER BY 1
"""


@pytest.fixture
def impatient(timed_postgres: EmbeddedPostgres) -> Iterator[Service]:
    """A server whose roles wait 50 ms for a lock."""
    with cloned(timed_postgres) as clone, impatience(), serving(clone) as served:
        yield served


@pytest.fixture
def low(impatient: Service) -> list[Caller]:
    """A session at each lower level, with items of every kind in reach."""
    sessions = [impatient.session(level) for level in _LOWER]
    for session in reversed(sessions):
        for name, note_id, passage_id in (("plan", _NOTE, _PASSAGE), ("old", _OLD_NOTE, _OLD_PASSAGE)):
            session.save_memory(key=name, content="low plan")
            session.add_note(note_id=note_id, content=f"low {name}")
            session.update_block(label=name, content="low plan")
            session.store_passage(passage_id=passage_id, content="low plan")
    impatient.agent("bob")
    for agent_id in ("low", "lower"):
        impatient.host(ceiling=CONFIDENTIAL).create_agent(agent_id=agent_id)
    memories = impatient.session(PUBLIC, agent_id="low")
    for key in ("plan", "gone"):
        memories.save_memory(key=key, content="low plan")
    memories.delete_memory(key="gone")
    impatient.host().create_shared_block(owner_agent_id="bob", label="shared", content="")
    impatient.host().attach_block(owner_agent_id="bob", label="shared", agent_id="alice")
    return sessions


def test_no_low_caller_waits_for_a_high_transaction(
    impatient: Service, low: list[Caller], pytestconfig: pytest.Config
) -> None:
    on_cluster = pytestconfig.getoption("cluster")
    high = impatient.session(RESTRICTED)
    with _holding_all(impatient, high) as held:
        answers = _low_life(impatient, low)
        on_it = code_of(impatient.host().raise_taint, session_id=high.session_id, taint=int(RESTRICTED))

    # Who may delete from its index may lock that table: who erases an agent waits for SQL that does.
    assert {name: code for name, code in answers.items() if code != "OK"} in ({}, {"DeleteAgent": "UNAVAILABLE"})
    assert held >= ({_SAVE} if on_cluster else {_SAVE, *_OWN})
    assert [name for name in held if name.startswith("FOR") and any(lower.role in name for lower in _LOWER)] == []
    assert on_it == "UNAVAILABLE"  # what does wait, shows that it was held
    print(f"law 6: {len(answers)} calls beside a RESTRICTED transaction, 0 waited; it held {sorted(held)}")


@pytest.mark.proof
@pytest.mark.plain_postgres("on a cluster, the first lock that is refused ends the transaction that tries them")
def test_a_right_to_lock_lower_rows_would_show(impatient: Service, low: list[Caller]) -> None:
    """UPDATE of one column is enough to lock."""
    high = impatient.session(RESTRICTED)
    with impatient.database.as_owner() as owner:
        owner.execute("GRANT UPDATE (tags) ON muniment_public.item TO muniment_restricted")
    with _holding_all(impatient, high):
        answers = _low_life(impatient, low)

    waited = sorted(name for name, code in answers.items() if code == "UNAVAILABLE")
    assert "SaveMemory at PUBLIC" in waited
    assert "UpdateNote at PUBLIC" in waited
    assert "UpdateBlock at PUBLIC" in waited
    print(f"law 6, mutant with a right to lock: {waited} waited")


@contextmanager
def _holding_all(arena: Service, high: Caller) -> Iterator[set[str]]:
    """An open transaction of the highest role that tries every lock there is, and keeps what it gets."""
    with arena.database.connect(RESTRICTED.role) as connection, connection.transaction():
        connection.execute("SET LOCAL citus.propagate_set_commands = 'local'")  # elsewhere it means nothing
        connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        _write(connection, arena, high)
        if citus.is_cluster(connection):  # there, the first lock that is refused ends the transaction
            yield {_SAVE}
            return
        names = [str(name) for (name,) in connection.execute(_RELATIONS).fetchall()]
        tried = {
            **{f"{mode} of {name}": f"LOCK TABLE {name} IN {mode} MODE" for name in names for mode in _MODES},
            **{f"{lock} of {name}": f"SELECT * FROM {name} {lock}" for name in names for lock in _ROW_LOCKS},
        }
        yield {_SAVE, *(what for what, text in tried.items() if _gets(connection, text))}


def _write(connection: psycopg.Connection[Any], arena: Service, high: Caller) -> None:
    """What a session at the highest level does, under the write lock: save names of every kind that lower
    levels have, and new ones; delete its own.
    """
    who = {"tenant": int(high.token.split("_")[2]), "session_id": high.session_id}
    etag = {"etag_item": None, "etag_revision": None}
    new = {"content": "high plan", "tags": [], "tier": 1, "position": 0, "expire_time": None}

    def run(query: str, **fields: object) -> None:
        ids = {name: arena.ids.new_uuid() for name in ("item_id", "successor_id", "change_id")}
        parameters = {**who, **etag, **new, **ids, **fields, "method": "SaveMemory"}
        done = connection.execute(SESSION_QUERIES[query].encode(), parameters)
        assert done.rowcount == 1

    run("lock_writes")
    for kind, names in {1: ("plan", "old", "high"), 2: (_NOTE, _OLD_NOTE), 3: ("plan", "old", "high")}.items():
        for name in names:
            run("save_item", kind=kind, name=name)
        run("delete_item", kind=kind, name=names[1])
    for name in (_PASSAGE, str(arena.ids.new_uuid())):
        ids = {"item_id": str(arena.ids.new_uuid()), "change_id": str(arena.ids.new_uuid())}
        passage = {"position": 0, "name": name, "content": "low plan", "tags": [], **ids}
        run("store_passages", passages=Jsonb([passage]), count=1)


def _gets(connection: psycopg.Connection[Any], text: str) -> bool:
    """Whether the role gets this lock. One that is refused takes nothing with it."""
    try:
        with connection.transaction():
            connection.execute(text.encode())
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported, psycopg.errors.WrongObjectType):
        return False
    return True


def _low_life(arena: Service, low: list[Caller]) -> dict[str, str]:
    """Everything that sessions below do, and hosts, though not with that conversation; each with its status."""
    answers: dict[str, str] = {}
    for level, session in zip(_LOWER, low, strict=True):
        imports = partial(session.import_passages, {"content": "low"}, {"passage_id": _PASSAGE, "content": "low plan"})
        answers[f"ImportPassages at {level.name}"] = code_of(imports)
        for call, fields in _of_a_session():
            answers[f"{_rpc(call)} at {level.name}"] = code_of(getattr(session, call), **fields)
        for call, fields in _of_a_host(arena, level):
            answers[f"{_rpc(call)} at {level.name}"] = code_of(getattr(arena.host(), call), **fields)
    low_host = arena.host(ceiling=CONFIDENTIAL)
    for call, fields in _of_agents():
        answers[f"{_rpc(call)} {fields.get('label', '')}".strip()] = code_of(getattr(low_host, call), **fields)
    return answers


def _of_a_session() -> list[tuple[str, dict[str, Any]]]:
    return [
        ("get_memory", {"key": "plan"}),
        ("list_memories", {}),
        ("search_memories", {"query": "plan"}),
        ("delete_memory", {"key": "old"}),
        ("save_memory", {"key": "plan", "content": "another low plan"}),
        ("add_note", {"content": "a low note"}),
        ("update_note", {"note_id": _NOTE, "content": "another low note"}),
        ("edit_notes", {"edits": [{"update": {"note_id": _NOTE, "content": "edited"}}, {"add": {"content": "more"}}]}),
        ("delete_note", {"note_id": _OLD_NOTE}),
        ("list_notes", {}),
        ("search_notes", {"query": "low"}),
        ("update_block", {"label": "plan", "content": "another low plan"}),
        ("edit_block", {"label": "plan", "append": {"content": "more"}}),
        ("delete_block", {"label": "old"}),
        ("get_block", {"label": "plan"}),
        ("list_blocks", {}),
        ("store_passage", {"content": "low"}),
        ("delete_passage", {"passage_id": _OLD_PASSAGE}),
        ("get_passage", {"passage_id": _PASSAGE}),
        ("list_passages", {}),
        ("search_passages", {"query": "plan"}),
        ("render_prompt", {}),
        ("get_session", {}),
    ]


def _of_a_host(arena: Service, level: Classification) -> list[tuple[str, dict[str, Any]]]:
    one, other = opened(arena, "alice", level), opened(arena, "alice", level)
    return [
        ("open_session", {"agent_id": "alice", "taint": int(level)}),
        ("raise_taint", {"session_id": one.session_id, "taint": int(level) + 1}),
        ("reset_session", {"session_id": one.session_id}),
        ("close_session", {"session_id": other.session_id}),
    ]


def _of_agents() -> list[tuple[str, dict[str, Any]]]:
    return [
        ("create_shared_block", {"owner_agent_id": "low", "label": "plan"}),
        ("create_shared_block", {"owner_agent_id": "low", "label": "new", "content": "text"}),
        ("attach_block", {"owner_agent_id": "low", "label": "plan", "agent_id": "lower"}),
        ("list_block_consumers", {"owner_agent_id": "low", "label": "plan"}),
        ("detach_block", {"owner_agent_id": "low", "label": "plan", "agent_id": "lower"}),
        ("delete_shared_block", {"owner_agent_id": "low", "label": "plan"}),
        ("create_agent", {"agent_id": "carol"}),
        ("create_shared_block", {"owner_agent_id": "carol", "label": "carols", "content": "text"}),
        ("attach_block", {"owner_agent_id": "carol", "label": "carols", "agent_id": "low"}),
        ("delete_agent", {"agent_id": "carol"}),
        ("get_agent", {"agent_id": "low"}),
        ("update_agent", {"agent_id": "low", "display_name": "Alice"}),
        ("erase_items", {"agent_id": "low", "kind": 1, "name": "plan"}),
        ("undelete_item", {"agent_id": "low", "kind": 1, "name": "gone", "classification": PUBLIC}),
        ("list_agents", {}),
        ("list_sessions", {"agent_id": "low"}),
        ("list_audit_events", {}),
    ]


def _rpc(call: str) -> str:
    return "".join(part.capitalize() for part in call.split("_"))
