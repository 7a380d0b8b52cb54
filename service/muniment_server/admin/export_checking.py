"""What the receiver of an exported audit log can prove of it, without the database."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from muniment.cli.failures import Failure
from muniment_server.admin.exporting import Record
from muniment_server.admin.sealing import REMOVAL, Checkpoint
from muniment_server.domain.classification import Label
from muniment_server.domain.seals import Seal, SealableEvent, hash_of_events

_EVENT, _SEAL = ({each.name for each in fields(kind)} for kind in (SealableEvent, Seal))
_IDS = ("event_id", "session_id", "host_key_id", "item_id")


NOT_EXPORTED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What is raised for a line that is not of an exported audit log."""


def record_of(line: str) -> Record:
    """The record that a line has, in each form of an export. Raises one of NOT_EXPORTED."""
    found: dict[str, Any] = json.loads(line[max(line.find("{"), 0) :])
    record: Record = found["unmapped"]["muniment"] if "unmapped" in found else found
    return record


@dataclass(slots=True)
class Checked:
    """What was found at one level."""

    classification: Label
    first: int = 0
    last: int = 0
    """The first and the last seal."""
    events: int = 0
    removed: int = 0
    """Seals of which a sealed event says that `muniment audit purge` has removed their events."""
    unsealed: int = 0
    """Events after the last seal, which prove nothing yet."""
    problems: list[str] = field(default_factory=list)


class Export:
    """An exported log of one tenant, taken line by line. Lines may be repeated, and in any order."""

    def __init__(self, tenant: str | None = None) -> None:
        """Without a *tenant*, it is that of the first line."""
        self.tenant = tenant
        self._seals = defaultdict[Label, dict[int, Seal]](dict)
        self._events = defaultdict[tuple[Label, int], dict[UUID, SealableEvent]](dict)
        """Those of seals that have not come, or that cover others."""
        self._counts = defaultdict[Label, Counter[int]](Counter)
        """How many events a seal covers, once they are there."""
        self._removed = Counter[str]()
        """Up to which seal of a level events were removed."""

    def read(self, lines: Iterable[str]) -> None:
        """Take *lines*. Raises Failure."""
        for number, line in enumerate(lines, 1):
            try:
                self.add(record_of(line))
            except NOT_EXPORTED:
                raise Failure(
                    f"line {number} is not of an exported audit log", "give the file as it was received"
                ) from None

    @property
    def removed(self) -> Mapping[str, int]:
        """By label: up to which seal `muniment audit purge` has removed events of sessions, as a sealed event says."""
        return self._removed

    def add(self, record: Record) -> None:
        """Take one record. Raises one of NOT_EXPORTED."""
        self.tenant = self.tenant or record["tenant_name"]
        if record["tenant_name"] != self.tenant:
            return
        label = Label[record["level"]]
        given = {**record, "level": label.chain, "chain": label.chain, "time": datetime.fromisoformat(record["time"])}
        key = (label, record["number"])
        if record["type"] == "seal":
            hashes = {name: bytes.fromhex(given[name]) for name in ("events_hash", "hash")}
            self._seals[key[0]][key[1]] = Seal(**_only(_SEAL, given | hashes))
            self._close(*key)
            return
        ids = {name: UUID(given[name]) if given[name] else None for name in _IDS}
        agent = int(given["agent"]) if given["agent"] is not None else None
        event = SealableEvent(**_only(_EVENT, given | ids | {"agent": agent}))
        self._events[key][event.event_id] = event

    def _close(self, level: Label, number: int) -> None:
        """Count the events under a seal, and forget them, if they are those that it covers."""
        events = self._events.get((level, number), {}).values()
        if events and hash_of_events(events) == self._seals[level][number].events_hash:
            self._counts[level][number] = len(events)
            for event in filter(lambda each: each.method == "audit purge", events):
                if removal := REMOVAL.fullmatch(event.reason or ""):
                    self._removed[removal[1]] = max(self._removed[removal[1]], int(removal[2]))
            del self._events[level, number]

    def check(self, checkpoints: Sequence[Checkpoint]) -> Iterator[Checked]:
        """What the export proves, level by level."""
        for level, number in [*self._events]:
            if number in self._seals[level]:
                self._close(level, number)
        levels = {*self._seals, *(level for level, _ in self._events), *(one.classification for one in checkpoints)}
        for level in sorted(levels, key=lambda label: label.value):
            yield self._check(level, [one for one in checkpoints if one.classification is level])

    def _check(self, level: Label, checkpoints: Sequence[Checkpoint]) -> Checked:
        seals, counts = self._seals[level], self._counts[level]
        numbers = sorted(seals)
        found = Checked(level, min(numbers, default=0), max(numbers, default=0), counts.total())
        waiting = {number: len(events) for (at, number), events in self._events.items() if at is level}
        gone = [number for number in numbers if number not in counts and number not in waiting]
        found.removed = sum(not seals[number].by_host and number <= self._removed[level.name] for number in gone)
        wrong = len(gone) - found.removed + sum(number <= found.last for number in waiting)
        found.unsealed = sum(count for number, count in waiting.items() if number > found.last)
        if wrong:
            found.problems.append(f"seals whose events are not those that they cover: {wrong}")
        if numbers and found.last - found.first >= len(numbers):
            found.problems.append(f"{found.last - found.first + 1 - len(numbers)} seals are missing")
        found.problems.extend(self._unlinked(level, numbers))
        found.problems.extend(self._compare(level, found, checkpoints))
        return found

    def _unlinked(self, level: Label, numbers: Sequence[int]) -> Iterator[str]:
        seals = self._seals[level]
        for number in numbers:
            before = seals.get(number - 1)
            if (before or number == 1) and not seals[number].is_next_of(before):
                yield f"seal {number} does not follow the one before"

    def _compare(self, level: Label, found: Checked, checkpoints: Sequence[Checkpoint]) -> Iterator[str]:
        """What the checkpoints say otherwise. One before the first seal says what this follows."""
        for one in checkpoints:
            seal = self._seals[level].get(one.seal_number)
            if one.seal_number > found.last:
                yield f"the export ends with seal {found.last}, and the checkpoint names seal {one.seal_number}"
            elif seal is not None and (seal.hash.hex(), seal.event_count) != (one.head_hash, one.event_count):
                yield f"seal {seal.number} is not that of the checkpoint"
            elif one.seal_number == found.first - 1:
                first = self._seals[level][found.first]
                before = replace(first, number=one.seal_number, hash=bytes.fromhex(one.head_hash))
                if not first.is_next_of(before):
                    yield f"seal {first.number} does not follow that of the checkpoint"


def _only(names: set[str], given: dict[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in names}
