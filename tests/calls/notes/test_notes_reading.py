"""ListNotes and SearchNotes: what is shown, in which order, in which pages, and what of it is recorded."""

from __future__ import annotations

import uuid

import pytest

from tests.support.answers import (
    CONFIDENTIAL,
    INTERNAL,
    LEVELS,
    PUBLIC,
    RESTRICTED,
    UP,
    events,
    heavy,
    invalid,
    pages,
    refusal,
)

MEMORY, USER = 1, 2
A, B, C = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
INVALID_TOKEN = "INVALID_ARGUMENT PAGE_TOKEN_INVALID"


def add(session, *contents, **fields):
    """Add notes one after the other; return their ids."""
    return [session.add_note(content=content, **fields).note.note_id for content in contents]


def listed(session, **fields):
    return [note.content for page in pages(session.list_notes, **fields) for note in page.notes]


def found(session, query, **fields):
    return [result.note.content for result in session.search_notes(query=query, **fields).results]


def set_limits(host, **limits):
    host.update_agent(agent_id="alice", memory_settings=limits)


# ListNotes.


def test_notes_are_listed_oldest_first(at):
    """Whatever their ids, and however often they were updated."""
    at(PUBLIC).add_note(content="first", note_id=C)
    at(PUBLIC).add_note(content="second", note_id=A)
    at(PUBLIC).add_note(content="third", note_id=B)
    at(PUBLIC).update_note(content="first, newer", note_id=C)

    assert listed(at(PUBLIC)) == ["first, newer", "second", "third"]


def test_a_version_over_a_lower_one_stands_where_that_stood(at):
    at(PUBLIC).add_note(content="first", note_id=A)
    add(at(PUBLIC), "second")
    add(at(INTERNAL), "third")
    at(INTERNAL).update_note(content="first, from above", note_id=A)

    assert listed(at(INTERNAL)) == ["first, from above", "second", "third"]


def test_each_level_lists_itself_and_what_is_below(at):
    for level in LEVELS:
        add(at(level), level.name)

    assert {level: listed(at(level)) for level in LEVELS} == {
        level: [lower.name for lower in LEVELS if lower <= level] for level in LEVELS
    }


@pytest.mark.parametrize(("low", "high"), UP)
def test_each_note_is_listed_once_at_its_highest_visible_version(at, low, high):
    at(low).add_note(content="low", note_id=A)
    at(high).update_note(content="high", note_id=A)

    assert (listed(at(high)), listed(at(low))) == (["high"], ["low"])


def test_only_the_tier_asked_for_is_listed_and_none_means_the_agents_notes(at):
    add(at(PUBLIC), "memory")
    add(at(PUBLIC), "user", tier=USER)

    assert [listed(at(PUBLIC), tier=tier) for tier in (0, MEMORY, USER)] == [["memory"], ["memory"], ["user"]]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pages_are_complete_and_in_order(at, size):
    """Also where a page meets notes of several levels, shadowed and not, and notes of one time."""
    for number in range(8):
        at(PUBLIC).add_note(content=f"{number:02}", note_id=str(uuid.UUID(int=100 - number)))
    at(PUBLIC).edit_notes(edits=[{"add": {"content": f"{number:02}"}} for number in range(8, 14)])
    for number in (0, 5):
        at(INTERNAL).update_note(content=f"{number:02}", note_id=str(uuid.UUID(int=100 - number)))

    expected = [f"{number:02}" for number in range(14)]
    assert listed(at(RESTRICTED), page_size=size) == listed(at(PUBLIC), page_size=size) == expected


def test_the_last_page_has_no_token(at):
    add(at(PUBLIC), "a", "b")
    add(at(PUBLIC), "c", tier=USER)

    assert at(PUBLIC).list_notes(page_size=2).next_page_token == ""
    assert at(PUBLIC).list_notes(page_size=1).next_page_token != ""


@pytest.fixture(scope="module")
def crowd(shared):
    """A session whose agent has 260 notes that all match `whale`."""
    session = shared.session(PUBLIC, tenant="crowd-of-notes")
    shared.host("crowd-of-notes").update_agent(agent_id="alice", memory_settings={"memory_char_limit": 10_000})
    for begin in range(0, 260, 65):
        session.edit_notes(edits=[{"add": {"content": f"whale {n}"}} for n in range(begin, begin + 65)])
    return session


