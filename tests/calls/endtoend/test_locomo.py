"""1,210 facts about nine people, at four levels: what each session sees is what the file says it must."""

from __future__ import annotations

import time
from collections import Counter
from itertools import groupby

import pytest

from muniment import Classification, MemoryNotFound, SearchResults
from tests.calls.endtoend.locomo import Fact, highest

pytestmark = pytest.mark.proof

PAGE = 17
FOUND_FLOOR = 0.99
"""Of the facts a session sees, the share that its own rarest words must bring among the top 10. Measured: all."""


def as_fact(agent_id, memory):
    """A memory, as the model has it."""
    (tag,) = memory.tags
    return Fact(agent_id, memory.key, memory.content, tag, memory.classification)


def test_lists_hold_what_is_visible_in_order_each_key_once(loaded):
    """All pages of every session, and every tag: shadow first, then filter, then count; each page says its join."""

    def look(at, session):
        seen = loaded.model.seen(*at)
        pages = pages_of(session)
        assert [as_fact(at[0], memory) for page in pages for memory in page] == list(seen.values())
        assert {len(page) for page in pages[:-1]} <= {PAGE}
        assert 0 < len(pages[-1]) <= PAGE
        for page in pages:
            assert page.classification == highest(memory.classification for memory in page)
        return {"listed": len(seen), "pages": len(pages), "lists by tag": list_by_tag(at, session)}

    def list_by_tag(at, session):
        tags = sorted({fact.tag for fact in loaded.model.of(at[0])})
        for tag in tags:
            expected = [fact for fact in loaded.model.seen(*at).values() if fact.tag == tag]
            page = session.list_memories_page(tag, page_size=250)
            assert [as_fact(at[0], memory) for memory in page] == expected
            assert page.classification == highest(fact.level for fact in expected)
        return len(tags)

    loaded.look(look)


def pages_of(session):
    pages = [session.list_memories_page(page_size=PAGE)]
    while pages[-1].next_page_token:
        pages.append(session.list_memories_page(page_size=PAGE, page_token=pages[-1].next_page_token))
    return pages


def test_every_key_is_its_highest_visible_version_or_as_if_it_never_existed(loaded):
    def look(at, session):
        counted = Counter[str]()
        seen = loaded.model.seen(*at)
        never = failure_of(session, "no such key")
        for key in loaded.model.keys(at[0]):
            if key in seen:
                assert as_fact(at[0], session.get_memory(key)) == seen[key]
                counted["got"] += 1
            else:
                assert failure_of(session, key) == never
                counted["NOT_FOUND, as if never saved"] += 1
        return counted

    loaded.look(look)


def failure_of(session, key):
    with pytest.raises(MemoryNotFound) as failure:
        session.get_memory(key)
    return failure.value.summary, failure.value.code, failure.value.reason


def test_searches_find_what_is_visible_and_never_anything_else(loaded):
    """Every fact is searched for by its own rarest words from every level, also from where it is above or shadowed."""

    def look(at, session):
        counted = Counter[str]()
        seen = loaded.model.seen(*at)
        for fact in loaded.model.of(at[0]):
            found = session.search_memories(loaded.model.query_for(fact))
            facts = checked(at[0], found, seen)
            counted["searches"] += 1
            if seen.get(fact.key) == fact:
                counted["visible"] += 1
                counted["found"] += fact in facts
                counted["found first"] += facts[:1] == [fact]
            else:
                counted["above or shadowed, not found"] += 1
        return counted

    counted = loaded.look(look)
    assert counted["found"] >= FOUND_FLOOR * counted["visible"]


def checked(agent_id: str, found: SearchResults, seen) -> list[Fact]:
    """The facts of an answer, after its form is checked: each one visible, the best first, the join right."""
    facts = [as_fact(agent_id, result.memory) for result in found]
    assert all(seen.get(fact.key) == fact for fact in facts)
    assert len({fact.key for fact in facts}) == len(facts) <= 10
    assert [result.score for result in found] == sorted((result.score for result in found), reverse=True)
    for _, equals in groupby(found, key=lambda result: result.score):
        keys = [result.memory.key for result in equals]
        assert keys == sorted(keys)
    assert found.classification == highest(fact.level for fact in facts)
    return facts


def test_every_save_left_one_audit_row_at_its_level(loaded):
    events = [event for event in loaded.host.list_audit_events(page_size=250) if event.method == "SaveMemory"]

    assert Counter((event.agent_id, event.classification, event.outcome) for event in events) == Counter(
        (fact.agent_id, fact.level, "OK") for fact in loaded.model.facts
    )
    assert {event.revision for event in events} == {1}


def test_nothing_was_left_out(loaded, capsys):
    """The last test: it also prints what was loaded and found, and how long it took."""
    took = time.monotonic() - loaded.begun
    with capsys.disabled():
        print(f"\n{summary(loaded)}\n{loaded.seconds_to_save:.1f} s to start and save, {took:.1f} s in all")
    assert len(loaded.model.facts) == 1210


def summary(loaded) -> str:
    """Facts saved and seen by level, then what was counted on the way."""
    model = loaded.model
    lines = [f"{'level':14} saved   seen  shadowed"]
    for level in Classification:
        saved = sum(fact.level == level for fact in model.facts)
        seen = sum(len(model.seen(agent_id, level)) for agent_id in model.agents)
        shadowed = sum(fact.level.can_flow_to(level) for fact in model.facts) - seen
        lines.append(f"{level.name:14} {saved:5,} {seen:6,} {shadowed:9,}")
    lines += [f"{count:7,} {what}" for what, count in loaded.counted.items()]
    return "\n".join(lines)
