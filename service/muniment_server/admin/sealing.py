"""Verification of the audit log against its seals, and removal of old events, as the owner.

`domain.seals` says what a seal covers. A log that was rewritten and sealed anew is found only with a
checkpoint that was kept elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from muniment_server.admin.connection import Operator
from muniment_server.domain.classification import Label
from muniment_server.domain.ids import TenantNumber
from muniment_server.domain.seals import Seal, SealableEvent, hash_of_events
from muniment_server.postgres.transaction import lift_idle_timeout

_R = TypeVar("_R")
_UNSEALED_LIMIT = timedelta(minutes=15)
"""Servers seal every ten seconds."""
_LATE = timedelta(days=1)
"""Servers need less to scan a whole log again, which they do every ten minutes."""
_AHEAD = timedelta(minutes=1)
"""How far the time of an event may be after that of its seal without a note: clocks are set back."""
REMOVAL = re.compile(r"seals of ([A-Z_]+) up to ([0-9]{1,15}), hash ([0-9a-f]{64}), by .*", re.DOTALL)
_SEALED_LATE = (
    "events that were sealed more than a day after their time: {} (no server ran, a backup was restored, or they were "
    "added later)"
)
_OLDER_THAN_SEALS = (
    "events that are more than a day older than the first seal: {} (they were there before events were sealed, or they "
    "were added later)"
)
_SEALED_BEFORE = "events that were sealed before their time: {} (a clock was ahead, or they were forged)"
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last seal of one chain at some time, kept outside of the database."""

    classification: Label
    seal_number: int
    event_count: int
    head_hash: str
    """In hexadecimal."""


@dataclass(frozen=True, slots=True)
class RemovedEvents:
    """How many events were removed at one level."""

    classification: Label
    events: int