@pytest.mark.parametrize(("asked", "given"), [(0, 50), (1, 1), (250, 250), (251, 250), (2**31 - 1, 250)])
def test_a_page_has_50_notes_by_default_and_250_at_most(crowd, asked, given):
    assert len(crowd.list_notes(page_size=asked).notes) == given


@pytest.mark.parametrize(("asked", "given"), [(0, 10), (1, 1), (100, 100), (101, 100), (2**31 - 1, 100)])
def test_a_search_returns_10_notes_by_default_and_100_at_most(crowd, asked, given):
    assert len(crowd.search_notes(query="whale", max_results=asked).results) == given


def test_every_page_says_what_all_notes_take(crowd):
    """The usage is the tier's, not the page's."""
    answers = pages(crowd.list_notes, page_size=100)

    assert len({page.usage.used_chars for page in answers}) == 1
    assert answers[0].usage.used_chars == len("\n§\n".join(f"whale {number}" for number in range(260)))
    assert crowd.search_notes(query="whale").usage == crowd.search_notes(query="zebra").usage == answers[0].usage


@pytest.mark.parametrize(("tier", "usage"), [(MEMORY, (MEMORY, 5, 2200)), (USER, (USER, 9, 1375))])
def test_the_usage_is_that_of_the_tier_asked_for(at, tier, usage):
    add(at(PUBLIC), "whale")
    add(at(PUBLIC), "blue", "ox", tier=USER)

    for answer in (at(PUBLIC).list_notes(tier=tier), at(PUBLIC).search_notes(query="whale", tier=tier)):
        assert (answer.usage.tier, answer.usage.used_chars, answer.usage.limit_chars) == usage


@pytest.mark.parametrize("call", ["list_notes", "search_notes"])
def test_negative_numbers_and_unknown_tiers_are_refused(at, call):
    number = "page_size" if call == "list_notes" else "max_results"
    query = {} if call == "list_notes" else {"query": "x"}

    assert invalid(getattr(at(PUBLIC), call), **{number: -1}, **query) == [number]
    for tier in (3, -1, 2**31 - 1):
        assert invalid(getattr(at(PUBLIC), call), tier=tier, **query) == ["tier"]


@pytest.mark.proof
def test_a_page_ends_early_at_3_mib_and_everything_still_arrives(at, host):
    """C52: 50 notes of 64 KiB are 3.1 MiB, though only 819,350 characters."""
    session = at(PUBLIC)
    set_limits(host, memory_char_limit=1_000_000)
    contents = [f"{number:04}" + heavy(65_532) for number in range(50)]
    add(session, *contents)

    answers = pages(session.list_notes, page_size=250)

    assert max(page.ByteSize() for page in answers) <= 3 * 1024 * 1024
    assert [note.content for page in answers for note in page.notes] == contents
    assert len(answers) == 2


@pytest.mark.proof
def test_the_results_of_a_search_stay_under_3_mib(at, host):
    session = at(PUBLIC)
    set_limits(host, memory_char_limit=1_000_000)
    add(session, *(f"whale {number:02} " + heavy(65_520) for number in range(50)))

    answer = session.search_notes(query="whale", max_results=100)

    assert answer.ByteSize() <= 3 * 1024 * 1024
    assert len(answer.results) > 30


def first_token(session, **fields):
    token = session.list_notes(page_size=1, **fields).next_page_token
    assert token
    return token


def test_c31_the_page_token_of_another_tier_is_refused(at):
    for tier in (MEMORY, USER):
        add(at(PUBLIC), "a", "b", tier=tier)

    for tier, other in ((MEMORY, USER), (USER, MEMORY)):
        assert refusal(at(PUBLIC).list_notes, tier=other, page_token=first_token(at(PUBLIC), tier=tier)) == (
            INVALID_TOKEN
        )


def test_the_page_token_of_no_tier_is_that_of_the_agents_notes(at):
    add(at(PUBLIC), "a", "b")

    answer = at(PUBLIC).list_notes(tier=MEMORY, page_token=first_token(at(PUBLIC)))

    assert [note.content for note in answer.notes] == ["b"]


def test_c31_the_page_token_of_another_session_or_method_is_refused(at, session):
    add(at(PUBLIC), "a", "b")
    for key in ("a", "b"):
        at(PUBLIC).save_memory(key=key, content="x")
    of_memories = at(PUBLIC).list_memories(page_size=1).next_page_token

    assert refusal(session(PUBLIC).list_notes, page_token=first_token(at(PUBLIC))) == INVALID_TOKEN
    assert refusal(at(PUBLIC).list_notes, page_token=of_memories) == INVALID_TOKEN
    assert refusal(at(PUBLIC).list_memories, page_token=first_token(at(PUBLIC))) == INVALID_TOKEN


