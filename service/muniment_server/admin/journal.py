"""What was erased, revoked and frozen, so that the restore of an older backup can repeat it.

An entry is a row of the audit log: it has ids only, no names and no content. Tenants are numbered 1, 2, … in every
database, so a journal names its database, by the time at which its first migration was applied. A backup has that too,
and so has every copy that is restored from it.

```
{"format": "muniment journal", "version": 1, "database": "2026-11-23 …", "time": "2026-11-24 …"}
{"tenant": 1, "event_id": "fedc…", "time": "2026-11-23 …", …, "method": "DeleteAgent", …}
{"entries": 1, "sha256": "9f86…"}
```

The hash covers the lines above it. It shows damage, not forgery: anyone who edits a journal can compute it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from muniment_server.admin.connection import QUERIES
from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.domain.items import ItemKind
from muniment_server.postgres import queries
from muniment_server.postgres.engine import engine_of
from muniment_server.postgres.rows import rows_of
from muniment_server.postgres.transaction import lift_idle_timeout
from muniment_server.runtime.claims import RANGE

_QUERIES = {
    **queries.load("muniment_server.agents", "erasing.sql"),
    **QUERIES,
    **queries.load(__package__, "journal.sql"),
}
_BATCH_ENTRIES = 10_000
"""How many entries one statement adds: a value of Postgres has at most 1 GiB, a jsonb array 256 MiB."""
_ERASING_STEPS = ("clear_centers", "unindex_erased", "erase_items_of_call", "erase_revisions_of_call")
_FORMAT = {"format": "muniment journal", "version": 1}
_OPTIONAL = ("agent", "host_key_id", "kind", "item_id", "revision")
_ONE_KEY = ({"host_key_id"}, {"host_key_id"})
_FIELDS_OF = {
    "EraseItems": ({"agent", "kind", "item_id"}, set(_OPTIONAL)),
    "DeleteAgent": ({"agent"}, {"agent", "host_key_id"}),
    "host-key revoke": _ONE_KEY,
    "tenant freeze": _ONE_KEY,
    "tenant thaw": _ONE_KEY,
}
"""Which of the optional fields an entry of each method must have, and which it may have."""
_REPEATED_BY = {
    "DeleteAgent": "delete_agent_again",
    "host-key revoke": "revoke_again",
    "tenant freeze": "freeze_again",
    "tenant thaw": "thaw_again",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """An item or a revision that was erased, an agent that was deleted, or a host key: revoked, frozen or thawed."""

    tenant: TenantNumber
    event_id: UUID
    time: datetime
    agent: AgentNumber | None
    level: Classification
    host_key_id: UUID | None
    method: str
    kind: ItemKind | None
    item_id: UUID | None
    revision: int | None
    """None: all of the item."""


@dataclass(frozen=True, slots=True)
class Journal:
    """The entries of one database at one time, oldest first."""

    database: datetime
    """When its first migration was applied, which tells it from other databases, but not from copies of it."""
    time: datetime
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class _Origin:
    database: datetime
    time: datetime


def to_bytes(journal: Journal) -> bytes:
    """A journal as a file has it."""
    header = {**_FORMAT, "database": journal.database, "time": journal.time}
    lines = b"".join(_line(each) for each in (header, *map(asdict, journal.entries)))
    return lines + _line({"entries": len(journal.entries), "sha256": hashlib.sha256(lines).hexdigest()})


def from_bytes(content: bytes) -> Journal:
    """The journal in a file. Raises ValueError if that is cut off, was changed, or has an entry that none is."""
    try:
        header, *lines, _ = map(json.loads, content.splitlines())
        database, time = (datetime.fromisoformat(header[name]) for name in ("database", "time"))
        journal = Journal(database, time, tuple(map(_entry, lines)))
    except (TypeError, KeyError, AttributeError, RecursionError) as error:  # values of another type, or nested too deep
        raise ValueError(str(error)) from None
    if to_bytes(journal) != content:
        raise ValueError("the lines are not those that were written")
    return journal


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, default=str).encode() + b"\n"


def _entry(row: dict[str, Any]) -> Entry:
    """The entry of a line. Raises ValueError, TypeError, KeyError or AttributeError."""
    entry = Entry(
        tenant=TenantNumber(_whole(row["tenant"], 63)),
        event_id=UUID(row["event_id"]),
        time=datetime.fromisoformat(row["time"]),
        agent=None if row["agent"] is None else AgentNumber(_whole(row["agent"], 63)),
        level=Classification(_whole(row["level"], 15)),
        host_key_id=None if row["host_key_id"] is None else UUID(row["host_key_id"]),
        method=row["method"],
        kind=None if row["kind"] is None else ItemKind(_whole(row["kind"], 15)),
        item_id=None if row["item_id"] is None else UUID(row["item_id"]),
        revision=None if row["revision"] is None else _whole(row["revision"], 31),
    )
    required, allowed = _FIELDS_OF[entry.method]
    found = {name for name in _OPTIONAL if getattr(entry, name) is not None}
    if not required <= found <= allowed or entry.time.tzinfo is None:
        raise ValueError(f"{entry.method} with {found}")
    return entry


def _whole(value: object, bits: int) -> int:
    """*value*, a positive whole number of at most that many bits."""
    if type(value) is not int or not 0 < value < 2**bits:
        raise ValueError(f"{value!r} is out of range")
    return value


def journal_of(connection: psycopg.Connection[Any]) -> Journal:
    """The journal of the database. *connection* acts as the owner."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        lift_idle_timeout(connection)
        (origin,) = rows_of(connection, _QUERIES, "journal_origin", _Origin)
        return Journal(origin.database, origin.time, tuple(rows_of(connection, _QUERIES, "list_entries", Entry)))


