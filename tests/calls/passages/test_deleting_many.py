"""DeletePassages."""

from __future__ import annotations

import pytest

from tests.support.answers import INTERNAL, PUBLIC, UP, events, invalid


def contents(session):
    """The contents of all visible passages."""
    return sorted(one.content for one in session.list_passages(page_size=250).passages)


def test_a_tag_or_a_thread(at, host):
    at(PUBLIC).store_passage(content="a", tags=["old", "x"])
    at(PUBLIC).store_passage(content="b", tags=["old"], thread="chat")
    at(PUBLIC).store_passage(content="c", thread="chat")
    at(PUBLIC).store_passage(content="d", thread="chats")

    by_thread = at(PUBLIC).delete_passages(thread="chat")
    by_tag = at(PUBLIC).delete_passages(tag="old")

    assert (by_thread.deleted_count, by_thread.more) == (2, False)
    assert (by_tag.deleted_count, by_tag.more) == (1, False)
    assert contents(at(PUBLIC)) == ["d"]
    rows = [event for event in events(host) if event.method == "DeletePassages"]
    assert len({row.item_id for row in rows}) == 3
    assert {(row.outcome, row.kind) for row in rows} == {("OK", 4)}


@pytest.mark.parametrize(("low", "high"), UP)
def test_other_levels_are_neither_deleted_nor_counted(at, low, high):
    at(low).store_passage(content="low", thread="chat")
    at(high).store_passage(content="high", thread="chat")

    assert at(high).delete_passages(thread="chat").deleted_count == 1
    assert at(high).delete_passages(thread="chat").deleted_count == 0
    assert contents(at(high)) == ["low"]
    assert at(low).delete_passages(thread="chat").deleted_count == 1


def test_c30_what_exists_only_above_is_like_nothing(at):
    nothing = at(PUBLIC).delete_passages(thread="chat")
    at(INTERNAL).store_passage(content="high", thread="chat")

    assert at(PUBLIC).delete_passages(thread="chat") == nothing


def test_a_deleted_turn_is_not_found_by_its_neighbors(at):
    for content in ("the harbor opens", "at nine", "the museum"):
        at(PUBLIC).store_passage(content=content, thread="chat", tags=["m"] if "museum" in content else ["old"])

    at(PUBLIC).delete_passages(tag="old")

    found = at(PUBLIC).search_passages(query="harbor museum")
    assert [one.passage.content for one in found.results] == ["the museum"]


def test_more_than_one_call_deletes(at):
    at(PUBLIC).import_passages(*({"content": f"turn {n}", "thread": "chat"} for n in range(1001)))

    first, second = (at(PUBLIC).delete_passages(thread="chat") for _ in range(2))

    assert (first.deleted_count, first.more) == (1000, True)
    assert (second.deleted_count, second.more) == (1, False)


def test_a_tag_and_a_thread_together_delete_what_has_both(at):
    for tags, thread in ((["a"], "chat"), (["a"], "other"), (["b"], "chat"), (["a"], "")):
        at(PUBLIC).store_passage(content=f"{tags[0]} {thread}", tags=tags, thread=thread)

    assert at(PUBLIC).delete_passages(tag="a", thread="chat").deleted_count == 1
    assert contents(at(PUBLIC)) == ["a ", "a other", "b chat"]


def test_a_call_without_a_tag_and_a_thread_is_refused(at):
    assert invalid(at(PUBLIC).delete_passages) == ["tag"]
    assert invalid(at(PUBLIC).delete_passages, thread=" b") == ["thread"]
    assert invalid(at(PUBLIC).delete_passages, tag="\n\n") == ["tag"]
