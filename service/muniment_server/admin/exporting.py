"""The audit log as a stream for other systems: the events of each seal, and then the seal.

Whoever has the seals of a chain without a gap, and the events whose hash each has, lacks nothing: `export_checking`
looks. An event is exported once it is sealed, which takes seconds.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

from muniment.cli.failures import Failure
from muniment_server.admin.connection import Operator
from muniment_server.admin.sealing import Checkpoint, SealedEvent, next_seals
from muniment_server.domain.classification import LABELS_OF_CHAINS, Classification, Label
from muniment_server.domain.ids import AgentNumber
from muniment_server.domain.items import ItemKind
from muniment_server.domain.seals import Seal

Record: TypeAlias = dict[str, Any]
Cursor: TypeAlias = dict[Label, Checkpoint]
"""The last seal of each level that was exported."""

_OCSF = "1.6.0"
_API_ACTIVITY, _OTHER = 6003, 99
_ACTIVITIES: Mapping[int, tuple[str, ...]] = {
    1: ("Create", "Open", "Save", "Store", "Import"),
    2: ("Get", "List", "Search", "Render"),
    3: ("Update", "Rename", "Raise", "Reset"),
    4: ("Delete", "Erase", "Close"),
}
"""What methods do, in OCSF's numbers: create, read, update, delete."""
_PRIORITY = {True: 13 * 8 + 6, False: 13 * 8 + 5}
"""Of syslog: the facility `log audit`, informational, or notice for what did not succeed."""


@dataclass(frozen=True, slots=True)
class _Named:
    agent: AgentNumber
    agent_id: str


def new_records(operator: Operator, tenant: str, ceiling: Classification, cursor: Cursor) -> Iterator[list[Record]]:
    """What was sealed at each level up to *ceiling* after *cursor*, seal by seal. *cursor* goes along."""
    number = operator.tenant(tenant)
    for level in (label for label in Label if label.level.can_flow_to(ceiling)):
        while True:
            with operator.connection.transaction():
                operator.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                seals = next_seals(operator, number, level, cursor[level].seal_number if level in cursor else 0)
                names = _names(operator, seals)
            for seal, events in seals:
                cursor[level] = Checkpoint(level, seal.number, seal.event_count, seal.hash.hex())
                yield [
                    *({"type": "event", "tenant_name": tenant, **_plain(event), "agent_id": names.get(event.agent)}
                      for event in events),
                    {"type": "seal", "tenant_name": tenant, **_plain(seal)},
                ]  # fmt: skip
            if not seals:
                break


def _names(operator: Operator, seals: list[tuple[Seal, list[SealedEvent]]]) -> dict[AgentNumber | None, str]:
    numbers = {event.agent for _, events in seals for event in events if event.agent is not None}
    return {named.agent: named.agent_id for named in operator.rows("name_agents", _Named, numbers=[*numbers])}


def require_known(operator: Operator, tenant: str, cursor: Cursor) -> None:
    """Raise Failure if the log no longer has the seals of *cursor*: a stream that went on would not be its rest."""
    number = operator.tenant(tenant)
    for level, last in cursor.items():
        seals = next_seals(operator, number, level, last.seal_number - 1)
        if not seals or (seals[0][0].number, seals[0][0].hash.hex()) != (last.seal_number, last.head_hash):
            raise Failure(
                f"the log does not have the seal {last.seal_number} of {level.name} that was exported: it was "
                "rewritten, or an older backup was restored",
                "run `muniment audit verify`, keep what was exported, and begin another export with another cursor",
            )


def save_cursor(file: Path, tenant: str, cursor: Cursor) -> None:
    """Write *cursor* as checkpoints, so that `muniment audit verify --checkpoint` takes it, too."""
    part = file.with_name(f"{file.name}.part")
    rows = ({"tenant": tenant, **asdict(each), "classification": each.classification.name} for each in cursor.values())
    part.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    part.replace(file)


def _plain(row: SealedEvent | Seal) -> Record:
    """All fields. The number of an agent is text: many programs keep only 53 bits of a number."""
    plain = {name: _value(value) for name, value in asdict(row).items()}
    plain.pop("chain", None)
    plain["level"] = LABELS_OF_CHAINS[row.level if isinstance(row, Seal) else row.chain].name
    return plain | {"agent": str(plain["agent"])} if plain.get("agent") is not None else plain


def _value(value: object) -> object:
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case UUID():
            return str(value)
        case bytes():
            return value.hex()
    return value


def as_jsonl(record: Record) -> str:
    """A record as a line of JSON."""
    return json.dumps(record)


def as_ocsf(record: Record) -> str:
    """A record as OCSF's API Activity, with the whole of it in `unmapped`. The log knows callers, and no addresses."""
    is_seal = record["type"] == "seal"
    method = "seal" if is_seal else record["method"]
    activity = next((number for number, names in _ACTIVITIES.items() if method.startswith(names)), _OTHER)
    caller = "muniment" if is_seal else record["session_id"] or record["host_key_id"] or "operator"
    event = {
        "activity_id": activity,
        "activity_name": method,
        "category_uid": 6,
        "class_uid": _API_ACTIVITY,
        "type_uid": _API_ACTIVITY * 100 + activity,
        "severity_id": 1 if _succeeded(record) else 2,
        "status_id": 1 if _succeeded(record) else 2,
        "status_code": record.get("outcome", "OK"),
        "time": round(datetime.fromisoformat(record["time"]).timestamp() * 1000),
        "metadata": {
            "version": _OCSF,
            "product": {"name": "Muniment", "vendor_name": "Muniment"},
            "uid": record["hash"] if is_seal else record["event_id"],
            "log_name": "audit",
            "tenant_uid": record["tenant_name"],
        },
        "actor": {"app_uid": caller},
        "src_endpoint": {"name": caller},
        "api": {"operation": method, "service": {"name": "muniment.v1"}},
        "unmapped": {"muniment": record},
    }
    if record.get("item_id"):
        event["resources"] = [{"uid": record["item_id"], "type": ItemKind(record["kind"]).name.lower()}]
    return json.dumps(event)


def as_syslog(record: Record, line: str) -> str:
    """A line of RFC 5424 with *line* as its message."""
    priority = _PRIORITY[_succeeded(record)]
    return f"<{priority}>1 {record['time']} {socket.gethostname()} muniment - {record['type']} - {line}"


def _succeeded(record: Record) -> bool:
    return bool(record.get("outcome", "OK") == "OK")


FORMATS: Mapping[str, Callable[[Record], str]] = {"jsonl": as_jsonl, "ocsf": as_ocsf}
