"""A conversation that its host keeps open, on a real server, by both clients. Time is moved, never waited for."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

import muniment
from muniment import Classification, NewPassage, aio
from muniment.files import FileView
from muniment.langgraph import MunimentStore
from muniment_server.admin.connection import connect_operator
from muniment_server.admin.sessions import close_sessions
from tests.support.answers import refusal
from tests.support.services import Caller

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
TTL = timedelta(seconds=1)
ALL_OF_IT, MOST, HALF, SOON = 1.0, 0.8, 0.5, 0.06
"""Seconds of TTL."""
MODULES = ("muniment._conversation", "muniment.host", "muniment.aio._conversation", "muniment.aio.host")


@pytest.fixture
def passes(service, clock, monkeypatch):
    """Moves the time of server and clients on by some seconds. The time of the server stands still meanwhile."""
    ahead = [0.0]
    with service.database.as_owner() as owner:
        [now] = owner.execute("SELECT now()").fetchone()
    clock.stop_at(now)
    begun = time.monotonic()
    for module in MODULES:
        monkeypatch.setattr(f"{module}.time", SimpleNamespace(monotonic=lambda: begun + ahead[0]))

    def passes(seconds):
        ahead[0] += seconds
        clock.stop_at(now + timedelta(seconds=ahead[0]))

    return passes


@pytest.fixture
def host(service, connect, passes):
    service.agent()
    with connect(service.address, host_key=service.host().token) as client:
        yield client


@pytest.fixture
def other(service):
    """Another service with a key of its own, which retries nothing."""
    return service.host()


@pytest.fixture
def opened(host):
    """A conversation whose session lasts a second."""
    return host.conversation("alice", "chat", ttl=TTL)


def sessions_of(host):
    return [session.session_id for session in host.list_sessions("alice")]


def test_a_conversation_waits_for_a_connection_as_long_as_its_host(host):
    host._calls.connect_timeout = 2.0

    assert host.conversation("alice", "chat")._calls.connect_timeout == 2.0


def test_a_conversation_begins_as_its_session_would(host, opened):
    assert (opened.session.taint, opened.session.conversation_id) == (PUBLIC, "chat")
    assert host.conversation("alice", "deep", INTERNAL).session.taint == INTERNAL
    assert host.conversation("alice", "deep").session.taint == INTERNAL
    assert host.conversation("alice").session.conversation_id not in {"", "chat"}
    with pytest.raises(muniment.ConversationTainted) as refused:
        host.conversation("alice", "deep", PUBLIC)
    assert refused.value.taint == INTERNAL


def test_a_session_is_renewed_when_a_quarter_of_its_time_is_left(host, opened, passes):
    first = opened.session
    passes(HALF)
    opened.save_memory("tea", "Assam")
    assert opened.session == first

    passes(MOST - HALF)
    opened.save_memory("milk", "none")

    seconds = timedelta(seconds=MOST)
    assert opened.session == replace(first, expire_time=first.expire_time + seconds)
    passes(MOST)
    opened.get_memory("tea")
    assert opened.session == replace(first, expire_time=first.expire_time + 2 * seconds)
    assert sessions_of(host) == [first.session_id]


@pytest.mark.parametrize("seconds", [0, MOST, ALL_OF_IT])
def test_one_that_is_read_only_stays_so(host, passes, seconds):
    """Whether it is renewed, or reset."""
    reader = host.conversation("alice", "chat", ttl=TTL, read_only=True)
    for conversation in (lambda: reader, lambda: host.reset_session(reader)):
        reads = conversation()
        passes(seconds)
        with pytest.raises(muniment.SessionReadOnly):
            reads.save_memory("tea", "Assam")
        assert list(reads.list_memories()) == []
        assert reads.session.read_only


@pytest.mark.parametrize("seconds", [ALL_OF_IT, 100.0])
def test_a_session_that_has_expired_is_renewed(host, opened, passes, seconds):
    passes(seconds)

    assert opened.save_memory("tea", "Assam").classification == PUBLIC
    assert sessions_of(host) == [opened.session_id]


def test_a_session_that_expires_by_the_servers_clock_alone_is_renewed(opened, passes, monkeypatch):
    """As on a machine whose monotonic clock stood still while it slept. The call is made again, whatever it is."""
    passes(ALL_OF_IT)
    for module in MODULES:
        monkeypatch.setattr(f"{module}.time", time)

    note = opened.add_note("once")

    assert [each.note_id for each in opened.list_notes()] == [note.note.note_id]


@pytest.mark.parametrize("seconds", [MOST, ALL_OF_IT])
def test_a_raise_by_another_is_followed(opened, passes, other, seconds):
    passes(seconds)
    theirs = other.open_session(agent_id="alice", conversation_id="chat").session
    other.raise_taint(session_id=theirs.session_id, taint=CONFIDENTIAL)

    assert opened.save_memory("tea", "Assam").classification == CONFIDENTIAL
    assert opened.session.taint == CONFIDENTIAL


@pytest.mark.parametrize("seconds", [0, MOST, ALL_OF_IT])
@pytest.mark.parametrize("way", ["closed", "reset"])
def test_a_session_that_another_closed_or_reset_is_not_renewed(host, opened, passes, other, way, seconds):
    """Even after its time: the model's context has to be cleared first."""
    getattr(other, {"closed": "close_session", "reset": "reset_session"}[way])(session_id=opened.session_id)
    passes(seconds)

    for _ in range(2):
        with pytest.raises(muniment.Unauthenticated) as refused:
            opened.save_memory("tea", "Assam")
        assert refused.value.reason == "CREDENTIAL_INVALID"


