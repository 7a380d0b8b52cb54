"""Seals of the audit log: a hash chain for each tenant and level.

A seal covers a batch of events and the seal before it. Whoever keeps the hash of one seal can therefore tell later
whether any event up to it was changed, added or removed. This module says what is hashed; it is SHA-256 throughout, and
the first byte separates the three kinds of input (as in RFC 6962).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from muniment_server.domain.ids import AgentNumber, TenantNumber

_EVENT, _EVENTS, _SEAL = b"\x00", b"\x01", b"\x02"


@dataclass(frozen=True, slots=True)
class SealableEvent:
    """An audit event as it is stored, without the number of its transaction. All of it is hashed."""

    tenant: TenantNumber
    chain: int
    """The number of the chain that seals it: see `Label.chain`."""
    by_host: bool
    """True for events of hosts and operators, False for those of sessions. They are stored in separate tables."""
    event_id: UUID
    time: datetime
    agent: AgentNumber | None
    session_id: UUID | None
    host_key_id: UUID | None
    method: str
    outcome: str
    kind: int | None
    item_id: UUID | None
    revision: int | None
    result_count: int | None
    reason: str | None

    def hash(self) -> bytes:
        """The hash of all fields."""
        fields = [
            self.tenant, self.chain, self.by_host, str(self.event_id), _text(self.time), self.agent,
            _text(self.session_id), _text(self.host_key_id), self.method, self.outcome, self.kind, _text(self.item_id),
            self.revision, self.result_count, self.reason,
        ]  # fmt: skip
        return _sha256(_EVENT, _canonical(fields))


@dataclass(frozen=True, slots=True)
class Seal:
    """One seal of a chain."""

    tenant: TenantNumber
    level: int
    """The number of the chain. Of an untrusted label, that of its level."""
    number: int
    """Counted from 1."""
    time: datetime
    by_host: bool
    """True if it seals events of hosts and operators, False for those of sessions."""
    event_count: int
    """How many events this seal and all before it cover."""
    events_hash: bytes
    hash: bytes

    def is_next_of(self, previous: Seal | None) -> bool:
        """Whether it directly follows *previous*, or is the first one, and its hash is right."""
        return self.number == _number(previous) + 1 and self.hash == _hash_of(self, previous)


def seal_events(events: Iterable[SealableEvent], previous: Seal | None, time: datetime) -> Seal:
    """Seal *events* after the seal *previous*. All are of one tenant and chain, and equal in `by_host`."""
    batch = list(events)
    first = batch[0]
    unhashed = Seal(
        tenant=first.tenant,
        level=first.chain,
        number=_number(previous) + 1,
        time=time,
        by_host=first.by_host,
        event_count=len(batch) + (previous.event_count if previous else 0),
        events_hash=hash_of_events(batch),
        hash=b"",
    )
    return replace(unhashed, hash=_hash_of(unhashed, previous))


def hash_of_events(events: Iterable[SealableEvent]) -> bytes:
    """The hash of a batch of events, in whatever order they are given."""
    hashes = (event.hash() for event in sorted(events, key=lambda event: event.event_id.bytes))
    return _sha256(_EVENTS, b"".join(hashes))


def _number(seal: Seal | None) -> int:
    return seal.number if seal else 0


def _hash_of(seal: Seal, previous: Seal | None) -> bytes:
    before = previous.hash.hex() if previous else None
    fields = [
        before, seal.tenant, seal.level, seal.number, _text(seal.time), seal.by_host, seal.event_count,
        seal.events_hash.hex(),
    ]  # fmt: skip
    return _sha256(_SEAL, _canonical(fields))


def _text(value: UUID | datetime | None) -> str | None:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return str(value) if value is not None else None


def _canonical(fields: Sequence[object]) -> bytes:
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode()


def _sha256(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha256(kind + content).digest()
