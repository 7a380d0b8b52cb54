"""What was erased and revoked, so that the restore of an older backup can repeat it.

An entry is a row of the audit log: it has ids only, no names and no content. The number of a tenant is random, so the
journal of another database finds nothing to erase.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.postgres import queries
from muniment_server.postgres.rows import row_of

_QUERIES = {**queries.load("muniment_server.agents", "erasing.sql"), **queries.load(__package__, "journal.sql")}
_ERASING_STEPS = ("unindex_erased", "erase_items_of_call", "erase_revisions_of_call")


@dataclass(frozen=True, slots=True)
class Entry:
    """An item or a revision that was erased, an agent that was deleted, or a host key that was revoked."""

    tenant: TenantNumber
    event_id: UUID
    time: datetime
    agent: AgentNumber | None
    level: Classification
    host_key_id: UUID | None
    method: str
    kind: int | None
    item_id: UUID | None
    revision: int | None
    """None: all of the item."""


def to_line(entry: Entry) -> str:
    """An entry as a JSON object."""
    return json.dumps(asdict(entry), default=str)


def from_line(line: str) -> Entry:
    """The entry in a line. Raises ValueError, TypeError or KeyError."""
    row = dict(json.loads(line))
    ids = {name: row[name] and UUID(row[name]) for name in ("event_id", "host_key_id", "item_id")}
    level, time = Classification(row["level"]), datetime.fromisoformat(row["time"])
    return Entry(**{**row, **ids, "level": level, "time": time})


def entries(connection: psycopg.Connection[Any]) -> list[Entry]:
    """The journal of the database, oldest entry first. *connection* acts as the owner."""
    return _rows(connection, "list_entries")


def replay(connection: psycopg.Connection[Any], given: Sequence[Entry]) -> int:
    """Repeat those of the *given* entries that the database has not seen, in one transaction; return how many.

    *connection* acts as the owner, of a database that no server uses.
    """
    rows = Jsonb([asdict(entry) for entry in given], dumps=partial(json.dumps, default=str))
    with connection.transaction():
        added = _rows(connection, "add_entries", entries=rows)
        for entry in added:
            if entry.method == "host-key revoke":
                _execute(connection, "revoke_again", entry)
            elif entry.method == "DeleteAgent":
                _execute(connection, "delete_agent_again", entry)
        erased = sorted((entry for entry in added if entry.item_id is not None), key=_place)
        for _, of_place in groupby(erased, _place):
            _erase(connection, list(of_place))
    return len(added)


def _place(entry: Entry) -> tuple[int, int, int, int, int]:
    """Where an item was, with the revision: what one statement can erase together."""
    return (entry.tenant, entry.agent or 0, entry.level, entry.kind or 0, entry.revision or 0)


def _erase(connection: psycopg.Connection[Any], entries: Sequence[Entry]) -> None:
    """Erase items of one place by the statements of EraseItems."""
    first = entries[0]
    item_ids = [entry.item_id for entry in entries]
    connection.execute(_QUERIES["use_schema"], {"schema": first.level.role})
    _execute(connection, "order_again", first)
    for step in _ERASING_STEPS:
        _execute(connection, step, first, item_ids=item_ids, change_id=uuid4(), most=None)
    _execute(connection, "end_order", first)


def _execute(connection: psycopg.Connection[Any], query: str, entry: Entry, **more: object) -> None:
    fields = {name: getattr(entry, name) for name in Entry.__slots__}
    connection.execute(_QUERIES[query], {**fields, **more})


def _rows(connection: psycopg.Connection[Any], query: str, **parameters: object) -> list[Entry]:
    cursor: Any = connection.cursor(row_factory=row_of(Entry))
    found: list[Entry] = cursor.execute(_QUERIES[query], parameters).fetchall()
    return found