@dataclass(slots=True)
class Verified:
    """What was found at one level."""

    classification: Label
    seals: int = 0
    events: int = 0
    """Sealed events that were compared."""
    removed: int = 0
    """Sealed events that `muniment audit purge` has removed."""
    unsealed: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Findings that do not prove tampering, but are worth comparing with what the reader knows."""


@dataclass(frozen=True, slots=True)
class SealedEvent(SealableEvent):
    """An event, and the number of its seal."""

    number: int


@dataclass(frozen=True, slots=True)
class _Unsealed:
    number: int
    copies: int
    oldest: datetime | None
    now: datetime
    overtaken: datetime | None


@dataclass(frozen=True, slots=True)
class _Changes:
    elsewhere: int
    nowhere: int
    not_compared: int


@dataclass(frozen=True, slots=True)
class _Reason:
    time: datetime
    reason: str | None


@dataclass(frozen=True, slots=True)
class _Removal:
    """What the audit event of a removal says: the events of sessions under seals up to *number* were removed."""

    time: datetime
    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class _Removable:
    number: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class _Batch:
    last: int | None
    events: int


def next_seals(
    operator: Operator, tenant: TenantNumber, label: Label, after: int
) -> list[tuple[Seal, list[SealedEvent]]]:
    """The next 20 seals of a chain after the one with the number *after*, each with those of its events that exist."""
    key = {"tenant": tenant, "level": label.chain}
    seals = operator.rows("list_seals", Seal, after=after, **key)
    events = defaultdict[int, list[SealedEvent]](list)
    if seals:
        for event in operator.rows(
            "list_sealed_events", SealedEvent, first=seals[0].number, last=seals[-1].number, **key
        ):
            events[event.number].append(event)
    return [(seal, events[seal.number]) for seal in seals]


def remove_events(operator: Operator, tenant: TenantNumber, label: Label, *, before: datetime) -> RemovedEvents:
    """Remove the events of sessions that were sealed before *before*, with an audit event that names the last seal.

    The seals stay, and so do the events of hosts and operators: the journal and the ledgers need them.
    """
    key = {"tenant": tenant, "level": label.chain}
    found = operator.rows("newest_removable_seal", _Removable, before=before, **key)
    if not found:
        return RemovedEvents(label, 0)
    (newest,) = found
    reason = f"seals of {label.name} up to {newest.number}, hash {newest.hash.hex()},"
    operator.execute("record_removal", tenant=tenant, reason=reason)
    after, removed = 0, 0
    while after < newest.number:
        with operator.at(label):
            batch = operator.one("remove_events", _Batch, after=after, last=newest.number, **key)
        after, removed = batch.last or newest.number, removed + batch.events
    return RemovedEvents(label, removed)


class Verification:
    """Compares the events, the seals and the items of one tenant and level, and its checkpoints, seal by seal.

    The operator finds the tables of the level by unqualified names, and is in a transaction that sees one state.
    """

    def __init__(
        self,
        operator: Operator,
        tenant: TenantNumber,
        label: Label,
        checkpoints: Sequence[Checkpoint],
    ) -> None:
        self._operator = operator
        self._tenant = tenant
        self._key = {"tenant": tenant, "level": label.chain}
        self._checkpoints = checkpoints
        self._found = Verified(label)
        self._first: Seal | None = None
        self._last: Seal | None = None
        self._odd_times = Counter[str]()

    def run(self) -> Verified:
        """What was found."""
        lift_idle_timeout(self._operator.connection)
        removals = self._removals()
        removed_up_to = max((removal.number for removal in removals), default=0)
        named = {checkpoint.seal_number for checkpoint in self._checkpoints} | {one.number for one in removals}
        seals: dict[int, Seal] = {}
        for seal, events in self._seals():
            self._verify_seal(seal, events, removable=seal.number <= removed_up_to and not seal.by_host)
            if seal.number in named:
                seals[seal.number] = seal
        self._compare_checkpoints(seals)
        self._compare_removals(seals, removals)
        self._found.notes.extend(text.format(number) for text, number in self._odd_times.items())
        self._verify_unsealed()
        self._verify_changes(
            max((seals[one.number].time for one in removals if one.number in seals), default=_LONG_AGO)
        )
        return self._found

    def _seals(self) -> Iterator[tuple[Seal, list[SealedEvent]]]:
        after = 0
        while seals := next_seals(self._operator, self._tenant, self._found.classification, after):
            after = seals[-1][0].number
            yield from seals

    def _verify_seal(self, seal: Seal, events: list[SealedEvent], *, removable: bool) -> None:
        previous, self._last = self._last, seal
        self._first = self._first or seal
        self._found.seals += 1
        if not seal.is_next_of(previous):
            after = f"seal {previous.number}" if previous else "the beginning"
            self._problem(f"seal {seal.number} does not follow {after}: seals were changed, added or removed")
        covered = seal.event_count - (previous.event_count if previous else 0)
        if removable and not events:
            self._found.removed += covered
            return
        self._found.events += len(events)
        self._count_odd_times(self._first, seal, events)
        if len(events) != covered:
            self._problem(
                f"seal {seal.number} of {seal.time:%F %T}Z covers {covered} events, of which {len(events)} exist"
            )
        elif hash_of_events(events) != seal.events_hash:
            self._problem(f"events under seal {seal.number} of {seal.time:%F %T}Z were changed")

    def _count_odd_times(self, first: Seal, seal: Seal, events: Sequence[SealedEvent]) -> None:
        """Count the events whose time does not fit their seal, or the *first* one. Each counts once."""
        for event in events:
            if seal.time - max(event.time, first.time) > _LATE:
                self._odd_times[_SEALED_LATE] += 1
            elif first.time - event.time > _LATE:
                self._odd_times[_OLDER_THAN_SEALS] += 1
            elif event.time - seal.time > _AHEAD:
                self._odd_times[_SEALED_BEFORE] += 1

    def _compare_checkpoints(self, seals: Mapping[int, Seal]) -> None:
        """Compare the checkpoints with the seals that they name."""
        last = self._last.number if self._last else 0
        for checkpoint in self._checkpoints:
            seal = seals.get(checkpoint.seal_number)
            if seal is None:
                self._problem(
                    f"the checkpoint names seal {checkpoint.seal_number}, and the last one is {last}: "
                    "events were removed, or an older backup was restored"
                )
            elif (seal.hash.hex(), seal.event_count) != (checkpoint.head_hash, checkpoint.event_count):
                self._problem(
                    f"seal {seal.number} is not that of the checkpoint: "
                    "the log was rewritten, or an older backup was restored"
                )

    def _compare_removals(self, seals: Mapping[int, Seal], removals: Sequence[_Removal]) -> None:
        """Compare the events about removals with the seals that they name, and note each removal."""
        for removal in removals:
            seal = seals.get(removal.number)
            if seal is None or seal.hash.hex() != removal.hash:
                self._problem(f"the purge of {removal.time:%F %T}Z names seal {removal.number}, which does not exist")
            self._found.notes.append(
                f"events of sessions under the seals up to {removal.number} were removed at {removal.time:%F %T}Z"
            )

    def _verify_unsealed(self) -> None:
        self._operator.execute("avoid_nested_loops", enabled="off")
        (unsealed,) = self._rows("unsealed_events", _Unsealed)
        self._found.unsealed = unsealed.number
        if unsealed.copies:
            self._problem(f"{unsealed.copies} events have the id of an event that is sealed at another level")
        if unsealed.oldest is None or unsealed.now - unsealed.oldest <= _UNSEALED_LIMIT:
            return
        text = f"events that are not sealed since {unsealed.oldest:%F %T}Z: {unsealed.number}"
        if self._last is None or self._last.time - unsealed.oldest <= _UNSEALED_LIMIT:
            self._found.notes.append(f"{text}. A server seals them within seconds")
        elif unsealed.overtaken is not None and unsealed.now - unsealed.overtaken > _LATE:
            self._problem(f"{text}. Events that were written later are sealed since {unsealed.overtaken:%F %T}Z")
        else:
            self._found.notes.append(
                f"{text} (a clock was set back, or they were added later). A server scans the whole log again every "
                f"ten minutes, and seals them: verify again after {unsealed.now + _UNSEALED_LIMIT:%F %T}Z"
            )

    def _verify_changes(self, removed_until: datetime) -> None:
        (changes,) = self._rows("unaudited_changes", _Changes, removed_until=removed_until)
        self._operator.execute("avoid_nested_loops", enabled="on")
        if changes.elsewhere:
            self._problem(f"{changes.elsewhere} versions of items have the audit event of another level or item")
        if changes.nowhere:
            self._problem(f"{changes.nowhere} versions of items have no audit event")
        if changes.not_compared:
            self._found.notes.append(
                f"{changes.not_compared} versions of items are older than a removal of events, and were not compared"
            )

    def _removals(self) -> list[_Removal]:
        found = ((row.time, REMOVAL.fullmatch(row.reason or "")) for row in self._rows("list_removals", _Reason))
        label = self._found.classification.name
        return [_Removal(time, int(match[2]), match[3]) for time, match in found if match and match[1] == label]

    def _problem(self, text: str) -> None:
        self._found.problems.append(text)

    def _rows(self, name: str, row: type[_R], **parameters: object) -> list[_R]:
        return self._operator.rows(name, row, **self._key, **parameters)
