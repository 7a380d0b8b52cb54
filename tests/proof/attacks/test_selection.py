"""Untrusted writes that change what a trusted query selects: selection integrity, arXiv 2606.12290.

Promised: nothing above, and nothing untrusted, changes what a session selects (law 2). Not promised: anything about
what is below. A classification says at which level a text was written, not that it is true, and law 2 goes only upward.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from muniment_server.domain.classification import Label
from muniment_server.process.stop_signal import StopSignal
from tests.support.answers import CONFIDENTIAL, PUBLIC, UP, keys
from tests.support.embedders import embed_by, quick
from tests.support.services import Caller, Outcome, serving

QUERY = "budget of the whale project"
WORDS = ("whale", "budget", "project", "ship", "harbor", "captain", "invoice", "Friday", "hound", "automobile")
THREADS = ("trip", "work", "home")
SELECTIONS = 500
SHOWN_BY_THE_PAPER = 28
"""So many of 499 selections changed in the paper's undefended system."""


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


def _text(dice: random.Random, words: int) -> str:
    return " ".join(dice.choices(WORDS, k=words))


def _remember(session: Caller, dice: random.Random, *, items: int, words: int, name: str) -> None:
    """Items of every kind: in the same words, the same threads, and under the same names."""
    session.save_memories(
        memories=[{"key": f"{name}{number}", "content": _text(dice, words), "tags": ["a"]} for number in range(items)]
    )
    for number in range(items // 4):
        session.add_note(content=f"{_text(dice, words)} {name}{number}")
        session.update_block(label=f"{name}{number}", content=_text(dice, words))
    session.import_passages(
        *({"content": _text(dice, words), "thread": dice.choice(THREADS), "tags": ["a"]} for _ in range(items))
    )


def _selection(dice: random.Random) -> tuple[str, dict[str, Any]]:
    """One way to choose what a model is shown."""
    query = {"query": _text(dice, dice.randint(1, 4)), "max_results": dice.choice((1, 3, 10))}
    page = {"page_size": dice.choice((1, 5, 50))}
    return dice.choice(
        (
            ("SearchMemories", query),
            ("SearchMemories", {**query, "tags": ["a"]}),
            ("SearchNotes", {**query, "tier": 1}),
            ("SearchPassages", query),
            ("SearchPassages", {**query, "thread": dice.choice(THREADS)}),
            ("ListMemories", page),
            ("ListNotes", {"tier": 1}),
            ("ListBlocks", page),
            ("ListPassages", {**page, "thread": dice.choice(THREADS)}),
            ("RenderPrompt", {}),
        )
    )


@pytest.mark.proof
def test_of_five_hundred_selections_of_a_trusted_session_a_flood_changes_none(database):
    """A flood of the terms that are asked for, of neighbors in the threads, and of vectors. Others see it."""
    dice = random.Random(1)
    asked = [_selection(dice) for _ in range(SELECTIONS)]
    with serving(database, embed=quick) as service:
        trusted, untrusted = (service.session(label) for label in (Label.INTERNAL_TRUSTED, Label.INTERNAL))
        service.host().update_agent(agent_id="alice", memory_settings={"memory_char_limit": 100_000})
        _remember(trusted, dice, items=40, words=12, name="plan")

        def selected(session: Caller, count: int = SELECTIONS) -> list[Outcome]:
            embed_by(database, quick, StopSignal())
            return [session.observe(rpc, **fields) for rpc, fields in asked[:count]]

        before, seen_before = selected(trusted), selected(untrusted, 100)
        for label in (Label.PUBLIC, Label.INTERNAL):
            _remember(service.session(label), dice, items=100, words=4, name="plan")
        after, seen_after = selected(trusted), selected(untrusted, 100)

    assert [rpc for (rpc, _), one, other in zip(asked, before, after, strict=True) if one != other] == []
    assert sum(one != other for one, other in zip(seen_before, seen_after, strict=True)) > SHOWN_BY_THE_PAPER
    assert {one.code.name for one in (*before, *seen_after)} == {"OK"}
    assert any(b"plan" in one.response for one in before)
