"""Compares the audit log, as the server shows it, with what `muniment audit export` has written elsewhere.

The export proves by its seals that it lacks nothing, and the server's checkpoints say up to where. Then each event that
the server lists must be one of the export, and each of the export must be listed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import muniment
from muniment import AuditCheckpoint, AuditEvent, HostClient
from muniment.cli.failures import Failure
from muniment_server.admin.export_checking import NOT_EXPORTED, Checked, Export, record_of
from muniment_server.admin.sealing import Checkpoint
from muniment_server.domain.classification import Classification, Integrity, Label
from muniment_server.process.input_files import open_file

_SEALED_WITHIN = timedelta(minutes=15)
"""An event that is older than the last seal by more is sealed, or was added later. Servers seal within seconds."""


class Verdict(Enum):
    """What the export says of an event that the server lists."""

    SEALED = "as sealed"
    UNKNOWN = "not exported"
    CHANGED = "changed"
    ADDED = "not sealed"


Place: TypeAlias = tuple[datetime, str]
"""The time and the id of an event, by which the log is ordered."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the log: from *oldest* to before *newest*; of one session, if it is named."""

    oldest: Place
    newest: Place
    session_id: str = ""

    def has(self, session_id: str | None) -> bool:
        """Whether it has events of this session."""
        return self.session_id in ("", session_id)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on each listed event, by id, and the labels of exported events that the server does not list."""

    verdicts: Mapping[str, Verdict]
    missing: Sequence[Label]

    @property
    def is_whole(self) -> bool:
        """Whether none is missing, changed or was added later."""
        return not self.missing and {Verdict.CHANGED, Verdict.ADDED}.isdisjoint(self.verdicts.values())

    @property
    def unknown(self) -> int:
        """How many were not exported: those of the last seconds, or from before the export."""
        return sum(verdict is Verdict.UNKNOWN for verdict in self.verdicts.values())


@dataclass(frozen=True, slots=True)
class _Event:
    digest: bytes
    agents: tuple[str | None, ...]
    """What its agent may be called: by name, and by number once it was deleted."""
    session_id: str | None
    label: Label
    seal: int
    by_host: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """One chain: its checkpoint now, and what the export proves of it. None: there is no export, or nothing of it."""

    label: Label
    checkpoint: AuditCheckpoint
    checked: Checked | None

    @property
    def behind(self) -> int:
        """How many seals the server has after the last one of the export; below 0, how many it has lost."""
        return self.checkpoint.seal_number - (self.checked.last if self.checked else 0)

    @property
    def problems(self) -> list[str]:
        """What shows that the log is not what was sealed."""
        lost = [f"the log ends {-self.behind} seals before the export: it was cut, or an older backup was restored"]
        return [*(self.checked.problems if self.checked else ()), *(lost if self.behind < 0 else ())]


def chains_of(host: HostClient, received: Received | None) -> list[Chain]:
    """Each chain, the highest first. Raises CeilingExceeded below RESTRICTED, and Failure for a file that is no export.

    The export is read first: what it has by then, the server must have, too.
    """
    if received:
        received.read()
    checkpoints = {
        label: host.get_audit_checkpoint(
            muniment.Classification(label.level), integrity=muniment.Integrity(label.integrity)
        )
        for label in Label
    }
    checked = received.check(checkpoints) if received else {}
    return [Chain(label, checkpoints[label], checked.get(label)) for label in [*Label][::-1]]


def state_of(chains: Sequence[Chain], compared: Comparison | None = None) -> str:
    """What is known of the log: `broken`, `behind`, if the export ends before it, or `whole`."""
    if any(each.problems for each in chains) or not (compared is None or compared.is_whole):
        return "broken"
    return "behind" if any(each.behind for each in chains) else "whole"


class Received:
    """The file of an export of one tenant, which may grow."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._export = Export()
        self._read = 0
        self._trail = _Trail(self._export)
        self._lock = Lock()

    def read(self) -> None:
        """Read the whole lines that were added since the last time. Raises Failure."""
        with self._lock, open_file(self._file) as opened:
            opened.seek(self._read)
            for line in opened:
                if not line.endswith(b"\n"):
                    return
                try:
                    self._add(record_of(line.decode()))
                except NOT_EXPORTED:
                    raise Failure(f"{self._file} has a line that is not of an exported audit log") from None
                self._read += len(line)

    def _add(self, record: dict[str, Any]) -> None:
        self._export.add(record)
        if record["tenant_name"] == self._export.tenant:
            self._trail.add(record)

    def check(self, checkpoints: Mapping[Label, AuditCheckpoint]) -> dict[Label, Checked]:
        """What the lines read so far prove, compared with those of *checkpoints* that they reach."""
        with self._lock:
            reached = [
                Checkpoint(label, each.seal_number, each.event_count, each.head_hash)
                for label, each in checkpoints.items()
                if 0 < each.seal_number <= self._trail.last_seal(label)
            ]
            return {each.classification: each for each in self._export.check(reached)}

    def compare(self, listed: Sequence[AuditEvent], span: Span) -> Comparison:
        """Compare what was read with the events that the server *listed* in *span*."""
        with self._lock:
            return self._trail.compare(listed, span)


