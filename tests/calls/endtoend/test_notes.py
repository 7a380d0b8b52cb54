"""1,210 observations as notes of ten agents: half of them get the room they need, half make do with what there is."""

from __future__ import annotations

from collections import Counter

import pytest

from muniment import Classification, Overrun, Tier, Usage
from tests.calls.endtoend.answers import (
    FOUND_FLOOR,
    PAGE,
    all_pages,
    as_fact,
    as_seen_note,
    assert_joined,
    assert_ranked,
    searched_from,
    seen_notes,
)
from tests.calls.endtoend.locomo import Vocabulary
from tests.calls.endtoend.noteset import SEPARATOR

pytestmark = pytest.mark.proof


def test_budgets_refuse_what_is_too_much_and_say_what_takes_the_room(world):
    """Every edit that was made: the usage afterwards, or how much too much it was and the largest entries."""
    for agent in world.agents:
        assert [answer.actual for answer in agent.answers] == [answer.expected for answer in agent.answers]


def test_what_a_refusal_says_is_enough_to_make_room(world):
    """At once, as checked before: once in each tier at each level, wherever one was refused."""
    for agent in world.agents[1::2]:
        refused = {place_of(answer) for answer in agent.answers if isinstance(answer.actual, Overrun)}
        made = [answer for answer in agent.answers if len(answer.edits) > 1]
        assert sorted(place_of(answer) for answer in made if not answer.validate_only) == sorted(refused)
        assert all(isinstance(answer.actual, Usage) for answer in made)
        assert len(refused) >= len(Classification)


def place_of(answer):
    return answer.wish.tier, answer.wish.level


def test_a_limit_that_is_raised_to_what_is_needed_is_enough(world):
    """To the last code point: not one refusal follows in that tier."""
    for agent in world.agents[::2]:
        for tier in Tier:
            wished = [wish.content for wish in agent.companion.wishes if wish.tier == tier]
            assert agent.companion.notes.limits[tier] == len(SEPARATOR.join(wished))
            assert len(agent.companion.notes.seen(tier, Classification.RESTRICTED)) == len(wished)
        assert sum(isinstance(answer.actual, Overrun) for answer in agent.answers) == len(Tier)


def test_notes_are_listed_oldest_first_with_their_usage(world):
    def look(companion, taint, session):
        return sum((list_tier(companion, taint, session, tier) for tier in Tier), Counter[str]())

    def list_tier(companion, taint, session, tier):
        pages = all_pages(lambda token: session.list_notes_page(tier, page_size=PAGE, page_token=token))
        notes = [note for page in pages for note in page]
        assert [as_seen_note(note) for note in notes] == seen_notes(companion, tier, taint)
        assert [note.create_time for note in notes] == sorted(note.create_time for note in notes)
        assert {page.usage for page in pages} == {companion.notes.usage(tier, taint)}
        assert_joined(pages)
        return Counter({"notes listed": len(notes)})

    world.look(look)


def test_searches_of_notes_find_what_is_visible_and_never_anything_else(world):
    """By their own rarest words, in their own tier, also from where they are above or shadowed."""

    def look(companion, taint, session):
        return sum((search_tier(companion, taint, session, tier) for tier in Tier), Counter[str]())

    def search_tier(companion, taint, session, tier):
        counted = Counter[str]()
        versions, seen = companion.notes.versions(tier), seen_notes(companion, tier, taint)
        vocabulary = Vocabulary(version.content for version in versions)
        for version in searched_from(versions, taint):
            answer = session.search_notes(vocabulary.query_for(version.content), tier=tier)
            found = [as_seen_note(result.note) for result in answer]
            assert set(found) <= set(seen)
            assert answer.usage == companion.notes.usage(tier, taint)
            assert_ranked(answer, [note_id for note_id, *_ in found], [level for *_, level in found])
            this = (version.note_id, tier, version.content, version.level)
            counted.update(["searches of notes", *(["notes visible"] if this in seen else [])])
            counted["notes found"] += this in seen and this in found
        return counted

    counted = world.look(look)
    assert counted["notes found"] >= FOUND_FLOOR * counted["notes visible"]


def test_the_same_observations_as_memories_are_beside_the_notes_and_apart(world):
    def look(companion, taint, session):
        expected = list(companion.memories.seen(companion.agent_id, taint).values())
        found = list(session.list_memories(page_size=250))
        assert [as_fact(companion.agent_id, memory) for memory in found] == expected
        return {"memories listed": len(found)}

    world.look(look)