def test_a_reset_by_another_after_the_session_expired_is_seen_too(opened, passes, other):
    """Otherwise the model, which has read what is CONFIDENTIAL, would go on at PUBLIC."""
    other.raise_taint(session_id=opened.session_id, taint=CONFIDENTIAL)
    opened.save_memory("salary", "52,000")
    passes(ALL_OF_IT)
    theirs = other.open_session(agent_id="alice", conversation_id="chat").session
    other.reset_session(session_id=theirs.session_id)

    for _ in range(2):
        with pytest.raises(muniment.CredentialExpired):
            opened.save_memory("tea", "Assam")


def test_a_restore_ends_expired_sessions_too(service, opened, passes, other):
    """Their host need not know of the raise that is lost."""
    other.raise_taint(session_id=opened.session_id, taint=CONFIDENTIAL)
    set_back(service)
    passes(ALL_OF_IT)
    with connect_operator(service.database.admin) as operator:
        assert close_sessions(operator, "restore") == 0

    with pytest.raises(muniment.CredentialExpired):
        opened.save_memory("salary", "52,000")


def set_back(service):
    """Restore the taint of all conversations from before any raise."""
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.conversation SET taint = 1")


@pytest.mark.parametrize("end", ["agent deleted", "purged"])
def test_a_session_that_is_gone_is_not_renewed(service, opened, passes, other, end):
    passes(ALL_OF_IT)
    if end == "purged":
        with service.database.as_owner() as owner:
            owner.execute("DELETE FROM vault.session")
    else:
        other.delete_agent(agent_id="alice")
        other.create_agent(agent_id="alice")

    with pytest.raises(muniment.Unauthenticated):
        opened.save_memory("tea", "Assam")


def test_while_the_session_is_valid_a_key_that_is_not_costs_nothing(service, opened, passes):
    """Then the error is that of the key."""
    passes(MOST)
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.host_key SET revoke_time = vault.clock()")

    opened.save_memory("tea", "Assam")
    passes(ALL_OF_IT)
    with pytest.raises(muniment.Unauthenticated) as refused:
        opened.save_memory("milk", "none")
    assert refused.value.reason == "CREDENTIAL_INVALID"


def test_a_renewal_that_failed_is_tried_again_soon(service, opened, passes):
    """But not by each call."""
    before = opened.session
    passes(MOST)
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.host_key SET freeze_time = vault.clock()")
        opened.save_memory("tea", "Assam")
        owner.execute("UPDATE vault.host_key SET freeze_time = NULL")

    opened.save_memory("tea", "Assam")
    assert opened.session == before
    passes(SOON)
    opened.save_memory("tea", "Assam")
    assert opened.session.expire_time == before.expire_time + timedelta(seconds=MOST + SOON)


@pytest.mark.parametrize("seconds", [MOST, ALL_OF_IT])
def test_a_list_goes_on_when_the_session_was_renewed(opened, passes, seconds):
    """Page tokens belong to the token of a session."""
    for number in range(6):
        opened.save_memory(f"k{number}", "text")
    listed = opened.list_memories(page_size=2)
    found = [next(listed).key]
    passes(seconds)

    assert found + [each.key for each in listed] == [f"k{number}" for number in range(6)]


@pytest.mark.parametrize("seconds", [MOST, ALL_OF_IT])
def test_an_import_begins_with_a_valid_token(opened, passes, seconds):
    passes(seconds)

    assert opened.import_passages([NewPassage("one"), NewPassage("two")]).stored_count == 2


@pytest.mark.parametrize("before", [0, MOST, ALL_OF_IT])
def test_the_end_closes_its_session_for_good(host, passes, before):
    with host.conversation("alice", "chat", ttl=TTL) as opened:
        passes(before)

    assert sessions_of(host) == []
    opened.close()
    for seconds in (0, ALL_OF_IT):
        passes(seconds)
        with pytest.raises(muniment.Unauthenticated):
            opened.get_memory("tea")
    assert sessions_of(host) == []


def test_a_conversation_that_has_ended_is_closed_without_an_error(host, other, passes):
    with host.conversation("alice", "chat", ttl=TTL) as opened:
        other.reset_session(session_id=opened.session_id)
    with host.conversation("alice", "chat", ttl=TTL) as opened:
        passes(ALL_OF_IT)
    with pytest.raises(muniment.Unauthenticated):
        opened.get_memory("tea")


