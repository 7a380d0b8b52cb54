"""2,760 turns of five conversations as the passages of ten agents at four levels."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise

import pytest

from muniment import Classification, ImportCounts, PassageExists, PassageNotFound
from tests.calls.endtoend.answers import (
    ALL,
    FOUND_FLOOR,
    PAGE,
    all_pages,
    as_kept,
    assert_joined,
    assert_ranked,
    searched_from,
)

pytestmark = pytest.mark.proof


def test_passages_are_listed_by_their_time_each_at_its_highest_version(world):
    """All of them in pages, and those with a photo."""

    def look(companion, taint, session):
        seen = list(companion.seen_passages(taint).values())
        pages = all_pages(lambda token: session.list_passages_page(page_size=PAGE, page_token=token))
        assert [as_kept(passage) for page in pages for passage in page] == seen
        assert {len(page) for page in pages[:-1]} <= {PAGE}
        assert_joined(pages)
        photos = list(session.list_passages(tags=["photo"], page_size=250))
        assert [as_kept(passage) for passage in photos] == [kept for kept in seen if "photo" in kept.tags]
        return {"passages listed": len(seen), "pages": len(pages)}

    world.look(look)


def test_a_thread_is_a_session_of_the_conversation(world):
    """A version in another thread does not uncover the one that it shadows."""

    def look(companion, taint, session):
        seen = companion.seen_passages(taint).values()
        threads = sorted({kept.thread for kept in companion.passages})
        for thread in threads:
            page = session.list_passages_page(thread=thread, page_size=250)
            assert [as_kept(passage) for passage in page] == [kept for kept in seen if kept.thread == thread]
            assert_joined([page])
        return {"lists by thread": len(threads)}

    world.look(look)


def test_a_range_of_time_holds_its_start_and_not_its_end(world):
    """From each session to the next. A version at another time does not uncover the one that it shadows."""

    def look(companion, taint, session):
        seen = companion.seen_passages(taint).values()
        starts = [next(turns).time for _, turns in groupby(companion.talk.turns, key=lambda turn: turn.session)]
        for start, end in pairwise(starts):
            found = list(session.list_passages(start_time=start, end_time=end, page_size=250))
            assert [as_kept(passage) for passage in found] == [kept for kept in seen if start <= kept.event_time < end]
        return {"lists by time": len(starts) - 1}

    world.look(look)


def test_every_passage_is_its_highest_visible_version_or_as_if_it_never_existed(world):
    """Every session gets an eighth of the ids, each another one."""

    def look(companion, taint, session):
        counted = Counter[str]()
        seen = companion.seen_passages(taint)
        ids = sorted({kept.passage_id for kept in companion.passages})
        for passage_id in ids if ALL else ids[taint - 1 :: 8]:
            if passage_id in seen:
                assert as_kept(session.get_passage(passage_id)) == seen[passage_id]
                counted["passages got"] += 1
            else:
                assert_not_found(session, passage_id)
                counted["passages not found"] += 1
        return counted

    world.look(look)


def assert_not_found(session, passage_id):
    with pytest.raises(PassageNotFound):
        session.get_passage(passage_id)


def test_an_import_may_be_made_again_and_puts_nothing_else_under_a_visible_id(world):
    """Each agent's, at one level: what is there is there, and what is shadowed is other content."""
    for number, agent in enumerate(world.agents):
        taint = Classification(1 + number % 4)
        session, seen = agent.sessions[taint], agent.companion.seen_passages(taint)
        own = [kept for kept in agent.companion.passages if kept.level == taint]
        assert agent.imports[taint] == ImportCounts(stored_count=len(own), existing_count=0)
        assert session.import_passages(kept.new for kept in own) == ImportCounts(0, len(own))
        world.counted["passages imported again"] += len(own)

        visible = [kept for kept in agent.companion.passages if kept.level <= taint]
        for shadowed in [kept for kept in visible if seen[kept.passage_id] != kept][:3]:
            with pytest.raises(PassageExists) as refused:
                session.import_passages([own[0].new, shadowed.new])
            assert refused.value.progress == ImportCounts(0, 1)
            world.counted["other contents refused"] += 1


@pytest.mark.sampled
def test_searches_of_passages_find_what_is_visible_and_never_anything_else(world):
    """By their own rarest words, also from where they are above or shadowed."""

    def look(companion, taint, session):
        counted = Counter[str]()
        seen = companion.seen_passages(taint)
        for kept in searched_from(companion.passages, taint):
            if query := companion.vocabulary.query_for(kept.content):
                found = [as_kept(result.passage) for result in checked(session.search_passages(query))]
                assert all(seen.get(one.passage_id) == one for one in found)
                visible = seen.get(kept.passage_id) == kept
                counted.update(["searches of passages", *(["passages visible"] if visible else [])])
                counted["passages found"] += visible and kept in found
        return counted

    counted = world.look(look)
    assert counted["passages found"] >= FOUND_FLOOR * counted["passages visible"]


def checked(found):
    passages = [result.passage for result in found]
    assert_ranked(found, [one.passage_id for one in passages], [one.classification for one in passages])
    return found
