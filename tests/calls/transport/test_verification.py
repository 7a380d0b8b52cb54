"""The lane of callers that a worker has not seen lately: whose turn it is while others forge tokens."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from muniment_server.domain import tokens
from muniment_server.domain.ids import TenantNumber
from muniment_server.domain.tokens import TokenKind
from muniment_server.transport.admission import admission, verification
from muniment_server.transport.admission.verification import Lane
from tests.support.answers import PUBLIC, refusal
from tests.support.commands import wait_until
from tests.support.concurrency import in_background
from tests.support.services import Caller, Service

ONE, OTHER, STRANGER, STRANGER_TOO = map(TenantNumber, (1, 2, 30, 31))
GUESSES = 60
_NUMBERS = itertools.count()


@pytest.fixture
def lane() -> Lane:
    """A lane in which two tenants have turns of their own."""
    lane = Lane()
    lane.has_callers(ONE)
    lane.has_callers(OTHER)
    return lane


def put(lane, tenant, *names, first=False):
    return [lane.put(name, tenant, first=first) for name in names]


def test_tenants_with_callers_take_turns_and_all_others_share_one(lane):
    put(lane, STRANGER, "s1", "s2")
    put(lane, STRANGER_TOO, "t1")
    put(lane, ONE, "a1", "a2", "a3")
    put(lane, OTHER, "b1")

    assert lane.take() == ["s1", "a1", "b1", "s2", "a2", "t1", "a3"]
    assert len(lane) == 0


def test_tokens_that_were_valid_before_go_first(lane):
    put(lane, ONE, "guess", "guess too")
    put(lane, ONE, "known", first=True)

    assert lane.take() == ["known", "guess", "guess too"]


def test_few_calls_without_a_turn_of_their_own_are_looked_up_together(lane, monkeypatch):
    """Each may name a tenant of its own, which takes a query, and whoever comes next waits for all of them."""
    monkeypatch.setattr(verification, "_MAX_STRANGERS", 2)
    put(lane, STRANGER, "s1", "s2", "s3")
    put(lane, ONE, *"abcd")

    assert lane.take() == ["s1", "a", "s2"]
    assert lane.take() == ["b", "s3", "c", "d"]


def test_a_tenant_whose_queue_is_full_leaves_room_for_others(lane, monkeypatch):
    monkeypatch.setattr(verification, "_MAX_WAITING", 8)

    assert put(lane, STRANGER, *"abcdefg") == [True] * 6 + [False]
    assert put(lane, ONE, *"ab") == [True, False]
    assert put(lane, OTHER, *"ab") == [True, False]
    assert len(lane.take()) == 8


def test_until_the_lane_is_nearly_full_a_queue_does_not_depend_on_the_others(lane, monkeypatch):
    monkeypatch.setattr(verification, "_MAX_WAITING", 16)
    put(lane, STRANGER, *"abcdef")

    assert put(lane, ONE, *"abcdef") == [True] * 6


def test_the_tenants_with_turns_of_their_own_are_those_whose_tokens_were_valid_last(lane, monkeypatch):
    monkeypatch.setattr(verification, "_MAX_TENANTS", 2)
    lane.has_callers(ONE)
    lane.has_callers(STRANGER)
    put(lane, OTHER, "b1", "b2")
    put(lane, ONE, "a1")

    put(lane, STRANGER_TOO, "t1")

    assert lane.take() == ["b1", "a1", "b2", "t1"]


class LookUps:
    """What is looked up together. The first waits until it may end."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hashes: list[set[bytes]] = []
        self.may_end = threading.Event()
        find = service.scopes.find_holders

        def look_up(wanted, deadline):
            self.hashes.append({token.hash for token in wanted})
            assert self.may_end.wait(20)
            return find(wanted, deadline)

        monkeypatch.setattr(service.scopes, "find_holders", look_up)


@contextmanager
def guessing(service: Service, tenant: int, look_ups: LookUps) -> Iterator[None]:
    """More forged tokens wait than are looked up together, until the block ends."""
    stub: Any = service.channel.unary_unary("/muniment.v1.MemoryService/GetMemory")
    calls = [
        stub.future(b"", metadata=Caller(service.channel, forged(tenant)).metadata, timeout=20) for _ in range(GUESSES)
    ]
    wait_until_waiting(service, look_ups, len(calls))
    yield
    look_ups.may_end.set()
    for call in calls:
        call.exception()


def wait_until_waiting(service: Service, look_ups: LookUps, calls: int) -> None:
    """Until so many calls wait, apart from those of the first look-up."""
    lane = service.server._admission.verification.of(TenantNumber(1))._lane
    wait_until(lambda: look_ups.hashes and len(lane) == calls - len(look_ups.hashes[0]), f"{calls} calls wait")


def forged(tenant: int) -> str:
    return tokens.mint(TokenKind.SESSION, tenant=TenantNumber(tenant), secret=next(_NUMBERS).to_bytes(32))


def test_a_fault_in_a_look_up_stops_no_later_one(service, monkeypatch):
    first, second = service.session(PUBLIC), service.session(PUBLIC)

    def fails(*_):
        raise RuntimeError

    with monkeypatch.context() as broken:
        broken.setattr(service.scopes, "find_holders", fails)
        assert refusal(first.get_session, timeout=20) == "INTERNAL INTERNAL"

    assert second.get_session(timeout=20).session.session_id == second.session_id


@pytest.mark.parametrize("tenant", [1, 12345])
def test_a_new_caller_of_another_tenant_is_in_the_next_look_up(service, monkeypatch, tenant):
    monkeypatch.setattr(verification, "_MAX_TOGETHER", 10)
    service.session(PUBLIC).list_memories()
    newcomer = service.session(PUBLIC, tenant="globex")
    look_ups = LookUps(service, monkeypatch)

    with guessing(service, tenant, look_ups):
        thread, _ = in_background(newcomer.list_memories)
        wait_until_waiting(service, look_ups, GUESSES + 1)
    thread.join(20)

    assert tokens.digest(newcomer.token) in look_ups.hashes[1]


def test_a_caller_who_was_seen_before_is_in_the_next_look_up_whatever_tenant_is_guessed(service, monkeypatch):
    monkeypatch.setattr(verification, "_MAX_TOGETHER", 10)
    seen = service.session(PUBLIC)
    seen.list_memories()
    monkeypatch.setattr(admission, "REMEMBERED_SECONDS", 0.0)
    look_ups = LookUps(service, monkeypatch)

    with guessing(service, 1, look_ups):
        thread, _ = in_background(seen.list_memories)
        wait_until_waiting(service, look_ups, GUESSES + 1)
    thread.join(20)

    assert tokens.digest(seen.token) in look_ups.hashes[1]