@dataclass(slots=True)
class _Trail:
    """The events of an export by id, and in their order."""

    _export: Export
    _events: dict[str, _Event] = field(default_factory=dict)
    _places: list[Place] = field(default_factory=list)
    _added: list[Place] = field(default_factory=list)
    _ends: dict[Label, tuple[tuple[int, datetime], tuple[int, datetime]]] = field(default_factory=dict)
    """The numbers and times of the first and the last seal of each chain."""

    def add(self, record: Mapping[str, Any]) -> None:
        """Take a record of the export."""
        label, number, time = Label[record["level"]], record["number"], datetime.fromisoformat(record["time"])
        if record["type"] == "seal":
            first, last = self._ends.get(label, ((number, time), (number, time)))
            self._ends[label] = min(first, (number, time)), max(last, (number, time))
        elif record["event_id"] not in self._events:
            self._added.append((time, record["event_id"]))
            self._events[record["event_id"]] = _Event(
                digest=_digest(label, time, record),
                agents=(record["agent_id"], *([] if record["agent"] is None else [f"~{record['agent']}"])),
                session_id=record["session_id"],
                label=label,
                seal=number,
                by_host=record["by_host"],
            )

    def last_seal(self, label: Label) -> int:
        """The number of the last seal of a chain, 0 if there is none."""
        return self._ends[label][1][0] if label in self._ends else 0

    def compare(self, listed: Sequence[AuditEvent], span: Span) -> Comparison:
        """Compare it with the events that the server *listed* in *span*."""
        if self._added:
            self._places, self._added = sorted([*self._places, *self._added]), []
        verdicts = {event.event_id: self._verdict(event) for event in listed}
        places = self._places[bisect_left(self._places, span.oldest) : bisect_left(self._places, span.newest)]
        unlisted = (self._events[event_id] for _, event_id in places if event_id not in verdicts)
        missing = [each.label for each in unlisted if span.has(each.session_id) and not self._is_removed(each)]
        return Comparison(verdicts, missing)

    def _verdict(self, event: AuditEvent) -> Verdict:
        label = Label.of(Classification(event.classification), Integrity(event.integrity))
        known = self._events.get(event.event_id)
        if known is None:
            return Verdict.ADDED if self._covers(label, event.time) else Verdict.UNKNOWN
        given = {name: getattr(event, name) for name in _COMPARED}
        is_same = known.digest == _digest(label, event.time, given) and event.agent_id in known.agents
        return Verdict.SEALED if is_same else Verdict.CHANGED

    def _covers(self, label: Label, time: datetime) -> bool:
        """Whether an event of this time is in the export, if it was sealed in time."""
        if label not in self._ends:
            return False
        (first, begin), (_, end) = self._ends[label]
        return (first == 1 or time > begin) and time < end - _SEALED_WITHIN

    def _is_removed(self, event: _Event) -> bool:
        """Whether `muniment audit purge` has removed it, as a sealed event says."""
        return not event.by_host and event.seal <= self._export.removed.get(event.label.name, 0)


_COMPARED: Sequence[str] = (
    "event_id", "session_id", "host_key_id", "method", "outcome", "kind", "item_id", "revision", "result_count",
    "reason",
)  # fmt: skip


def _digest(label: Label, time: datetime, fields: Mapping[str, Any]) -> bytes:
    """The hash of all that the server lists of an event, except the name of its agent."""
    text = repr([label.name, time.astimezone(UTC).isoformat(), *(_text(fields[name]) for name in _COMPARED)])
    return blake2b(text.encode(), digest_size=16).digest()


def _text(value: str | int | None) -> str:
    """A field as text; the number of an enum's value. Absent and empty fields are the same."""
    return "" if not value else str(int(value)) if isinstance(value, int) else value
