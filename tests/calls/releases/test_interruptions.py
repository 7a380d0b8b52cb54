"""What becomes of a release if a call ends halfway, or others act on it at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.sessions import end_what_is_open
from muniment_server.domain.classification import Label
from muniment_server.items import releasing
from muniment_server.releases import repository
from tests.support.answers import refusal
from tests.support.invariants import broken_invariants
from tests.support.releases import (
    FAILED,
    MEMORY,
    OPEN,
    REJECTED,
    RELEASED,
    TEXT,
    TRUSTED,
    UNTRUSTED,
    approval,
    approved,
    requested,
    state_of,
)
from tests.support.services import reason_of

GONE = "NOT_FOUND MEMORY_NOT_FOUND"


class Died(Exception):
    """As if the process were killed."""


@pytest.fixture(autouse=True)
def plan(at):
    at(UNTRUSTED).save_memory(key="plan", content=TEXT)


@pytest.fixture
def first_time(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Does something in the place of a function, or before it, when it is called for the first time."""

    def replace(module: Any, name: str, act: Callable[[], None]) -> None:
        original, acts = getattr(module, name), [act]

        def once(*given: Any, **named: Any) -> Any:
            while acts:
                acts.pop()()
            return original(*given, **named)

        monkeypatch.setattr(module, name, once)

    return replace


def die() -> None:
    raise Died


def revisions(at: Any) -> list[str]:
    """What was ever written at the target."""
    return [one.content for one in at(TRUSTED).list_versions(kind=MEMORY, name="plan", with_revisions=True).versions]


@pytest.mark.parametrize("step", [(releasing, "write"), (repository, "end")], ids=["before", "after"])
def test_a_call_that_dies_around_the_write_is_finished_by_the_next(at, key, first_time, step):
    """And what was written is not written twice."""
    release, approves = requested(key()), key()
    first_time(*step, die)
    assert refusal(approves.approve_release, **approval(release)) == "INTERNAL INTERNAL"
    assert state_of(approves, release) == OPEN

    assert approved(approves, release).state == RELEASED
    assert revisions(at) == [TEXT]


def test_what_has_replaced_it_since_is_not_replaced_again(at, key, first_time):
    release, approves = requested(key()), key()
    first_time(repository, "end", die)
    refusal(approves.approve_release, **approval(release))
    at(TRUSTED).save_memory(key="plan", content="Sunday")

    assert approved(approves, release).released_revision == 1
    assert revisions(at) == ["Sunday", TEXT]


@pytest.mark.parametrize("end", ["rejected", "expired"])
def test_what_was_written_is_not_rejected_and_does_not_expire(shared, key, first_time, end):
    release, approves = requested(key()), key()
    first_time(repository, "end", die)
    refusal(approves.approve_release, **approval(release))
    if end == "expired":
        with shared.database.as_owner() as owner:
            owner.execute("UPDATE vault.release SET expire_time = now() WHERE release_id = %s", [release.release_id])
    else:
        assert refusal(approves.reject_release, release_id=release.release_id) == f"{FAILED} RELEASE_NOT_OPEN"
    assert approved(approves, release).state == RELEASED


def test_a_restore_rejects_what_is_not_written_alone(service, first_time):
    """Only the audit log of the backup may say that it was written."""
    service.session(UNTRUSTED).save_memory(key="plan", content=TEXT)
    asks, approves = service.host(), service.host(name="approves")
    written, open_ = requested(asks), requested(asks)
    first_time(repository, "end", die)
    refusal(approves.approve_release, **approval(written))

    with connect_operator(service.database.admin) as operator:
        rejected = [end_what_is_open(operator, "restore")[1] for _ in range(2)]

    assert rejected == [1, 0]
    assert state_of(approves, open_) == REJECTED
    assert approved(approves, written).state == RELEASED


