"""What the hashes of the audit log's seals cover."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.domain.seals import Seal, SealableEvent, seal_events

TIME = datetime(2026, 11, 25, tzinfo=UTC)
EVENT = SealableEvent(
    tenant=TenantNumber(1),
    chain=3,
    by_host=False,
    event_id=UUID(int=1),
    time=TIME,
    agent=AgentNumber(2),
    session_id=UUID(int=3),
    host_key_id=UUID(int=4),
    method="SaveMemory",
    outcome="OK",
    kind=1,
    item_id=UUID(int=5),
    revision=6,
    result_count=7,
    reason="read the payroll",
)
OTHER: dict[str, Any] = {
    "tenant": 9, "chain": 1, "level": 1, "by_host": True, "event_id": UUID(int=9),
    "time": TIME + timedelta(microseconds=1), "agent": 9, "session_id": UUID(int=9), "host_key_id": UUID(int=9),
    "method": "GetMemory", "outcome": "NOT_FOUND", "kind": 2, "item_id": UUID(int=9), "revision": 9,
    "result_count": 9, "reason": "another",
}  # fmt: skip
FIRST = seal_events([EVENT], None, TIME)
SECOND = seal_events([replace(EVENT, event_id=UUID(int=8))], FIRST, TIME)


@pytest.mark.parametrize("name", [field.name for field in fields(SealableEvent)])
def test_every_field_of_an_event_is_hashed(name):
    assert replace(EVENT, **{name: OTHER[name]}).hash() != EVENT.hash()


@pytest.mark.parametrize("name", [field.name for field in fields(Seal)])
def test_every_field_of_a_seal_is_hashed(name):
    other: dict[str, Any] = {"number": 9, "event_count": 9, "events_hash": bytes(32), "hash": bytes(32)} | OTHER

    assert SECOND.is_next_of(FIRST)
    assert not replace(SECOND, **{name: other[name]}).is_next_of(FIRST)


def test_a_seal_covers_the_one_before():
    assert not SECOND.is_next_of(replace(FIRST, hash=bytes(32)))
    assert not SECOND.is_next_of(None)
    assert not FIRST.is_next_of(FIRST)


def test_a_seal_has_the_number_after_the_one_before():
    """Though its hash is right for the number that it has."""
    assert not seal_events([EVENT], replace(FIRST, number=6), TIME).is_next_of(FIRST)