@pytest.mark.parametrize("token", ["x", "AAAA", "=", "நினைவு", "A" * 4096, " "])
def test_a_malformed_page_token_is_refused(at, token):
    assert refusal(at(PUBLIC).list_notes, page_token=token) == INVALID_TOKEN


@pytest.mark.parametrize(("low", "high"), UP)
def test_c31_a_page_token_from_before_a_raise_says_so(session, host, low, high):
    reader = session(low)
    add(reader, "a", "b")
    token = first_token(reader)
    host.raise_taint(session_id=reader.session_id, taint=high)

    assert refusal(reader.list_notes, page_size=1, page_token=token) == "ABORTED TAINT_CHANGED"


def test_a_list_continues_after_a_note_that_was_deleted_meanwhile(at):
    first, *_ = add(at(PUBLIC), "a", "b", "c")
    token = first_token(at(PUBLIC))
    at(PUBLIC).delete_note(note_id=first)

    assert [note.content for note in at(PUBLIC).list_notes(page_token=token).notes] == ["b", "c"]


def test_a_list_that_has_become_shorter_ends(at):
    """Nothing is left after the last page that was seen."""
    ids = add(at(PUBLIC), "a", "b")
    token = first_token(at(PUBLIC))
    at(PUBLIC).delete_note(note_id=ids[1])
    answer = at(PUBLIC).list_notes(page_token=token)

    assert (list(answer.notes), answer.next_page_token, answer.classification) == ([], "", PUBLIC)


def test_c09_each_answer_has_the_join_of_what_it_holds(at):
    for level in (PUBLIC, RESTRICTED, INTERNAL):
        add(at(level), f"whale {level.name}")

    assert [page.classification for page in pages(at(RESTRICTED).list_notes, page_size=1)] == [1, 4, 2]
    assert at(RESTRICTED).list_notes().classification == RESTRICTED
    assert at(CONFIDENTIAL).list_notes().classification == INTERNAL
    assert at(CONFIDENTIAL).search_notes(query="whale").classification == INTERNAL
    assert at(RESTRICTED).search_notes(query="public").classification == PUBLIC


@pytest.mark.parametrize("level", LEVELS)
def test_the_classification_of_nothing_is_public(at, level):
    assert at(level).list_notes().classification == PUBLIC
    assert at(level).search_notes(query="whale").classification == PUBLIC


@pytest.mark.parametrize(("low", "high"), UP)
def test_c30_an_answer_is_the_same_bytes_whatever_is_above(at, low, high):
    """Pages, searches and usage."""
    ids = add(at(low), "whale a", "whale b", "whale c")

    def answers():
        listed = pages(at(low).list_notes, page_size=2)
        return [
            answer.SerializeToString(deterministic=True) for answer in (*listed, at(low).search_notes(query="whale"))
        ]

    before = answers()
    add(at(high), "whale d", "whale whale whale")
    at(high).update_note(content="whale above", note_id=ids[0])

    assert answers() == before


# SearchNotes.


def test_notes_are_found_by_words(at):
    add(at(PUBLIC), "a blue whale", "a zebra")

    assert found(at(PUBLIC), "whale") == ["a blue whale"]
    assert found(at(PUBLIC), "zebra whale") == found(at(PUBLIC), "whale zebra")
    assert found(at(PUBLIC), "lion") == []


def test_a_result_has_the_note_a_score_and_a_snippet(at):
    note = at(PUBLIC).add_note(content="a blue whale").note
    (result,) = at(PUBLIC).search_notes(query="whale").results

    assert (result.note, result.snippet) == (note, "a blue whale")
    assert result.score > 0
    assert at(PUBLIC).search_notes(query="whale").semantic is False


def test_a_search_finds_only_the_tier_asked_for(at):
    add(at(PUBLIC), "whale memory")
    add(at(PUBLIC), "whale user", tier=USER)

    assert [found(at(PUBLIC), "whale", tier=tier) for tier in (0, MEMORY, USER)] == [
        ["whale memory"],
        ["whale memory"],
        ["whale user"],
    ]


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_shadowed_version_is_never_found(at, low, high):
    """Not by its words, and not in its tier when the version above is in the other one."""
    at(high).add_note(content="lion", note_id=B, tier=USER)
    at(low).add_note(content="whale", note_id=A)
    at(low).add_note(content="whale too", note_id=B)
    at(high).update_note(content="zebra", note_id=A)

    assert found(at(high), "whale") == found(at(high), "whale", tier=USER) == []
    assert (found(at(high), "zebra"), found(at(high), "lion", tier=USER)) == (["zebra"], ["lion"])
    assert sorted(found(at(low), "whale")) == ["whale", "whale too"]


