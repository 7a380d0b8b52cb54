"""Reads the SQLite file in which docker-agent stores memories: each row becomes a note, oldest first.

The table is `memories(id, created_at, memory, category)`, without `category` in old files. A column `tier` or `target`
(docker-agent #3019) is `memory` or `user`; if it is missing or empty, the row becomes a note of the agent. Notes have
no categories, so these are dropped. Empty rows and repeated texts are skipped. The file is opened read-only, and its
content is not trusted: the table may be an endless view, or a row may be larger than any note.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from muniment import Classification, Tier
from muniment.cli.transfer.fields import in_utc, time_of
from muniment.cli.transfer.items import NoteItem, Reading, Unreadable, checked, derived_id

MAGIC = b"SQLite format 3\0"
_READ_VERSION = 19
"""The offset in the header of the byte that is 2 if the file has a write-ahead log."""
_REQUIRED = {"id", "created_at", "memory"}
_TIER_COLUMNS = ("tier", "target")
_MAX_ROWS = 100_000
_MAX_BYTES = 64 * 1024 * 1024
"""The size limit of the text in all rows. Notes at the largest budgets take 8 MB."""
_MAX_ROW_BYTES = 1024 * 1024
_MAX_STEPS = 20_000_000
"""How many steps SQLite's virtual machine may run. A row takes about twenty."""
_FORM = "is not a memory file of docker-agent: there is no table `memories` with `id`, `created_at` and `memory`"
_TOO_MUCH = f"is too large: {_MAX_ROWS:,} rows are read, and {_MAX_BYTES // 1024**2} MiB"


@dataclass(frozen=True, slots=True)
class _Row:
    """One memory of docker-agent."""

    where: str
    own_id: str
    created_at: str
    memory: str
    category: str
    tier: Tier


def read(file: Path, level: Classification, *, agent_id: str) -> Reading:
    """A note for each row. Raises Unreadable."""
    with _opened(file) as database:
        rows = _oldest_first(list(_rows(database)))
    first = {(row.tier, row.memory): row for row in reversed(rows) if row.memory}
    kept = [row for row in rows if first.get((row.tier, row.memory)) is row]
    return Reading(checked(_note(row, level, agent_id) for row in kept), _remarks(rows, kept))


def _note(row: _Row, level: Classification, agent_id: str) -> NoteItem:
    note_id = derived_id(agent_id, "docker-agent", row.own_id)
    return NoteItem(row.where, level, tier=row.tier, note_id=note_id, content=row.memory)


def _remarks(rows: list[_Row], kept: list[_Row]) -> tuple[str, ...]:
    said = []
    categories = sum(bool(row.category) for row in kept)
    if categories:
        said.append(f"omitted categories, which notes do not have: {categories}")
    if len(kept) < len(rows):
        said.append(f"omitted rows that are empty or repeat an earlier one: {len(rows) - len(kept)}")
    return tuple(said)


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open the database read-only. If it was closed cleanly, SQLite creates no file next to it, either."""
    with file.open("rb") as opened:
        header = opened.read(100)
    log = file.with_name(file.name + "-wal")
    closed = header[_READ_VERSION : _READ_VERSION + 1] == b"\2" and not log.exists()
    address = f"file:{quote(str(file.absolute()))}?mode=ro{'&immutable=1' if closed else ''}"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            _distrust(database)
            yield database
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_INTERRUPT):
            raise Unreadable("", _TOO_MUCH) from None
        raise Unreadable(
            "", "SQLite cannot read the file", "if docker-agent is using it, stop that, and import a copy"
        ) from None


def _distrust(database: sqlite3.Connection) -> None:
    """Keep the file from running endless queries or making large values: SQLite's "Defense Against The Dark Arts"."""
    database.execute("PRAGMA trusted_schema=OFF")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_ROW_BYTES)
    database.set_progress_handler(lambda: 1, _MAX_STEPS)


def _rows(database: sqlite3.Connection) -> Iterator[_Row]:
    """The rows, in the order in which they were added."""
    _require_table(database)
    database.row_factory = sqlite3.Row
    size = 0
    for number, found in enumerate(database.execute("SELECT * FROM memories ORDER BY rowid"), start=1):
        row = _row(f"row {number}", found)
        size += sum(map(len, (row.own_id, row.created_at, row.memory, row.category)))
        if number > _MAX_ROWS or size > _MAX_BYTES:
            raise Unreadable("", _TOO_MUCH)
        yield row


def _require_table(database: sqlite3.Connection) -> None:
    """Refuse a view, a virtual table (which has no pages of its own), and computed columns."""
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
    computed = {str(name): hidden for _, name, *_, hidden in database.execute("PRAGMA table_xinfo(memories)")}
    if ("memories",) not in tables or not computed.keys() >= _REQUIRED or any(computed.values()):
        raise Unreadable("", _FORM)


def _row(where: str, row: sqlite3.Row) -> _Row:
    def text(name: str) -> str:
        value = row[name] if name in row.keys() else None  # noqa: SIM118  # a Row is a sequence of values
        if not isinstance(value, str | None):
            raise Unreadable(where, f"{name} must be text")
        return value or ""

    return _Row(
        where,
        own_id=text("id"),
        created_at=text("created_at"),
        memory=text("memory"),
        category=text("category"),
        tier=_tier(where, map(text, _TIER_COLUMNS)),
    )


def _tier(where: str, said: Iterable[str]) -> Tier:
    try:
        return Tier[next(filter(None, said), "memory").upper()]
    except KeyError:
        raise Unreadable(where, "its tier must be memory or user") from None


def _oldest_first(rows: list[_Row]) -> list[_Row]:
    """The rows by time if every row has one, otherwise by the text of the time; rows with equal times stay in order."""
    moments = {row.where: in_utc(moment) for row in rows if (moment := time_of(row.created_at)) is not None}
    if len(moments) < len(rows):
        return sorted(rows, key=lambda row: row.created_at)
    return sorted(rows, key=lambda row: moments[row.where])
