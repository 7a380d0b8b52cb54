"""Searches among so many chunks that words are counted in a sample, which is made small here."""

from __future__ import annotations

import pytest

from muniment_server.search import search
from muniment_server.search.ranking import Term
from tests.support.answers import PUBLIC, UP
from tests.support.searches import SCANS
from tests.support.services import Caller, serving

MANY = 60
QUERY = "whale zebra meeting in the harbour"


@pytest.fixture
def sampled(monkeypatch):
    """Words are counted in 20 chunks, grams in 10, and never exactly when they are in one of them."""
    monkeypatch.setattr(search, "MAX_SAMPLED", 20)
    monkeypatch.setattr(search, "FEW_SAMPLED", 10)
    monkeypatch.setattr(search, "MAX_STEMS_COUNTED", 1)
    monkeypatch.setattr(search, "MAX_GRAMS_COUNTED", 1)


def fill(session, *, start=0):
    for number in range(start, start + MANY):
        words = ["whale", "zebra" * (number % 3 == 0), "the meeting" * (number % 5), "harbour" * (number % 17 == 0)]
        session.save_memory(key=f"k{number}", content=" ".join([*words, f"w{number}"]))


def answer(session):
    return session.search_memories(query=QUERY, max_results=100).SerializeToString(deterministic=True)


def scores(session):
    return [(one.memory.key, one.score) for one in session.search_memories(query=QUERY, max_results=100).results]


def test_words_are_counted_in_a_sample(service, monkeypatch):
    """All the same is found; what it scores is another thing."""
    session = service.session(PUBLIC)
    fill(session)
    exact = scores(session)
    monkeypatch.setattr(search, "MAX_SAMPLED", 20)
    monkeypatch.setattr(search, "FEW_SAMPLED", 10)
    monkeypatch.setattr(search, "MAX_STEMS_COUNTED", 1)

    counted_in_some = scores(session)

    assert {key for key, _ in counted_in_some} == {key for key, _ in exact}
    assert counted_in_some != exact


def test_a_word_that_is_in_no_sample_is_counted(service, sampled):
    session = service.session(PUBLIC)
    fill(session)
    session.save_memory(key="rare", content="a xylophone")

    assert [key for key, _ in scores(session)].count("rare") == 0
    assert [one.memory.key for one in session.search_memories(query="xylophone").results] == ["rare"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_what_is_above_is_in_no_sample(service, sampled, low, high):
    session = service.session(low)
    fill(session)
    before = answer(session)
    above = service.session(high)
    for number in range(40):
        above.save_memory(key=f"high{number}", content=f"{QUERY} {number}")

    assert answer(session) == before


def test_a_sample_does_not_depend_on_ids(service, sampled):
    """The same said to two agents is found alike: ids are random, what is sampled is not."""
    sessions = [service.session(PUBLIC, agent_id=agent) for agent in ("alice", "bob")]
    for session in sessions:
        fill(session)

    assert scores(sessions[0]) == scores(sessions[1])


def test_a_sample_does_not_depend_on_the_plan(database, sampled):
    """Bit for bit, whatever way the rows come."""
    with serving(database) as service:
        session = service.session(PUBLIC)
        fill(session)
        before = answer(session)

    for scan in SCANS:
        with database.as_admin() as admin:
            admin.execute(f"ALTER DATABASE {database.name} SET enable_{scan} = off".encode())
            with serving(database) as service:
                assert (scan, answer(Caller(service.channel, session.token))) == (scan, before)
            admin.execute(f"ALTER DATABASE {database.name} RESET enable_{scan}".encode())


def test_words_that_weigh_nothing_are_found(service, monkeypatch):
    """In more than a million chunks a word that is in all of them comes to no millionth."""
    session = service.session(PUBLIC)
    fill(session)
    monkeypatch.setattr(Term, "weight", lambda *_: 0.0)

    assert [score for _, score in scores(session)] == [0.0] * MANY
