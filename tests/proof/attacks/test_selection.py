"""Untrusted writes that change what a trusted query selects: selection integrity, arXiv 2606.12290.

Promised: nothing above changes what a session selects (law 2). Not promised: anything about what is below. A
classification says at which level a text was written, not that it is true, and law 2 goes only upward.
"""

from __future__ import annotations

import pytest

from tests.support.answers import CONFIDENTIAL, PUBLIC, UP, keys

QUERY = "budget of the whale project"


def flood(session, count=30):
    for number in range(count):
        session.save_memory(key=f"flood{number}", content=f"{QUERY} {QUERY} number {number}")


@pytest.mark.parametrize(("low", "high"), UP)
def test_no_write_above_changes_what_is_selected_below(at, low, high):
    for key in ("plan", "note", "list"):
        at(low).save_memory(key=key, content=f"{key}: the budget of the project")
    before = at(low).search_memories(query=QUERY).SerializeToString(deterministic=True)

    flood(at(high))

    assert at(low).search_memories(query=QUERY).SerializeToString(deterministic=True) == before


def test_a_write_below_can_displace_what_is_selected_above(at):
    """The limit of law 2: read up to the taint means that lower text competes, whoever wrote it."""
    at(CONFIDENTIAL).save_memory(key="plan", content="the budget of the project is 40,000")
    before = keys(at(CONFIDENTIAL).search_memories(query=QUERY, max_results=3))

    flood(at(PUBLIC))

    assert before == ["plan"]
    assert "plan" not in keys(at(CONFIDENTIAL).search_memories(query=QUERY, max_results=3))


def test_what_was_written_below_says_so(at):
    """The host can tell what was selected apart by its level, and leave out what it does not trust."""
    at(CONFIDENTIAL).save_memory(key="plan", content="the budget of the project is 40,000")
    flood(at(PUBLIC))

    results = at(CONFIDENTIAL).search_memories(query=QUERY, max_results=100).results

    assert {result.memory.key: result.memory.classification for result in results} == {
        "plan": CONFIDENTIAL, **{f"flood{number}": PUBLIC for number in range(30)},
    }  # fmt: skip


def test_a_write_below_does_not_replace_what_is_named_above(at):
    """A name that the attacker knows: the higher version is the one that is seen."""
    at(CONFIDENTIAL).save_memory(key="plan", content="pay the invoice of Ahab")

    at(PUBLIC).save_memory(key="plan", content="pay the invoice of the attacker")

    seen = at(CONFIDENTIAL).get_memory(key="plan").memory
    assert (seen.content, seen.classification) == ("pay the invoice of Ahab", CONFIDENTIAL)
