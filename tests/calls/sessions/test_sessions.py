"""SessionService: sessions, conversations and their taint."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from muniment_server.sessions import repository
from tests.support.answers import (
    CONFIDENTIAL,
    INTERNAL,
    LEVELS,
    PAIRS,
    PUBLIC,
    RESTRICTED,
    UP,
    events,
    invalid,
    pages,
    refusal,
)
from tests.support.concurrency import in_background, lock_rows, wait_until_blocked
from tests.support.services import Caller, failure_of

NO_SESSION = "NOT_FOUND SESSION_NOT_FOUND"
CLOSED = "UNAUTHENTICATED CREDENTIAL_INVALID"
EXPIRED = "UNAUTHENTICATED CREDENTIAL_EXPIRED"


def open_session(host, **fields):
    return host.open_session(agent_id="alice", **fields)


def lifetime(session):
    return session.expire_time.ToDatetime() - session.create_time.ToDatetime()


def caller(host, opened):
    """Who holds the session in an answer."""
    return Caller(host.channel, opened.token)


def own(host, opened):
    """A session as it sees itself, with the ceiling of its conversation, which only hosts see."""
    shown = caller(host, opened).get_session().session
    assert not shown.ceiling
    shown.ceiling = RESTRICTED
    return shown


@pytest.mark.parametrize("level", LEVELS)
def test_a_session_is_opened_at_the_taint_that_is_asked_for(host, alice, level):
    opened = open_session(host, taint=level)

    assert (opened.session.agent_id, opened.session.taint) == ("alice", level)
    assert not opened.session.HasField("close_time")
    assert own(host, opened) == opened.session


@pytest.mark.parametrize("level", [0, 5, -1, 2**31 - 1])
def test_an_invalid_level_is_refused(host, alice, level):
    session = open_session(host, taint=PUBLIC).session

    assert not level or invalid(open_session, host=host, taint=level) == ["taint"]
    assert invalid(host.raise_taint, session_id=session.session_id, taint=level) == ["taint"]


def test_without_a_taint_a_session_has_that_of_its_conversation(host, alice):
    first = open_session(host, conversation_id="c").session
    host.raise_taint(session_id=first.session_id, taint=CONFIDENTIAL)

    assert first.taint == PUBLIC
    assert open_session(host, conversation_id="c").session.taint == CONFIDENTIAL


def test_a_session_lives_24_hours_by_default(host, alice):
    assert lifetime(open_session(host, taint=PUBLIC).session) == timedelta(hours=24)


@pytest.mark.parametrize("seconds", [1, 60, 2592000])
def test_a_session_lives_as_long_as_asked_up_to_30_days(host, alice, seconds):
    opened = open_session(host, taint=PUBLIC, ttl={"seconds": seconds})

    assert lifetime(opened.session) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "ttl",
    [
        {"seconds": 0}, {"seconds": -1}, {"nanos": 999_999_999}, {"seconds": 2592001}, {"seconds": 2592000, "nanos": 1},
        {"seconds": 315576000001}, {"seconds": 5, "nanos": -1}, {"seconds": 5, "nanos": 1_000_000_000},
    ],
)  # fmt: skip
def test_another_ttl_is_refused(host, alice, ttl):
    assert invalid(open_session, host=host, taint=PUBLIC, ttl=ttl) == ["ttl"]


def test_an_expired_session_is_closed(service, clock):
    host = service.host()
    service.agent()
    opened = host.open_session(agent_id="alice", taint=PUBLIC, ttl={"seconds": 60})
    clock.advance(seconds=61)

    assert refusal(caller(host, opened).get_memory, key="plan") == EXPIRED
    assert refusal(host.raise_taint, session_id=opened.session.session_id, taint=INTERNAL) == NO_SESSION
    assert refusal(host.reset_session, session_id=opened.session.session_id) == NO_SESSION
    assert host.list_sessions(agent_id="alice").sessions == []
    assert len(host.list_sessions(agent_id="alice", include_closed=True).sessions) == 1


def test_an_expired_session_stays_closed_when_the_clock_is_set_back(service, clock):
    """Both one that the server remembers and one that it has not seen."""
    host = service.host()
    service.agent()
    sessions = [host.open_session(agent_id="alice", taint=PUBLIC, ttl={"seconds": 60}) for _ in range(2)]
    caller(host, sessions[0]).get_session()
    clock.advance(seconds=61)
    for session in sessions:
        assert refusal(caller(host, session).get_memory, key="plan") == EXPIRED

    clock.advance(seconds=-61)

    for session in sessions:
        assert refusal(caller(host, session).get_memory, key="plan") == EXPIRED
        closed = host.get_session(session_id=session.session.session_id).session
        assert closed.close_time == closed.expire_time


def test_the_look_up_of_an_expired_session_does_not_wait_for_its_writer(service, clock):
    """Tokens are looked up together: others would wait for it, too."""
    host = service.host()
    service.agent()
    opened = host.open_session(agent_id="alice", taint=PUBLIC, ttl={"seconds": 60})
    clock.advance(seconds=61)

    with service.database.as_owner() as owner, owner.transaction():
        lock_rows(owner, "vault.session", "session_id = %s", opened.session.session_id)
        assert refusal(caller(host, opened).get_memory, key="plan") == EXPIRED


def test_tokens_say_what_they_are_and_differ(host, alice):
    found = {open_session(host, taint=PUBLIC).token for _ in range(20)}

    assert len(found) == 20
    assert {(token[:6], len(token.split("_", 3)[3])) for token in found} == {("mun_s_", len("_") + 43 + 8)}


def test_no_token_is_kept(shared, tenant, host, alice):
    token = open_session(host, taint=PUBLIC).token
    with shared.database.as_owner() as owner:
        kept = owner.execute("SELECT session::text FROM vault.session").fetchall()

    assert not [row for row in kept if token in str(row) or token.split("_", 3)[3] in str(row)]


def test_c16_ids_are_random_uuids(host, alice):
    opened = open_session(host, taint=PUBLIC)

    assert uuid.UUID(opened.session.session_id).version == 4
    assert uuid.UUID(opened.session.conversation_id).version == 4


def test_a_session_of_an_unknown_agent_is_not_opened(host):
    assert refusal(open_session, host=host, taint=PUBLIC) == "NOT_FOUND AGENT_NOT_FOUND"


@pytest.mark.parametrize("conversation", ["a b", "", "a\n", "x" * 257, "~1", "e\u0301", "a\u202e"])
def test_a_conversation_id_keeps_to_its_form(host, alice, conversation):
    if conversation == "":
        assert open_session(host, taint=PUBLIC, conversation_id="").session.conversation_id
    else:
        assert invalid(open_session, host=host, taint=PUBLIC, conversation_id=conversation) == ["conversation_id"]


@pytest.mark.parametrize(("mark", "taint"), PAIRS)
def test_c43_a_conversation_is_opened_at_its_taint_or_above(host, alice, mark, taint):
    first = open_session(host, taint=mark, conversation_id="c").session
    if taint < mark:
        assert refusal(open_session, host=host, taint=taint, conversation_id="c") == (
            "FAILED_PRECONDITION CONVERSATION_TAINTED"
        )
    else:
        open_session(host, taint=taint, conversation_id="c")

    assert host.get_session(session_id=first.session_id).session.taint == max(mark, taint)


def test_conversations_of_two_agents_are_two(host, alice):
    host.create_agent(agent_id="bob")
    open_session(host, taint=RESTRICTED, conversation_id="c")

    assert host.open_session(agent_id="bob", taint=PUBLIC, conversation_id="c").session.taint == PUBLIC


@pytest.mark.parametrize(("low", "high"), UP)
def test_opening_above_raises_the_other_sessions_of_the_conversation(host, alice, low, high):
    first = caller(host, open_session(host, taint=low, conversation_id="c"))
    first.save_memory(key="before", content="text")
    open_session(host, taint=high, conversation_id="c")

    assert first.save_memory(key="after", content="text").memory.classification == high


@pytest.mark.parametrize(("taint", "asked"), PAIRS)
def test_a_raise_to_the_same_or_a_lower_level_changes_nothing(host, alice, taint, asked):
    session = open_session(host, taint=taint).session

    raised = host.raise_taint(session_id=session.session_id, taint=asked).session

    assert raised.taint == max(taint, asked)
    assert host.get_session(session_id=session.session_id).session == raised
    raised.ClearField("taint")
    session.ClearField("taint")
    assert raised == session


def test_a_raise_raises_all_sessions_of_the_conversation_and_no_other(host, alice):
    one = open_session(host, taint=PUBLIC, conversation_id="c").session
    two = open_session(host, taint=PUBLIC, conversation_id="c").session
    other = open_session(host, taint=PUBLIC, conversation_id="d").session
    host.raise_taint(session_id=one.session_id, taint=CONFIDENTIAL)

    found = [host.get_session(session_id=each.session_id).session.taint for each in (one, two, other)]

    assert found == [CONFIDENTIAL, CONFIDENTIAL, PUBLIC]


def test_a_raise_on_a_closed_session_finds_nothing(host, alice):
    """A late raise must not hit the successor."""
    opened = open_session(host, taint=PUBLIC).session
    successor = host.reset_session(session_id=opened.session_id).session

    assert refusal(host.raise_taint, session_id=opened.session_id, taint=RESTRICTED) == NO_SESSION
    assert host.get_session(session_id=successor.session_id).session.taint == PUBLIC


@pytest.mark.parametrize("method", ["raise_taint", "reset_session", "close_session", "get_session"])
def test_an_unknown_session_is_not_found(host, method):
    fields = {"taint": INTERNAL} if method == "raise_taint" else {}

    assert refusal(getattr(host, method), session_id=str(uuid.uuid4()), **fields) == NO_SESSION


@pytest.mark.parametrize("method", ["raise_taint", "reset_session", "close_session", "get_session"])
@pytest.mark.parametrize("session_id", ["", "x", "00000000000000000000000000000000", f"{uuid.UUID(int=1)}\n"])
def test_an_invalid_session_id_is_refused(host, method, session_id):
    fields = {"taint": INTERNAL} if method == "raise_taint" else {}

    assert invalid(getattr(host, method), session_id=session_id, **fields) == ["session_id"]


def test_a_reset_closes_all_sessions_of_the_conversation_and_opens_one_at_public(host, alice):
    one = open_session(host, taint=RESTRICTED, conversation_id="c", ttl={"seconds": 7200})
    two = open_session(host, taint=RESTRICTED, conversation_id="c")
    other = open_session(host, taint=RESTRICTED, conversation_id="d")

    new = host.reset_session(session_id=one.session.session_id)

    assert (new.session.taint, new.session.conversation_id, new.session.agent_id) == (PUBLIC, "c", "alice")
    assert new.session.session_id not in {one.session.session_id, two.session.session_id}
    assert new.token not in {one.token, two.token}
    assert lifetime(new.session) == timedelta(seconds=7200)
    assert [refusal(caller(host, old).get_session) for old in (one, two)] == [CLOSED, CLOSED]
    assert own(host, new) == new.session
    assert caller(host, other).get_session().session.taint == RESTRICTED


def test_a_reset_does_not_change_when_other_sessions_were_closed(host, alice):
    closed, reset = (open_session(host, taint=INTERNAL, conversation_id="talk").session.session_id for _ in range(2))
    host.close_session(session_id=closed)
    before = host.get_session(session_id=closed).session.close_time

    host.reset_session(session_id=reset)

    assert host.get_session(session_id=closed).session.close_time == before


def test_a_conversation_that_was_reset_is_opened_at_public_again(host, alice):
    opened = open_session(host, taint=RESTRICTED, conversation_id="c").session
    host.reset_session(session_id=opened.session_id)

    assert open_session(host, taint=PUBLIC, conversation_id="c").session.taint == PUBLIC


def test_an_open_without_a_taint_that_waits_for_a_reset_raises_nothing(service):
    """It would raise the conversation to the taint that it saw before."""
    host = service.host()
    host.create_agent(agent_id="alice")
    chat = {"agent_id": "alice", "conversation_id": "chat-42"}
    session = host.open_session(**chat, taint=CONFIDENTIAL).session
    with service.database.as_owner() as owner, owner.transaction():
        owner.execute("UPDATE vault.conversation SET taint = 1")
        thread, opened = in_background(host.open_session, **chat)
        wait_until_blocked(service)
    thread.join()

    assert [each.session.taint for each in opened] == [PUBLIC]
    assert host.get_session(session_id=session.session_id).session.taint == PUBLIC


def test_a_second_reset_of_the_same_session_finds_nothing(host, alice):
    opened = open_session(host, taint=INTERNAL).session
    host.reset_session(session_id=opened.session_id)

    assert refusal(host.reset_session, session_id=opened.session_id) == NO_SESSION


def test_a_close_alone_does_not_lower_the_conversation(host, alice):
    opened = open_session(host, taint=RESTRICTED, conversation_id="c").session
    host.close_session(session_id=opened.session_id)

    assert refusal(open_session, host=host, taint=PUBLIC, conversation_id="c") == (
        "FAILED_PRECONDITION CONVERSATION_TAINTED"
    )


@pytest.mark.parametrize("cut_off", ["freeze_time", "revoke_time", "expire_time"])
@pytest.mark.parametrize("statement", ["open_session", "raise_taint"])
def test_a_key_that_is_cut_off_after_it_was_looked_up_opens_and_raises_nothing(
    service, monkeypatch, statement, cut_off
):
    """The statement reads the key again."""
    service.agent("alice")
    host = service.host()
    opened = open_session(host, taint=PUBLIC)
    original = getattr(repository, statement)

    def after_it_was_cut_off(*arguments, **named):
        with service.database.as_owner() as owner:
            owner.execute(f"UPDATE vault.host_key SET {cut_off} = vault.clock()".encode())
        return original(*arguments, **named)

    monkeypatch.setattr(repository, statement, after_it_was_cut_off)
    calls = {
        "open_session": lambda: refusal(open_session, host=host, taint=PUBLIC),
        "raise_taint": lambda: refusal(host.raise_taint, session_id=opened.session.session_id, taint=INTERNAL),
    }

    assert calls[statement]() in {"NOT_FOUND AGENT_NOT_FOUND", NO_SESSION}
    assert caller(host, opened).get_session().session.taint == PUBLIC


def test_a_second_close_finds_nothing(host, alice):
    opened = open_session(host, taint=PUBLIC).session
    host.close_session(session_id=opened.session_id)

    assert refusal(host.close_session, session_id=opened.session_id) == NO_SESSION
    assert host.get_session(session_id=opened.session_id).session.HasField("close_time")


def test_a_session_gets_and_closes_itself_with_or_without_its_id(host, session):
    for named in (False, True):
        own = session(INTERNAL)
        fields = {"session_id": own.session_id} if named else {}
        assert own.get_session(**fields).session.session_id == own.session_id
        own.close_session(**fields)
        assert refusal(own.get_session) == CLOSED


def test_c02_a_session_cannot_find_another_session(session):
    """Of its own agent and conversation too."""
    own, other = session(PUBLIC, conversation_id="c"), session(PUBLIC, conversation_id="c")

    for method in (own.get_session, own.close_session):
        assert failure_of(method, session_id=other.session_id) == failure_of(method, session_id=str(uuid.uuid4()))
    assert other.get_session().session.session_id == other.session_id


@pytest.mark.parametrize(("ceiling", "taint"), PAIRS)
def test_a_host_opens_and_raises_up_to_its_ceiling(shared, tenant, ceiling, taint):
    host = shared.host(tenant, ceiling)
    host.create_agent(agent_id="alice")
    low = open_session(host, taint=PUBLIC).session
    answers = []
    for call, fields in (
        (host.open_session, {"agent_id": "alice"}),
        (host.raise_taint, {"session_id": low.session_id}),
    ):
        if taint <= ceiling:
            answers.append(call(taint=taint, **fields).session.taint)
        else:
            answers.append(refusal(call, taint=taint, **fields))

    assert answers == [taint if taint <= ceiling else "PERMISSION_DENIED CEILING_EXCEEDED"] * 2


@pytest.mark.parametrize(("ceiling", "taint"), UP)
def test_a_session_above_the_ceiling_is_not_found(shared, tenant, host, alice, ceiling, taint):
    """Also for a raise to a level that the ceiling allows."""
    above = open_session(host, taint=taint).session.session_id
    limited = shared.host(tenant, ceiling)

    for call, fields in (
        (limited.get_session, {}), (limited.close_session, {}), (limited.reset_session, {}),
        (limited.raise_taint, {"taint": PUBLIC}),
    ):  # fmt: skip
        assert failure_of(call, session_id=above, **fields) == failure_of(call, session_id=str(uuid.uuid4()), **fields)
    never = failure_of(limited.list_sessions, agent_id="never")
    assert failure_of(limited.list_sessions, agent_id="alice") == never
    assert host.get_session(session_id=above).session.taint == taint


@pytest.mark.parametrize("size", [1, 2, 3])
def test_sessions_are_listed_newest_first_in_pages(host, alice, size):
    made = [open_session(host, taint=LEVELS[number % 4]).session for number in range(7)]

    listed = [each for page in pages(host.list_sessions, agent_id="alice", page_size=size) for each in page.sessions]

    assert listed == made[::-1]


def test_closed_sessions_are_listed_when_asked_for(host, alice):
    first, second = (open_session(host, taint=PUBLIC).session.session_id for _ in range(2))
    host.close_session(session_id=first)

    assert [each.session_id for each in host.list_sessions(agent_id="alice").sessions] == [second]
    assert [each.session_id for each in host.list_sessions(agent_id="alice", include_closed=True).sessions] == [
        second,
        first,
    ]


def test_sessions_of_another_agent_are_not_listed(host, alice):
    host.create_agent(agent_id="bob")
    open_session(host, taint=PUBLIC)

    assert host.list_sessions(agent_id="bob").sessions == []
    assert refusal(host.list_sessions, agent_id="carol") == "NOT_FOUND AGENT_NOT_FOUND"


def test_a_page_token_of_sessions_is_for_its_filter_only(host, alice):
    for _ in range(3):
        open_session(host, taint=PUBLIC)
    token = host.list_sessions(agent_id="alice", page_size=1).next_page_token

    assert refusal(host.list_sessions, agent_id="alice", include_closed=True, page_token=token) == (
        "INVALID_ARGUMENT PAGE_TOKEN_INVALID"
    )


def test_a_reason_is_kept_for_the_audit_at_the_level_that_the_conversation_had(host, alice):
    opened = open_session(host, taint=PUBLIC).session
    host.raise_taint(session_id=opened.session_id, taint=INTERNAL, reason="read mail")
    host.reset_session(session_id=opened.session_id, reason="நன்றி")

    reasons = [(event.method, event.classification, event.reason) for event in events(host) if event.reason]

    assert reasons == [("RaiseTaint", INTERNAL, "read mail"), ("ResetSession", INTERNAL, "நன்றி")]


@pytest.mark.parametrize("reason", ["x" * 201, "a\nb", "a\0b"])
def test_a_reason_is_200_code_points_of_plain_text(host, alice, reason):
    opened = open_session(host, taint=PUBLIC).session

    assert invalid(host.raise_taint, session_id=opened.session_id, taint=2, reason=reason) == ["reason"]
    assert invalid(host.reset_session, session_id=opened.session_id, reason=reason) == ["reason"]