def test_an_erasure_meanwhile_leaves_nothing_behind(host, at, key, first_time):
    """It ends the session that writes: otherwise the text would come back at a label that is erased already."""
    release, approves = requested(key()), key()
    erase = {"agent_id": "alice", "kind": MEMORY, "name": "plan"}
    first_time(releasing, "write", lambda: host.erase_items(**erase))

    assert refusal(approves.approve_release, **approval(release)) == f"{FAILED} RELEASE_SOURCE_CHANGED"
    assert refusal(at(TRUSTED).get_memory, key="plan") == GONE


def test_nothing_is_released_while_items_of_its_kind_are_erased(shared, at, key):
    release, approves = requested(key()), key()
    erasure = (
        "INSERT INTO vault.erasure (tenant, agent, erasure_id, kind, ceiling)"
        " SELECT tenant, agent, release_id, kind, 4 FROM vault.release WHERE release_id = %s"
    )
    with shared.database.as_owner() as owner:
        owner.execute(erasure, [release.release_id])
        assert refusal(approves.approve_release, **approval(release)) == "UNAVAILABLE UNAVAILABLE"
        assert refusal(at(TRUSTED).get_memory, key="plan") == GONE
        owner.execute("UPDATE vault.erasure SET kind = 2 WHERE erasure_id = %s", [release.release_id])
    assert approved(approves, release).state == RELEASED


def test_another_call_meanwhile_ends_the_writer(shared, at, key, first_time):
    """RejectRelease, or an approval that begins anew. Here only its first step, in the database."""
    release, approves = requested(key()), key()
    stop = (
        "UPDATE vault.session SET close_time = now()"
        " WHERE session_id = (SELECT writer FROM vault.release WHERE release_id = %s)",
        "UPDATE vault.release SET state = 3 WHERE release_id = %s",
    )

    def reject() -> None:
        with shared.database.as_owner() as owner:
            for statement in stop:
                owner.execute(statement, [release.release_id])

    first_time(releasing, "write", reject)

    assert refusal(approves.approve_release, **approval(release)) == f"{FAILED} RELEASE_NOT_OPEN"
    assert refusal(at(TRUSTED).get_memory, key="plan") == GONE


def test_of_simultaneous_approvals_one_writes(service):
    reader, planner = service.session(UNTRUSTED), service.session(TRUSTED)
    hosts = [service.host(name=f"{number}") for number in range(4)]
    for number in range(5):
        content = f"{TEXT} {number}"
        reader.save_memory(key="plan", content=content)
        release = requested(service.host(), content=content)
        barrier = threading.Barrier(len(hosts))

        def approve(host: Any, release: Any = release, barrier: threading.Barrier = barrier) -> str:
            barrier.wait()
            return reason_of(host.observe("ApproveRelease", **approval(release)))

        with ThreadPoolExecutor(len(hosts)) as pool:
            reasons = list(pool.map(approve, hosts))
        assert set(reasons) <= {"", "RELEASE_NOT_OPEN", "UNAVAILABLE"}
        assert state_of(hosts[0], release) == RELEASED
        assert planner.get_memory(key="plan").memory.content == content
    versions = planner.list_versions(kind=MEMORY, name="plan", with_revisions=True).versions
    assert len(versions) == 5
    assert broken_invariants(service.database) == []


@pytest.mark.parametrize("label", [Label.PUBLIC_TRUSTED])
def test_no_session_of_the_desk_is_left(shared, host, key, at, label):
    release = requested(key(), target=label)
    approved(key(), release)
    listed = host.list_sessions(agent_id="alice", include_closed=True).sessions
    assert {session.session_id for session in listed} == {at(UNTRUSTED).session_id}
    with shared.database.as_owner() as owner:
        query = (
            "SELECT count(*) FROM vault.session WHERE conversation_id = session_id::text AND close_time IS NULL"
            " AND agent = (SELECT agent FROM vault.release WHERE release_id = %s)"
        )
        assert owner.execute(query, [release.release_id]).fetchall() == [(0,)]