def test_hidden_matches_take_no_place_in_the_limit(at):
    add(at(RESTRICTED), *(f"whale {number}" for number in range(20)))
    add(at(PUBLIC), "one whale in a long text")

    assert found(at(PUBLIC), "whale", max_results=5) == ["one whale in a long text"]


def test_matches_of_the_other_tier_take_no_place_in_the_limit(at):
    add(at(PUBLIC), *(f"whale {number}" for number in range(20)))
    add(at(PUBLIC), "one whale in a long text", tier=USER)

    assert found(at(PUBLIC), "whale", tier=USER, max_results=5) == ["one whale in a long text"]


def test_what_was_deleted_is_not_found(at):
    (note_id,) = add(at(PUBLIC), "whale")
    at(PUBLIC).delete_note(note_id=note_id)

    assert found(at(PUBLIC), "whale") == []


def test_neither_memories_nor_other_agents_notes_are_found(at, session):
    at(PUBLIC).save_memory(key="whale", content="whale")
    add(session(PUBLIC, agent_id="bob"), "whale of another")

    assert (found(at(PUBLIC), "whale"), listed(at(PUBLIC))) == ([], [])


@pytest.mark.parametrize("query", ["user-name", "it's", "C++", '"', "a AND", "bo*", "%", "_", "\\", "'; DROP", "\x01"])
def test_nothing_in_a_query_is_syntax(at, query):
    add(at(PUBLIC), "books")

    assert found(at(PUBLIC), query) == []


@pytest.mark.parametrize("query", ["", " ", "\t\n", "\0", "x" * 1025])
def test_a_blank_query_is_refused_and_one_that_is_too_long(at, query):
    assert invalid(at(PUBLIC).search_notes, query=query) == ["query"]


# What is recorded.


@pytest.mark.parametrize("level", LEVELS)
def test_reads_are_recorded_from_confidential_up_with_exactly_what_they_showed(at, host, level):
    """Not counted: shadowed versions, the other tier, what is not on the page."""
    at(PUBLIC).add_note(content="whale below", note_id=A)
    add(at(PUBLIC), "whale user", tier=USER)
    if level > PUBLIC:
        at(level).update_note(content="whale above", note_id=A)
    add(at(level), "whale two", "zebra")

    at(level).list_notes()
    at(level).list_notes(page_size=1)
    at(level).list_notes(tier=USER)
    at(level).search_notes(query="whale")
    at(level).search_notes(query="whale", max_results=1)
    at(level).search_notes(query="below")

    reads = [event for event in events(host) if event.method in ("ListNotes", "SearchNotes")]

    expected = [
        ("ListNotes", 3), ("ListNotes", 1), ("ListNotes", 1), ("SearchNotes", 2), ("SearchNotes", 1),
        ("SearchNotes", 0),
    ]  # fmt: skip
    assert [(event.method, event.result_count) for event in reads] == (expected if level >= CONFIDENTIAL else [])
    assert {(event.classification, event.kind, event.outcome) for event in reads} == (
        {(level, 2, "OK")} if level >= CONFIDENTIAL else set()
    )


def test_a_read_of_one_note_names_its_version(at, host):
    at(CONFIDENTIAL).add_note(content="one", note_id=A)
    at(CONFIDENTIAL).update_note(content="two", note_id=A)
    at(CONFIDENTIAL).list_notes()
    at(CONFIDENTIAL).search_notes(query="two")

    *_, written, listing, search = [event for event in events(host) if event.kind == 2]

    assert {(read.item_id, read.revision) for read in (listing, search)} == {(written.item_id, 2)}


@pytest.mark.parametrize(("rpc", "fields"), [("ListNotes", {}), ("SearchNotes", {"query": "whale"})])
def test_a_read_that_cannot_be_recorded_is_not_answered(service, rpc, fields):
    session = service.session(CONFIDENTIAL)
    session.add_note(content="whale")
    with service.database.as_owner() as owner:
        owner.execute("REVOKE INSERT ON muniment_confidential.audit FROM muniment_confidential")

    assert session.observe(rpc, **fields).code.name == "INTERNAL"
