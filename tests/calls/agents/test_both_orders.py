"""Statements whose steps touch the same rows or sums: they do the same on plain Postgres and on a cluster.

On plain Postgres, the steps of a statement see the tables as they were before it. On a cluster, they see what the steps
before them have written, so one that compares a sum with a limit could count what it has just added. The statements
whose steps do touch the same are listed in tests/schema/postgres/test_steps.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_index
from tests.calls.agents.test_quotas import limit, quota_of, storage
from tests.support.answers import INTERNAL, LEVELS
from tests.support.invariants import broken_invariants
from tests.support.services import Caller, failure_of

PASSAGE = 4
EMBED_AT_AN_ADDRESS = """
INSERT INTO remote_embedding (tenant, agent, kind, name, change_id, number, model, is_missing, prior_name)
SELECT own.tenant, own.agent, own.kind, own.name, own.change_id, own.piece, 7, FALSE, prior.name
  FROM meaning AS own
       LEFT JOIN chunk AS prior
              ON (prior.tenant, prior.agent, prior.change_id) = (own.tenant, own.agent, own.prior)
"""
CHUNKS = "SELECT name FROM chunk WHERE kind = 4"
EMBEDDINGS = "SELECT name FROM meaning WHERE kind = 4"
REMOTE_EMBEDDINGS = "SELECT name FROM remote_embedding WHERE kind = 4"
TEXT = "x" * 10
OLD, NEW = (str(uuid.uuid4()) for _ in range(2))


def memory(session: Caller, key: str = "old") -> None:
    session.save_memory(key=key, content=TEXT)


def memory_and_its_deletion(session: Caller) -> None:
    memory(session)
    session.delete_memory(key="old")


def passage_and_its_deletion(session: Caller) -> None:
    session.store_passage(content=TEXT, passage_id=OLD)
    session.delete_passage(passage_id=OLD)


class Write(NamedTuple):
    write: Callable[[Caller, Caller], Any]
    """Called with a session at INTERNAL and the host."""
    items: int
    size: int
    before: Callable[[Caller], Any] = memory


def undelete(kind: int, name: str) -> Callable[[Caller, Caller], Any]:
    target = {"agent_id": "alice", "kind": kind, "name": name, "classification": INTERNAL}
    return lambda _, host: host.undelete_item(**target)


WRITES = {
    "SaveMemory": Write(lambda session, _: memory(session, "new"), 1, 10),
    "SaveMemory, again": Write(lambda session, _: session.save_memory(key="old", content="y" * 10), 0, 10),
    "SaveMemories": Write(
        lambda session, _: session.save_memories(memories=[{"key": key, "content": TEXT} for key in ("a", "old", "b")]),
        2,
        20,
    ),
    "RenameMemory": Write(lambda session, _: session.rename_memory(key="old", new_key="new"), 0, 10),
    "AddNote": Write(lambda session, _: session.add_note(content=TEXT), 1, 10),
    "EditNotes": Write(lambda session, _: session.edit_notes(edits=[{"add": {"content": TEXT}}]), 1, 10),
    "UpdateBlock": Write(lambda session, _: session.update_block(label="new", content=TEXT), 1, 10),
    "StorePassage": Write(lambda session, _: session.store_passage(content=TEXT), 1, 10),
    "ImportPassages": Write(
        lambda session, _: session.import_passages(
            {"content": TEXT, "passage_id": OLD}, {"content": TEXT}, {"content": TEXT, "passage_id": NEW}
        ),
        2,
        20,
        lambda session: session.store_passage(content=TEXT, passage_id=OLD),
    ),
    "UndeleteItem, memory": Write(undelete(1, "old"), 1, 10, memory_and_its_deletion),
    "UndeleteItem, passage": Write(undelete(PASSAGE, OLD), 1, 0, passage_and_its_deletion),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_fits_exactly_is_written_and_what_does_not_changes_nothing(at, host, name):
    write, items, size, before = WRITES[name]
    session = at(INTERNAL)
    limit(host, max_items=1_000, max_bytes=1_000_000)  # so low that the room is looked up for each write
    before(session)
    stored = storage(host)[INTERNAL]
    exact = {"max_items": stored.items + items, "max_bytes": stored.bytes + size}

    for quota, less in {"items": items > 0, "bytes": size > 0}.items():
        limit(host, **{**exact, f"max_{quota}": exact[f"max_{quota}"] - less})
        if less:
            assert quota_of(failure_of(partial(write, session, host))) == quota
            now = storage(host)[INTERNAL]
            assert (now.items, now.bytes) == (stored.items, stored.bytes)
    limit(host, **exact)
    write(session, host)

    assert storage(host)[INTERNAL].items == stored.items + items


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "remove",
    [
        lambda session, _: session.delete_passages(thread="t"),
        lambda _, host: host.erase_items(agent_id="alice", kind=PASSAGE, tag="pii"),
    ],
    ids=["DeletePassages", "EraseItems"],
)
def test_turns_that_are_embedded_with_each_other_are_removed_together(service, level, remove):
    """One step clears the embeddings that include a removed text, another one removes them with their chunks."""
    session = service.session(level)
    for text in ("one", "two", "three"):
        session.store_passage(content=text, thread="t", tags=["pii"])
    last = session.store_passage(content="of another thread").passage
    with service.database.as_owner() as owner:
        owner.execute("SELECT set_config('search_path', %s, false)", [level.role])
        owner.execute(EMBED_AT_AN_ADDRESS)
        (included,) = owner.execute("SELECT count(prior_name) FROM remote_embedding").fetchone()
        remove(session, service.host())
        left = [owner.execute(query).fetchall() for query in (CHUNKS, EMBEDDINGS, REMOTE_EMBEDDINGS)]

    assert included == 2
    assert left == [[(last.passage_id,)]] * 3
    with connect_operator(service.database.admin) as operator:
        assert set(broken_index(operator).values()) == {0}
    assert [what for what in broken_invariants(service.database) if "miscounted" in what] == []
