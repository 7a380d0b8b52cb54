"""What a page shows of many items and conversations."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from muniment import Agent, AgentLimits, AgentStorage, AuditEvent, Classification, MemorySettings, Session
from muniment.cli.page.conversations import MAX_CONVERSATIONS, Span, conversations_of, shown_of
from muniment.cli.page.items import MAX_CHARS, MAX_NAMES, Items, Kind, Version
from muniment.cli.page.reading import MAX_EVENTS, AgentPage
from muniment.cli.page.rendering import Segment, segments
from muniment.cli.page.show import show

PUBLIC, INTERNAL, CONFIDENTIAL, _ = Classification
NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


def minutes(number: float) -> datetime:
    return NOON + timedelta(minutes=number)


def version(name: str, level: Classification, *, place: float = 0) -> Version:
    return Version(name, level, "text", 0, 4, NOON, (place, name))


def session(name: str, *, opened: float = 0, closed: float | None = None, conversation: str = "") -> Session:
    close_time = None if closed is None else minutes(closed)
    return Session(name, "ada", conversation or name, PUBLIC, minutes(opened), minutes(600), close_time)


def event(
    method: str, session_id: str, level: Classification, time: float, *, outcome: str = "OK", reason: str = ""
) -> AuditEvent:
    return AuditEvent("", minutes(time), level, "ada", session_id, "key", method, outcome, None, None, None, 0, reason)


def test_a_shown_name_has_its_shadowed_version_however_late_that_is_in_its_own_list():
    kind = Kind("Passages", [PUBLIC, INTERNAL])
    kind.add(version("both", INTERNAL, place=-1))
    for number in range(MAX_NAMES):
        kind.add(version(f"other {number:03}", PUBLIC))
    kind.add(version("both", PUBLIC))

    assert [each.level for each in kind.shown[0]] == [INTERNAL, PUBLIC]
    assert (len(kind.shown), kind.names) == (MAX_NAMES, MAX_NAMES + 1)
    assert (kind.counts[PUBLIC].items, kind.counts[PUBLIC].shadowed) == (MAX_NAMES + 1, 1)


def test_a_level_from_before_the_events_that_were_read_is_unknown():
    events = [event("RaiseTaint", "a", CONFIDENTIAL, 5)]

    (conversation,) = conversations_of([session("a", closed=9)], events, minutes(60))

    assert conversation.spans == (
        Span(None, minutes(0), minutes(5)),
        Span(CONFIDENTIAL, minutes(5), minutes(9)),
    )


def test_a_reset_ends_the_sessions_before_it_begins_again_at_public():
    events = [
        event("ResetSession", "b", PUBLIC, 7),
        event("ResetSession", "a", CONFIDENTIAL, 7, outcome="CLOSED", reason="a new day"),
        event("OpenSession", "a", CONFIDENTIAL, 0),
    ]
    sessions = [session("b", opened=7, conversation="trip"), session("a", closed=7, conversation="trip")]

    (conversation,) = conversations_of(sessions, events, minutes(9))

    assert [step.what for step in conversation.steps] == ["opened", "closed by the reset", "reset"]
    assert [span.level for span in conversation.spans] == [CONFIDENTIAL, PUBLIC]
    assert (conversation.is_open, conversation.spans[-1].end) == (True, minutes(9))


def test_a_refused_raise_is_a_step_and_changes_no_level():
    events = [
        event("RaiseTaint", "a", CONFIDENTIAL, 3, outcome="CEILING_EXCEEDED"),
        event("OpenSession", "a", PUBLIC, 0),
    ]

    (conversation,) = conversations_of([session("a", closed=9)], events, minutes(60))

    assert [step.refusal for step in conversation.steps] == [None, "CEILING_EXCEEDED"]
    assert conversation.spans == (Span(PUBLIC, minutes(0), minutes(9)),)


def test_conversations_that_only_read_do_not_hide_one_whose_taint_has_changed():
    quiet = [session(f"quiet {number}", opened=number + 1) for number in range(MAX_CONVERSATIONS + 5)]
    events = [event("RaiseTaint", "old", INTERNAL, 0.5), event("OpenSession", "old", PUBLIC, 0)]

    shown = shown_of(conversations_of([*reversed(quiet), session("old")], events, minutes(60)))

    assert len(shown) == MAX_CONVERSATIONS + 1
    assert shown[-1].conversation_id == "old"


def test_the_conversations_in_which_pages_are_read_do_not_hide_others():
    looks = [session(f"console-{number}", opened=number + 1) for number in range(MAX_CONVERSATIONS + 5)]

    shown = shown_of(conversations_of([*reversed(looks), session("chat")], [], minutes(60)))

    assert len(shown) == MAX_CONVERSATIONS
    assert shown[-1].conversation_id == "chat"


def test_the_shortest_span_is_visible_and_all_stay_on_the_axis():
    spans = [
        Span(PUBLIC, minutes(0), minutes(99.98)),
        Span(INTERNAL, minutes(99.98), minutes(99.99)),
        Span(CONFIDENTIAL, minutes(99.99), minutes(100)),
    ]

    assert segments(spans, (minutes(0), minutes(100))) == [
        Segment(PUBLIC, "0.00", "98.00"),
        Segment(INTERNAL, "98.00", "1.00"),
        Segment(CONFIDENTIAL, "99.00", "1.00"),
    ]


AGENT = Agent("ada", "", "", CONFIDENTIAL, MemorySettings(), NOON, NOON, AgentLimits())
EMPTY = AgentPage(AGENT, CONFIDENTIAL, NOON, Items([PUBLIC, INTERNAL]), [], False, [], False)
RAISED = conversations_of([session("a", closed=9)], [event("RaiseTaint", "a", INTERNAL, 5)], minutes(60))
QUIET = replace(RAISED[0], steps=(), spans=(), taint=PUBLIC)


def with_an_item() -> Items:
    items = Items([PUBLIC, INTERNAL])
    items.memories.add(version("plan", INTERNAL))
    return items


@pytest.mark.parametrize(
    "page",
    [
        replace(EMPTY, items=with_an_item()),
        replace(EMPTY, agent=replace(AGENT, storage=(AgentStorage(INTERNAL, 0, 7, False),))),
        replace(EMPTY, events=[event("EraseItems", "", INTERNAL, 0)]),
        replace(EMPTY, conversations=RAISED),
        replace(EMPTY, conversations=[replace(RAISED[0], steps=(), spans=(), taint=INTERNAL)]),
    ],
    ids=["an item", "revisions", "an event", "a raise", "a taint"],
)
def test_each_part_counts_for_the_level_of_the_page(page):
    assert (EMPTY.classification, page.classification) == (PUBLIC, INTERNAL)


@pytest.mark.parametrize(
    "page",
    [
        replace(
            EMPTY, events=[*[event("GetAgent", "", PUBLIC, 0)] * MAX_EVENTS, event("EraseItems", "", CONFIDENTIAL, 0)]
        ),
        replace(EMPTY, conversations=[*[QUIET] * MAX_CONVERSATIONS, replace(QUIET, taint=CONFIDENTIAL)]),
        replace(EMPTY, older_events=True),
        replace(EMPTY, older_sessions=True),
    ],
    ids=["an event", "a conversation", "older events", "older sessions"],
)
def test_what_is_counted_and_not_shown_counts_for_the_level_of_the_page(page):
    """The number of events and conversations would otherwise tell of those above the page's level."""
    assert page.classification is CONFIDENTIAL


def test_the_help_states_how_much_a_page_has():
    output = " ".join((show.help or "").split())

    for stated in (
        f"last {MAX_EVENTS} audit events",
        f"{MAX_NAMES} names of each kind",
        f"{MAX_CHARS:,} characters of each text",
        f"newest {MAX_CONVERSATIONS} conversations",
    ):
        assert stated in output