def replay(connection: psycopg.Connection[Any], given: Sequence[Entry]) -> int:
    """Repeat those of the *given* entries that the database has not seen, in one transaction; return how many.

    What the database lacks, such as an agent that was created after the backup, is left alone. The audit log gets its
    entries all the same, or the next journal would lack them. *connection* acts as the owner, of a database that no
    server uses.
    """
    with connection.transaction():
        lift_idle_timeout(connection)
        engine = engine_of(connection)
        texts = {name: engine.text(query) for name, query in _QUERIES.items()}
        added = sorted(_add(connection, given), key=lambda entry: entry.time)
        for entry in added:
            if entry.method in _REPEATED_BY:
                _execute(connection, texts[_REPEATED_BY[entry.method]], entry)
        erased = sorted((entry for entry in added if entry.method == "EraseItems"), key=_place)
        for _, of_place in groupby(erased, _place):
            _erase(connection, texts, list(of_place))
    return len(added)


def _add(connection: psycopg.Connection[Any], given: Sequence[Entry]) -> Iterator[Entry]:
    """Add the *given* entries to the audit log; yield those that it did not have."""
    for start in range(0, len(given), _BATCH_ENTRIES):
        batch = given[start : start + _BATCH_ENTRIES]
        numbers = list({entry.tenant for entry in batch})
        connection.execute(_QUERIES["skip_tenant_numbers"], {"tenants": numbers, "range": RANGE})
        rows = Jsonb([asdict(entry) for entry in batch], dumps=partial(json.dumps, default=str))
        yield from rows_of(connection, _QUERIES, "add_entries", Entry, entries=rows)


def _place(entry: Entry) -> tuple[int, int, int, int, int]:
    """Where an item was, with the revision: what one statement can erase together."""
    return (entry.tenant, entry.agent or 0, entry.level, entry.kind or 0, entry.revision or 0)


def _erase(connection: psycopg.Connection[Any], texts: Mapping[str, str], entries: Sequence[Entry]) -> None:
    """Erase items of one place by the statements of EraseItems. An entry does not say whether they were trusted."""
    first = entries[0]
    item_ids = [entry.item_id for entry in entries]
    _execute(connection, texts["order_again"], first)
    for label in (label for label in Label if label.level is first.level):
        connection.execute(_QUERIES["use_schema"], {"schema": label.role})
        for step in _ERASING_STEPS:
            _execute(connection, texts[step], first, item_ids=item_ids, change_id=uuid4(), most=None)
    _execute(connection, texts["end_order"], first)


def _execute(connection: psycopg.Connection[Any], query: str, entry: Entry, **more: object) -> None:
    fields = {name: getattr(entry, name) for name in Entry.__slots__}
    connection.execute(query, {**fields, **more})