@pytest.mark.parametrize("seconds", [0, MOST, ALL_OF_IT])
def test_its_host_raises_it(host, opened, passes, seconds):
    passes(seconds)

    raised = host.raise_taint(opened, CONFIDENTIAL, "the payroll")

    assert (raised.session_id, raised.taint) == (opened.session_id, CONFIDENTIAL)
    assert opened.save_memory("tea", "Assam").classification == CONFIDENTIAL
    assert opened.get_session().taint == opened.session.taint == CONFIDENTIAL


@pytest.mark.parametrize("seconds", [0, MOST, ALL_OF_IT])
def test_its_host_resets_it_and_goes_on_with_another_one(host, opened, passes, seconds):
    """Whoever still uses the old one has the old context, and must not write it at PUBLIC."""
    host.raise_taint(opened, CONFIDENTIAL)
    passes(seconds)

    anew = host.reset_session(opened, "the context is cleared")

    assert (anew.session.taint, anew.session.conversation_id) == (PUBLIC, "chat")
    with pytest.raises(muniment.Unauthenticated):
        opened.save_memory("salary", "52,000")
    passes(ALL_OF_IT)
    assert anew.save_memory("tea", "Assam").classification == PUBLIC
    with pytest.raises(muniment.Unauthenticated):
        opened.save_memory("salary", "52,000")


def test_a_token_that_is_handed_on_is_valid_for_a_while(service, opened, passes):
    passes(MOST)
    opened.keep_open()

    handed_on = Caller(service.channel, opened.token)
    assert handed_on.get_session().session.session_id == opened.session_id
    passes(HALF)
    assert handed_on.get_session().session.session_id == opened.session_id


@pytest.mark.parametrize("seconds", [MOST, ALL_OF_IT])
def test_many_threads_renew_it(service, passes, seconds):
    with muniment.connect(service.address, host_key=service.host().token) as host:
        service.agent()
        opened = host.conversation("alice", "chat", ttl=TTL)
        passes(seconds)
        together = threading.Barrier(16)

        def call(number):
            together.wait()
            return opened.save_memory(f"k{number}", "text").classification

        with ThreadPoolExecutor(16) as threads:
            assert set(threads.map(call, range(16))) == {PUBLIC}
        assert len(host.list_sessions("alice").all()) == 1


@pytest.mark.parametrize("seconds", [MOST, ALL_OF_IT])
def test_many_tasks_renew_it(service, passes, seconds):
    async def run():
        async with aio.connect(service.address, host_key=service.host().token) as host:
            opened = await host.conversation("alice", "chat", ttl=TTL)
            passes(seconds)
            await asyncio.gather(*(opened.save_memory(f"k{number}", "text") for number in range(16)))
            return len(await (await host.list_sessions("alice")).all())

    service.agent()
    assert asyncio.run(run()) == 1


def test_a_task_that_is_canceled_meanwhile_leaves_it_usable(service, passes):
    async def run():
        async with aio.connect(service.address, host_key=service.host().token) as host:
            opened = await host.conversation("alice", "chat", ttl=TTL)
            passes(ALL_OF_IT)
            task = asyncio.create_task(opened.save_memory("tea", "Assam"))
            await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            return await opened.save_memory("tea", "Assam")

    service.agent()
    assert asyncio.run(run()).classification == PUBLIC


def test_what_an_adapter_stores_after_the_session_has_expired_is_stored(service, passes):
    service.agent()
    with (
        muniment.connect(service.address, host_key=service.host().token) as host,
        host.conversation("alice", "chat", ttl=TTL) as opened,
    ):
        files, store = FileView(opened), MunimentStore(opened)
        for number in range(2):
            passes(ALL_OF_IT)
            files.create(f"/memories/{number}.txt", "text")
            passes(MOST)
            store.put(("users",), str(number), {"text": "She likes it dark."})
        assert len(store.search(("users",))) == 2
        assert files.exists("/memories/1.txt")


def test_a_key_of_a_low_ceiling_keeps_its_conversation_open(service, connect, passes, other):
    """Beside one of the same name that is above it."""
    other.create_agent(agent_id="ada", known_from=PUBLIC)
    other.open_session(agent_id="ada", conversation_id="chat", taint=CONFIDENTIAL)
    with connect(service.address, host_key=service.host(ceiling=PUBLIC).token) as host:
        opened = host.conversation("ada", "chat", ttl=TTL)
        passes(ALL_OF_IT)

        assert opened.save_memory("tea", "Assam").classification == PUBLIC
        assert opened.session.ceiling == PUBLIC
        passes(HALF)
        assert refusal(other.raise_taint, session_id=opened.session_id, taint=INTERNAL).endswith(
            "CONVERSATION_CEILING_EXCEEDED"
        )
