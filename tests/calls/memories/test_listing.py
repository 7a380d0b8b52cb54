"""ListMemories: what is listed, in which order, in which pages."""

from __future__ import annotations

import base64

import pytest

from tests.support.answers import (
    CONFIDENTIAL,
    INTERNAL,
    LEVELS,
    PUBLIC,
    RESTRICTED,
    UP,
    heavy,
    invalid,
    keys,
    pages,
    refusal,
)

INVALID_TOKEN = "INVALID_ARGUMENT PAGE_TOKEN_INVALID"


def save(session, *names, **fields):
    for name in names:
        session.save_memory(key=name, content=fields.get("content", name), tags=fields.get("tags", []))


def all_keys(session, **fields):
    return [key for page in pages(session.list_memories, **fields) for key in keys(page)]


def test_each_level_lists_itself_and_what_is_below(at):
    for level in LEVELS:
        save(at(level), level.name)

    listed = {level: keys(at(level).list_memories()) for level in LEVELS}

    assert listed == {level: sorted(lower.name for lower in LEVELS if lower <= level) for level in LEVELS}


@pytest.mark.parametrize(("low", "high"), UP)
def test_each_key_is_listed_once_at_its_highest_visible_level(at, low, high):
    save(at(low), "plan", content="low")
    save(at(high), "plan", content="high")

    assert [memory.content for memory in at(high).list_memories().memories] == ["high"]
    assert [memory.content for memory in at(low).list_memories().memories] == ["low"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_c06_a_shadowed_version_does_not_resurface_by_its_tag(at, low, high):
    save(at(low), "plan", tags=["urgent"])
    save(at(high), "plan", tags=["done"])

    assert keys(at(high).list_memories(tag="urgent")) == []
    assert keys(at(high).list_memories(tag="done")) == ["plan"]
    assert keys(at(low).list_memories(tag="urgent")) == ["plan"]


def test_memories_are_listed_by_the_bytes_of_their_keys(at):
    names = ["b", "B", "a", "ab", "a b", "Z", "é", "e", "நினைவு", "%", "_", "10", "9", "\U0001f600", "\uffe6"]
    save(at(PUBLIC), *names)

    assert keys(at(PUBLIC).list_memories()) == sorted(names, key=str.encode)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pages_are_complete_and_in_order(at, size):
    """Also where one page meets keys of several levels, shadowed and not."""
    for number in range(14):
        save(at(LEVELS[number % 4]), f"key{number:02}")
        save(at(PUBLIC), f"key{number:02}")

    assert all_keys(at(RESTRICTED), page_size=size) == [f"key{number:02}" for number in range(14)]
    assert all_keys(at(PUBLIC), page_size=size) == [f"key{number:02}" for number in range(14)]


def test_the_last_page_has_no_token(at):
    save(at(PUBLIC), "a", "b")

    assert at(PUBLIC).list_memories(page_size=2).next_page_token == ""


def test_pages_with_a_tag_are_complete(at):
    for number in range(12):
        save(at(PUBLIC), f"key{number:02}", tags=["odd" if number % 2 else "even"])

    assert all_keys(at(PUBLIC), tag="odd", page_size=2) == [f"key{number:02}" for number in range(1, 12, 2)]


@pytest.mark.parametrize(("asked", "given"), [(0, 50), (1, 1), (250, 250), (251, 250), (2**31 - 1, 250)])
def test_a_page_has_50_memories_by_default_and_250_at_most(crowd, asked, given):
    assert len(crowd.list_memories(page_size=asked).memories) == given


@pytest.fixture(scope="module")
def crowd(shared):
    """A session whose agent has 260 memories that all match `whale`."""
    session = shared.session(PUBLIC, tenant="crowd")
    for number in range(260):
        session.save_memory(key=f"key{number:03}", content="whale")
    return session


@pytest.mark.parametrize(("asked", "given"), [(0, 10), (1, 1), (100, 100), (101, 100), (2**31 - 1, 100)])
def test_a_search_returns_10_memories_by_default_and_100_at_most(crowd, asked, given):
    assert len(crowd.search_memories(query="whale", max_results=asked).results) == given


def test_a_negative_page_size_is_refused(at):
    assert invalid(at(PUBLIC).list_memories, page_size=-1) == ["page_size"]


@pytest.mark.proof
def test_a_page_ends_early_at_3_mib_and_everything_still_arrives(at):
    """C52: 52 memories of 128 KiB are 6.5 MiB, more than any client takes."""
    for number in range(52):
        save(at(PUBLIC), f"key{number:03}", content=heavy(131_072))

    found = pages(at(PUBLIC).list_memories, page_size=250)

    assert max(page.ByteSize() for page in found) <= 3 * 1024 * 1024
    assert [key for page in found for key in keys(page)] == [f"key{number:03}" for number in range(52)]
    assert len(found) == 3


@pytest.mark.proof
def test_the_results_of_a_search_stay_under_3_mib(at):
    for number in range(60):
        save(at(PUBLIC), f"key{number:03}", content="whale " + heavy(65_000))

    assert at(PUBLIC).search_memories(query="whale", max_results=100).ByteSize() <= 3 * 1024 * 1024


def test_c09_the_classification_of_a_list_is_the_join_of_what_it_holds(at):
    for level in (PUBLIC, INTERNAL, CONFIDENTIAL):
        save(at(level), level.name)

    page = at(RESTRICTED).list_memories()

    assert page.classification == max(memory.classification for memory in page.memories) == CONFIDENTIAL


def test_c09_each_page_has_its_own_classification(at):
    save(at(PUBLIC), "a")
    save(at(RESTRICTED), "b")

    assert [page.classification for page in pages(at(RESTRICTED).list_memories, page_size=1)] == [1, 4]


@pytest.mark.parametrize("level", LEVELS)
def test_the_classification_of_nothing_is_public(at, level):
    assert at(level).list_memories().classification == PUBLIC
    assert at(level).search_memories(query="whale").classification == PUBLIC


def test_tags_match_exactly_and_case_sensitively(at):
    save(at(PUBLIC), "plan", tags=["Blue Whale", "x%"])

    found = {
        tag: keys(at(PUBLIC).list_memories(tag=tag)) for tag in ("Blue Whale", "blue whale", "Blue", "x%", "x_", "%")
    }

    assert found == {"Blue Whale": ["plan"], "blue whale": [], "Blue": [], "x%": ["plan"], "x_": [], "%": []}


def test_a_tag_is_compared_as_it_is_kept(at):
    """Trimmed and in NFC, like the tag of the memory."""
    save(at(PUBLIC), "plan", tags=["க\u0bca"])

    assert keys(at(PUBLIC).list_memories(tag=" க\u0bc6\u0bbe ")) == ["plan"]


def first_token(session, **fields):
    token = session.list_memories(page_size=1, **fields).next_page_token
    assert token
    return token


def test_c31_a_page_token_with_any_bit_flipped_is_refused(at):
    save(at(PUBLIC), "a", "b")
    token = first_token(at(PUBLIC))
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    number = int.from_bytes(raw)
    changed = [(number ^ (1 << bit)).to_bytes(len(raw)) for bit in range(len(raw) * 8)]

    answers = {
        refusal(at(PUBLIC).list_memories, page_size=1, page_token=base64.urlsafe_b64encode(each).rstrip(b"=").decode())
        for each in changed
    }

    assert answers == {INVALID_TOKEN}


@pytest.mark.parametrize("token", ["x", "AAAA", "=", "நினைவு", "A" * 4096, " "])
def test_a_malformed_page_token_is_refused(at, token):
    assert refusal(at(PUBLIC).list_memories, page_token=token) == INVALID_TOKEN


def test_c31_the_page_token_of_another_session_is_refused(at, session):
    save(at(PUBLIC), "a", "b")

    assert refusal(session(PUBLIC).list_memories, page_token=first_token(at(PUBLIC))) == INVALID_TOKEN


def test_c31_the_page_token_of_another_filter_is_refused(at):
    save(at(PUBLIC), "a", "b", tags=["t"])

    assert refusal(at(PUBLIC).list_memories, tag="t", page_token=first_token(at(PUBLIC))) == INVALID_TOKEN
    assert refusal(at(PUBLIC).list_memories, page_token=first_token(at(PUBLIC), tag="t")) == INVALID_TOKEN


def test_c31_the_page_token_of_another_method_is_refused(host):
    for name in ("a", "b"):
        host.create_agent(agent_id=name)
    token = host.list_agents(page_size=1).next_page_token

    assert refusal(host.list_audit_events, page_token=token) == INVALID_TOKEN


def test_c31_the_page_token_of_another_host_is_refused(shared, host, tenant):
    for name in ("a", "b"):
        host.create_agent(agent_id=name)
    token = host.list_agents(page_size=1).next_page_token

    assert refusal(shared.host(tenant, INTERNAL).list_agents, page_token=token) == INVALID_TOKEN


@pytest.mark.parametrize(("low", "high"), UP)
def test_c31_a_page_token_from_before_a_raise_says_so(session, host, low, high):
    reader = session(low)
    save(reader, "a", "b")
    token = first_token(reader)
    host.raise_taint(session_id=reader.session_id, taint=high)

    assert refusal(reader.list_memories, page_size=1, page_token=token) == "ABORTED TAINT_CHANGED"


def test_the_page_size_may_change_between_pages(at):
    save(at(PUBLIC), "a", "b", "c", "d")

    assert keys(at(PUBLIC).list_memories(page_size=9, page_token=first_token(at(PUBLIC)))) == ["b", "c", "d"]


def test_a_list_continues_after_a_key_that_was_deleted_meanwhile(at):
    """Pages are found by key, not by number: nothing is skipped and nothing comes twice."""
    save(at(PUBLIC), "a", "b", "c")
    token = first_token(at(PUBLIC))
    at(PUBLIC).delete_memory(key="a")

    assert keys(at(PUBLIC).list_memories(page_token=token)) == ["b", "c"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_c30_a_page_is_the_same_bytes_whatever_is_above(at, low, high):
    save(at(low), "a", "c", "e")
    before = [page.SerializeToString(deterministic=True) for page in pages(at(low).list_memories, page_size=2)]
    save(at(high), "a", "b", "c", "d", "f")

    assert [page.SerializeToString(deterministic=True) for page in pages(at(low).list_memories, page_size=2)] == before
