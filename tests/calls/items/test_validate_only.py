"""A write that is only checked is refused as the write would be, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, events, fields_of, keys
from tests.support.services import failure_of

ID = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f0"


def save_memories(session: Any, content: str, **options: bool) -> Any:
    memories = [{"key": "first", "content": "x"}, {"key": "plan", "content": content}]
    return session.save_memories(memories=memories, **options)


def import_passages(session: Any, content: str, **options: bool) -> Any:
    passages = [{"content": "x"}, {"passage_id": ID, "content": content}]
    return session.import_passages(*({**passage, **options} for passage in passages))


def update_block(session: Any, content: str, **options: bool) -> Any:
    return session.update_block(label="state", content=content, **options)


WRITES: dict[str, Callable[..., Any]] = {
    "SaveMemories": save_memories,
    "ImportPassages": import_passages,
    "UpdateBlock": update_block,
}


def state(session: Any) -> list[Any]:
    return [session.list_memories(), session.list_passages(), session.list_blocks()]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_is_accepted_changes_nothing_and_leaves_no_audit_row(at, host, write):
    for level in (PUBLIC, CONFIDENTIAL):  # at the higher one, reads are audited
        session = at(level)
        before, audited = state(session), events(host)
        write(session, "new", validate_only=True)
        assert events(host) == audited
        assert state(session) == before


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_is_refused_is_what_the_write_refuses(at, write):
    checked = failure_of(lambda: write(at(PUBLIC), "half\0", validate_only=True))
    written = failure_of(lambda: write(at(INTERNAL), "half\0"))

    assert (checked.code, fields_of(checked)) == (written.code, fields_of(written))
    assert fields_of(checked)[0].endswith("content")


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_stored_items_do_not_change_the_answer(at, write):
    """Neither what is above the session nor what it sees itself."""
    empty = write(at(PUBLIC), "new", validate_only=True)
    write(at(CONFIDENTIAL), "above")
    write(at(PUBLIC), "here")

    assert write(at(PUBLIC), "new", validate_only=True) == empty


def test_an_import_counts_what_it_would_accept(at):
    session = at(PUBLIC)
    checked = [{"content": "x" * (number != 150), "validate_only": True} for number in range(200)]
    refused = failure_of(lambda: session.import_passages(*checked))
    accepted = session.import_passages(*checked[:150])

    assert fields_of(refused) == ["passage.content"]
    assert (accepted.stored_count, accepted.existing_count) == (150, 0)
    assert list(session.list_passages().passages) == []


def test_a_stream_may_check_some_passages_and_store_others(at):
    session = at(PUBLIC)
    counts = session.import_passages(
        {"content": "checked", "validate_only": True},
        {"content": "stored"},
        {"content": "checked", "validate_only": True},
    )

    assert counts.stored_count == 3
    assert [passage.content for passage in session.list_passages().passages] == ["stored"]
    assert keys(session.list_memories()) == []
