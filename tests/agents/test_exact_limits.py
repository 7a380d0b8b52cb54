"""What fits exactly is written, and one item or byte less of room refuses it: the same on plain Postgres and a cluster.

On a cluster, the steps of a statement see what those before them have written, so one that compares a sum with a limit
could count what it has just added.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from tests.agents.test_quotas import limit, quota_of, storage
from tests.support.answers import INTERNAL
from tests.support.services import Caller, failure_of

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
    "UndeleteItem, passage": Write(undelete(4, OLD), 1, 0, passage_and_its_deletion),
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
