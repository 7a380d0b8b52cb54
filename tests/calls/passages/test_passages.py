"""Archival passages one by one: StorePassage, GetPassage, DeletePassage, and their expiry."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from tests.support.answers import (
    CONFIDENTIAL,
    LEVELS,
    PAIRS,
    PUBLIC,
    RESTRICTED,
    UP,
    events,
    in_future,
    invalid,
    refusal,
)
from tests.support.concurrency import together
from tests.support.services import failure_of

GONE = "NOT_FOUND PASSAGE_NOT_FOUND"
EXISTS = "ALREADY_EXISTS PASSAGE_EXISTS"
MISMATCH = "FAILED_PRECONDITION WRITE_LEVEL_MISMATCH"
ID = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f0"
NEVER = "11111111-2222-4333-8444-555555555555"


def store(session, content="text", **fields):
    return session.store_passage(content=content, **fields).passage


def get(session, passage_id=ID):
    return session.get_passage(passage_id=passage_id).passage


def get_alone(session, passage_id=ID):
    """The passage without what is said of a newer one below."""
    passage = get(session, passage_id)
    passage.ClearField("newer_below")
    return passage


def all_ids(session):
    return [passage.passage_id for passage in session.list_passages(page_size=250).passages]


# --- Store


@pytest.mark.parametrize("level", LEVELS)
def test_a_passage_is_stored_at_the_taint_with_the_defaults(at, level):
    stored = store(at(level))

    assert (stored.content, stored.classification) == ("text", level)
    assert (list(stored.tags), stored.thread, stored.author) == ([], "", "")
    assert stored.event_time == stored.create_time
    assert not stored.HasField("expire_time")
    assert get(at(level), stored.passage_id) == stored


def test_c16_an_id_made_by_the_server_is_a_random_uuid(at):
    made = [uuid.UUID(store(at(PUBLIC)).passage_id) for _ in range(5)]

    assert len(set(made)) == 5
    assert {each.version for each in made} == {4}


def test_all_that_is_given_is_kept(at):
    later, earlier = in_future(days=1), {"seconds": 1_000_000_000, "nanos": 123_456_000}
    fields = {
        "thread": "t 1",
        "author": "Ann  Ä",
        "tags": [" b", "a", "b"],
        "event_time": earlier,
        "expire_time": later,
    }
    stored = store(at(PUBLIC), passage_id=ID, **fields)

    assert (stored.passage_id, stored.thread, stored.author, list(stored.tags)) == (ID, "t 1", "Ann  Ä", ["b", "a"])
    assert (stored.event_time.seconds, stored.event_time.nanos) == (1_000_000_000, 123_456_000)
    assert stored.expire_time.seconds == later.seconds
    assert get(at(PUBLIC)) == stored


@pytest.mark.parametrize("seconds", [-62135596800, 0, 253402300799])
def test_an_event_may_be_in_any_year(at, seconds):
    """Long ago, and in the future."""
    assert store(at(PUBLIC), event_time={"seconds": seconds}).event_time.seconds == seconds
    assert len(at(PUBLIC).list_passages().passages) == 1


@pytest.mark.parametrize("field", ["event_time", "expire_time"])
@pytest.mark.parametrize("time", [{"seconds": -62135596801}, {"seconds": 2**62}, {"nanos": -1}, {"nanos": 10**9}])
def test_an_invalid_time_is_refused(at, field, time):
    assert invalid(at(PUBLIC).store_passage, content="x", **{field: time}) == [field]


@pytest.mark.parametrize("seconds", [-86400 * 365, -1])
def test_an_expiry_in_the_past_is_refused(at, seconds):
    assert invalid(at(PUBLIC).store_passage, content="x", expire_time=in_future(seconds=seconds)) == ["expire_time"]
    assert all_ids(at(PUBLIC)) == []


@pytest.mark.parametrize(
    "content", ["x", "x" * 262144, "€" * 87381 + "x", "e\u0301\r\n\t\u202e\ufeff\x01 \\u0000 {}\U0010ffff"]
)
def test_a_passage_holds_up_to_256_kib_byte_for_byte(at, content):
    stored = store(at(PUBLIC), content)

    assert stored.content == content
    assert get(at(PUBLIC), stored.passage_id).content == content


@pytest.mark.parametrize("content", ["", "x" * 262145, "€" * 87382, "a\0b"])
def test_another_content_is_refused(at, content):
    assert invalid(at(PUBLIC).store_passage, content=content) == ["content"]


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("thread", " a", "thread"), ("thread", "a\n", "thread"), ("thread", "a" * 257, "thread"),
        ("author", "a\n", "author"), ("thread", "a" * 5000, "thread"), ("author", "a" * 257, "author"),
        ("author", "a\0", "author"),
        ("tags", ["t"] * 33, "tags"), ("tags", ["a", ""], "tags[1]"), ("tags", ["t" * 65], "tags[0]"),
        ("tags", ["a\0"], "tags[0]"), ("passage_id", "x", "passage_id"), ("passage_id", ID + "0", "passage_id"),
        ("passage_id", "{" + ID + "}", "passage_id"), ("passage_id", ID.replace("-", ""), "passage_id"),
        ("passage_id", "urn:uuid:" + ID, "passage_id"),
    ],
)  # fmt: skip
def test_other_fields_are_refused(at, field, value, named):
    assert invalid(at(PUBLIC).store_passage, content="x", **{field: value}) == [named]


@pytest.mark.parametrize("rpc", ["get_passage", "delete_passage"])
@pytest.mark.parametrize("passage_id", ["", "x", ID[:-1], ID + "\n"])
def test_an_invalid_id_is_refused(at, rpc, passage_id):
    assert invalid(getattr(at(PUBLIC), rpc), passage_id=passage_id) == ["passage_id"]


def test_an_id_is_the_same_in_any_case(at):
    stored = store(at(PUBLIC), passage_id=ID.upper())

    assert stored.passage_id == ID
    assert get(at(PUBLIC), ID.upper()) == get(at(PUBLIC), ID) == store(at(PUBLIC), passage_id=ID) == stored


# --- The same id again


@pytest.mark.parametrize("level", LEVELS)
def test_storing_again_under_an_id_returns_what_is_stored(at, host, level):
    first = store(at(level), passage_id=ID, tags=["a"], thread="t", author="A", event_time={"seconds": 1})

    assert store(at(level), passage_id=ID) == first
    assert store(at(level), passage_id=ID, tags=["b"], thread="u", event_time={"seconds": 2}) == first
    assert all_ids(at(level)) == [ID]
    assert [event.revision for event in events(host) if event.method == "StorePassage"] == [1]


@pytest.mark.parametrize("other", ["Text", "text ", "e\u0301"])
def test_another_content_under_an_id_is_refused_and_changes_nothing(at, other):
    first = store(at(PUBLIC), passage_id=ID)

    assert refusal(at(PUBLIC).store_passage, content=other, passage_id=ID) == EXISTS
    assert get(at(PUBLIC)) == first


@pytest.mark.parametrize(("low", "high"), UP)
def test_an_id_that_is_visible_from_below_is_taken(at, low, high):
    """Passages are not overwritten, at no level."""
    first = store(at(low), passage_id=ID)

    assert store(at(high), passage_id=ID) == first
    assert refusal(at(high).store_passage, content="other", passage_id=ID) == EXISTS
    assert get(at(high)) == first


@pytest.mark.parametrize(("low", "high"), UP)
@pytest.mark.parametrize("content", ["text", "other"])
def test_c10_c12_an_id_that_is_taken_above_is_as_one_that_is_free(at, low, high, content):
    """The same bytes, but for the times and the id."""
    above = store(at(high), passage_id=ID)
    taken, free = store(at(low), content, passage_id=ID), store(at(low), content, passage_id=NEVER)

    for stored in (taken, free):
        assert stored.event_time == stored.create_time
        for unlike in ("passage_id", "create_time", "event_time"):
            stored.ClearField(unlike)
    assert taken == free
    assert get_alone(at(high)) == above


@pytest.mark.parametrize(("low", "high"), UP)
def test_of_two_passages_of_one_id_the_higher_is_seen(at, low, high):
    above = store(at(high), "high", passage_id=ID)
    below = store(at(low), "low", passage_id=ID)

    assert (get(at(low)), get_alone(at(high))) == (below, above)
    assert [passage.content for passage in at(high).list_passages().passages] == ["high"]
    assert [passage.content for passage in at(low).list_passages().passages] == ["low"]


def test_under_two_passages_of_one_id_the_higher_decides_on_the_next_one(at):
    high = store(at(RESTRICTED), "high", passage_id=ID)
    store(at(PUBLIC), "low", passage_id=ID)

    assert store(at(RESTRICTED), "high", passage_id=ID) == high
    assert refusal(at(RESTRICTED).store_passage, content="low", passage_id=ID) == EXISTS
    assert store(at(CONFIDENTIAL), "low", passage_id=ID).classification == PUBLIC


def test_storing_one_id_at_once_stores_one_passage(session):
    """All hear of the one that is there."""
    sessions, found = [session(PUBLIC) for _ in range(6)], []
    together(*(lambda own=own: found.append(store(own, passage_id=ID)) for own in sessions))

    assert len(found) == 6
    assert all(passage == found[0] for passage in found)
    assert all_ids(sessions[0]) == [ID]


def test_of_several_contents_under_one_id_at_once_one_is_stored(session):
    sessions, found = [session(PUBLIC) for _ in range(6)], []
    together(
        *(
            lambda own=own, text=str(number): found.append(
                own.observe("StorePassage", content=text, passage_id=ID).code.name
            )
            for number, own in enumerate(sessions)
        )
    )

    assert sorted(found) == ["ALREADY_EXISTS"] * 5 + ["OK"]


# --- Get


@pytest.mark.parametrize(("written", "reader"), PAIRS)
def test_c01_a_passage_is_seen_at_its_level_and_above(at, written, reader):
    stored = store(at(written), passage_id=ID)

    if written <= reader:
        assert get(at(reader)) == stored
    else:
        assert refusal(at(reader).get_passage, passage_id=ID) == GONE


@pytest.mark.parametrize("rpc", ["get_passage", "delete_passage"])
def test_an_id_of_another_agent_looks_like_one_that_never_existed(session, rpc):
    stored = store(session(PUBLIC), passage_id=ID)
    bob = session(RESTRICTED, agent_id="bob")

    assert failure_of(getattr(bob, rpc), passage_id=ID) == failure_of(getattr(bob, rpc), passage_id=NEVER)
    assert get(session(PUBLIC)) == stored


@pytest.mark.parametrize("rpc", ["get_passage", "delete_passage"])
def test_c03_an_id_of_another_tenant_looks_like_one_that_never_existed(shared, tenant, at, rpc):
    stored = store(at(PUBLIC), passage_id=ID)
    stranger = shared.session(RESTRICTED, tenant=tenant + "-other")

    assert failure_of(getattr(stranger, rpc), passage_id=ID) == failure_of(getattr(stranger, rpc), passage_id=NEVER)
    assert get(at(PUBLIC)) == stored


def test_an_id_that_another_agent_has_is_free(session):
    store(session(PUBLIC), "alice's", passage_id=ID)

    assert store(session(PUBLIC, agent_id="bob"), "bob's", passage_id=ID).content == "bob's"
    assert get(session(PUBLIC)).content == "alice's"


# --- Delete


@pytest.mark.parametrize("level", LEVELS)
def test_a_deleted_passage_is_gone(at, level):
    store(at(level), "whale", passage_id=ID)

    assert at(level).delete_passage(passage_id=ID).revealed == 0
    assert refusal(at(level).get_passage, passage_id=ID) == GONE
    assert all_ids(at(level)) == []
    assert list(at(level).search_passages(query="whale").results) == []


def test_a_second_delete_finds_nothing(at):
    store(at(PUBLIC), passage_id=ID)
    at(PUBLIC).delete_passage(passage_id=ID)

    assert refusal(at(PUBLIC).delete_passage, passage_id=ID) == GONE


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_lower_passage_cannot_be_deleted_even_the_second_time(at, low, high):
    stored = store(at(low), passage_id=ID)

    assert [refusal(at(high).delete_passage, passage_id=ID) for _ in range(2)] == [MISMATCH] * 2
    assert get(at(low)) == stored


@pytest.mark.parametrize(("low", "high"), UP)
def test_c13_deleting_what_exists_only_above_is_like_deleting_nothing(at, low, high):
    stored = store(at(high), passage_id=ID)

    assert failure_of(at(low).delete_passage, passage_id=ID) == failure_of(at(low).delete_passage, passage_id=NEVER)
    assert get(at(high)) == stored


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_delete_says_at_which_level_a_lower_passage_is_seen_again(at, low, high):
    store(at(high), "high", passage_id=ID)
    below = store(at(low), "low", passage_id=ID)

    assert at(high).delete_passage(passage_id=ID).revealed == low
    assert get(at(high)) == below
    assert refusal(at(high).delete_passage, passage_id=ID) == MISMATCH


def test_after_a_delete_the_id_is_free(at):
    first = store(at(PUBLIC), passage_id=ID)
    at(PUBLIC).delete_passage(passage_id=ID)
    second = store(at(PUBLIC), "other", passage_id=ID)

    assert second.content == "other"
    assert second.create_time.ToDatetime() > first.create_time.ToDatetime()
    assert get(at(PUBLIC)) == second


def test_a_deleted_passage_is_kept_for_audit(shared, tenant, at):
    store(at(PUBLIC), "first", passage_id=ID)
    at(PUBLIC).delete_passage(passage_id=ID)
    store(at(PUBLIC), "second", passage_id=ID)
    with shared.database.as_owner() as owner:
        kept = owner.execute(
            "SELECT content, delete_time IS NULL FROM muniment_public.item JOIN vault.tenant USING (tenant)"
            " WHERE tenant.name = %s AND kind = 4 ORDER BY item.create_time",
            [tenant],
        ).fetchall()

    assert kept == [("first", False), ("second", True)]


# --- Expiry


@pytest.fixture
def expired(service, clock):
    """A session with one passage `whale`, stored under ID, that is expired."""
    session = service.session(PUBLIC)
    store(session, "whale", passage_id=ID, tags=["a"], thread="t", expire_time=in_future(hours=1))
    clock.advance(hours=2)
    return session


def test_an_expired_passage_is_gone_everywhere(expired):
    assert refusal(expired.get_passage, passage_id=ID) == GONE
    assert refusal(expired.delete_passage, passage_id=ID) == GONE
    for fields in ({}, {"tags": ["a"]}, {"thread": "t"}):
        assert list(expired.list_passages(**fields).passages) == []
        assert list(expired.search_passages(query="whale", **fields).results) == []


def test_an_expired_passage_looks_like_one_that_never_existed(expired):
    for rpc in (expired.get_passage, expired.delete_passage):
        assert failure_of(rpc, passage_id=ID) == failure_of(rpc, passage_id=NEVER)


@pytest.mark.parametrize("content", ["whale", "other"])
def test_c21_storing_an_id_again_after_expiry_makes_a_new_passage(expired, content):
    stored = store(expired, content, passage_id=ID)

    assert (stored.content, list(stored.tags), stored.thread) == (content, [], "")
    assert stored.event_time == stored.create_time
    assert not stored.HasField("expire_time")
    assert get(expired) == stored
    assert all_ids(expired) == [ID]


def test_c21_an_import_stores_it_again_too(expired):
    counts = expired.import_passages({"content": "a"}, {"content": "whale", "passage_id": ID}, {"content": "b"})

    assert (counts.stored_count, counts.existing_count) == (3, 0)
    assert get(expired).content == "whale"


def test_the_expired_passage_is_kept_for_audit(service, expired):
    store(expired, "new", passage_id=ID)
    with service.database.as_owner() as owner:
        kept = owner.execute(
            "SELECT content, delete_time IS NULL AS live, item_id FROM muniment_public.item WHERE kind = 4"
            " ORDER BY create_time"
        ).fetchall()

    assert [(row.content, row.live) for row in kept] == [("whale", False), ("new", True)]
    assert kept[0].item_id != kept[1].item_id


def test_a_passage_is_there_until_it_expires(service, clock):
    session = service.session(PUBLIC)
    stored = store(session, passage_id=ID, expire_time=in_future(hours=2))
    clock.advance(hours=1)

    assert get(session) == stored
    assert refusal(session.store_passage, content="other", passage_id=ID) == EXISTS


def test_when_a_high_passage_expires_the_lower_one_is_seen_again(service, clock):
    low, high = service.session(PUBLIC), service.session(RESTRICTED)
    store(high, "high whale", passage_id=ID, expire_time=in_future(hours=1))
    below = store(low, "low whale", passage_id=ID)
    clock.advance(hours=2)

    assert get(high) == below
    assert [passage.content for passage in high.list_passages().passages] == ["low whale"]
    assert [found.passage.content for found in high.search_passages(query="whale").results] == ["low whale"]
    assert refusal(high.delete_passage, passage_id=ID) == MISMATCH
    assert refusal(high.store_passage, content="high whale", passage_id=ID) == EXISTS


def test_a_delete_reveals_no_expired_passage(service, clock):
    low, high = service.session(PUBLIC), service.session(RESTRICTED)
    store(high, "high", passage_id=ID)
    store(low, "low", passage_id=ID, expire_time=in_future(hours=1))
    clock.advance(hours=2)

    assert high.delete_passage(passage_id=ID).revealed == 0


def test_an_expired_passage_above_does_not_show_below(service, clock):
    low, high = service.session(PUBLIC), service.session(RESTRICTED)
    store(high, "high", passage_id=ID, expire_time=in_future(hours=1))
    clock.advance(hours=2)

    assert store(low, "low", passage_id=ID).content == "low"
    assert store(high, "low", passage_id=ID).classification == PUBLIC


# --- Audit, and the level


@pytest.mark.parametrize("level", LEVELS)
def test_each_write_is_one_event_at_the_level_of_the_session(at, host, level):
    session = at(level)
    for passage_id in (ID, NEVER, ID):
        store(session, passage_id=passage_id)
    session.delete_passage(passage_id=ID)
    found = [event for event in events(host) if event.session_id == session.session_id and event.kind]

    assert [(event.method, event.classification, event.outcome, event.kind, event.revision) for event in found] == [
        ("StorePassage", level, "OK", 4, 1),
        ("StorePassage", level, "OK", 4, 1),
        ("DeletePassage", level, "OK", 4, 1),
    ]
    assert found[0].item_id == found[2].item_id != found[1].item_id


def test_a_delete_at_the_wrong_level_is_an_event_and_a_delete_of_nothing_is_none(at, host):
    store(at(PUBLIC), passage_id=ID)
    failure_of(at(RESTRICTED).delete_passage, passage_id=ID)
    failure_of(at(RESTRICTED).delete_passage, passage_id=NEVER)

    assert [(event.classification, event.outcome) for event in events(host) if event.method == "DeletePassage"] == [
        (RESTRICTED, "WRITE_LEVEL_MISMATCH")
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_a_get_is_recorded_from_confidential_up_and_names_the_passage(at, host, level):
    store(at(PUBLIC), passage_id=ID)
    get(at(level))
    failure_of(at(level).get_passage, passage_id=NEVER)
    (stored,) = [event for event in events(host) if event.method == "StorePassage"]
    found = [event for event in events(host) if event.method == "GetPassage"]

    assert [
        (event.classification, event.kind, event.result_count, event.item_id, event.revision) for event in found
    ] == ([(level, 4, 1, stored.item_id, 1), (level, 4, 0, "", 0)] if level >= CONFIDENTIAL else [])


def test_no_audit_row_no_effect(service):
    session = service.session(PUBLIC)
    stored = store(session, passage_id=ID)
    with service.database.as_owner() as owner:
        owner.execute("REVOKE INSERT ON muniment_public.audit FROM muniment_public")

    answers = [
        refusal(session.store_passage, content="new"),
        refusal(session.delete_passage, passage_id=ID),
        refusal(lambda: session.import_passages({"content": "new"})),
    ]

    assert answers == ["INTERNAL INTERNAL"] * 3
    assert list(session.list_passages().passages) == [stored]


@pytest.mark.parametrize(("low", "high"), UP)
def test_c40_what_is_stored_after_a_raise_is_at_the_new_level(session, host, low, high):
    """Also through a server that remembers the session as it was."""
    own = session(low)
    store(own, "before")
    host.raise_taint(session_id=own.session_id, taint=high)

    assert store(own, "after").classification == high
    assert [passage.content for passage in session(low).list_passages().passages] == ["before"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_the_level_is_forced(at, low, high):
    store(at(high), passage_id=ID)

    assert all_ids(at(low)) == []
    assert refusal(at(low).get_passage, passage_id=ID) == GONE


@pytest.mark.parametrize("rpc", ["store_passage", "get_passage", "list_passages", "search_passages", "delete_passage"])
def test_passages_are_not_for_hosts(host, rpc):
    assert refusal(getattr(host, rpc)) == "PERMISSION_DENIED PRINCIPAL_NOT_ALLOWED"


def test_when_the_agent_is_deleted_its_passages_are_gone(host, session):
    store(session(PUBLIC), passage_id=ID)
    host.delete_agent(agent_id="alice")

    assert all_ids(session(PUBLIC)) == []
    assert store(session(PUBLIC), "new", passage_id=ID).content == "new"


def test_default_times_follow_the_one_clock(service, clock):
    session = service.session(PUBLIC)
    before = store(session)
    clock.advance(hours=3)
    after = store(session)

    assert after.event_time.ToDatetime() - before.event_time.ToDatetime() > timedelta(hours=3)
