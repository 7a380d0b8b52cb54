"""The fence: every statement of a session goes through its row, at its level, or does nothing.

The row is found through the window of the level's role. If the taint was raised meanwhile, or the session
ended, the window is empty and the statement has no effect: StaleSession.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from muniment_server.domain.errors import StaleSession
from muniment_server.domain.ids import IdSource
from muniment_server.domain.records import ItemKind, SessionIdentity, Version
from muniment_server.postgres import queries
from muniment_server.postgres.deadline import Call
from muniment_server.postgres.pool import RoleConnection
from muniment_server.search.embeddings import Embed

_QUERIES = queries.load("items", "notes", "blocks", "passages", "search", "meaning")
_FOLDED_ONCE_IN = 64
"""Changes, at about which the counts of what search finds are added up."""

Rows: TypeAlias = Sequence[Any]
Shown: TypeAlias = Callable[[Sequence[Rows]], Sequence[Version]]
"""From the rows of some reads to the items that their answer shows."""


class Query(NamedTuple):
    """A named query and its parameters."""

    name: str
    parameters: dict[str, object]
    indexing: Callable[[UUID], Query] | None = None
    """Of a write: from the id of its change to the statement that keeps what search finds of it."""


class Fence:
    """The level's connection, as far as one session may use it in one call."""

    def __init__(
        self,
        connection: RoleConnection,
        session: SessionIdentity,
        call: Call,
        ids: IdSource,
        *,
        audit_reads: bool,
        embed: Embed,
    ) -> None:
        self.session = session
        self.ids = ids
        self.embed = embed
        self._connection = connection
        self._call = call
        self._audit_reads = audit_reads

    def write(self, write: Query) -> Any:
        """Run a write with its audit row and what search finds of it; return its one row."""
        with self._connection.pipeline():
            self._connection.execute("BEGIN")
            answer = self._write(write)
            self._connection.execute("COMMIT")
        return _first(answer)

    def write_many(self, write: Query, *, index: Query) -> Rows:
        """Run a write of several items with their audit rows, which knows their ids; return its rows."""
        with self._connection.pipeline():
            self._connection.execute("BEGIN")
            answer = self._execute(write.name, method=self._call.method, **write.parameters)
            self._index(index, self.ids.new_uuid())
            self._connection.execute("COMMIT")
        return _rows(answer)

    def look(self, query: str, /, **parameters: object) -> Rows:
        """Run a query whose answer shows no items, so that it needs no audit; return its rows."""
        return _rows(self._execute(query, **parameters))

    def read(self, read: Query, *, kind: ItemKind, shown: Callable[[Rows], Rows] | None = None) -> Rows:
        """Run a read, with its audit row where reads are audited; return its rows.

        *shown* says which of the rows the answer shows, for the audit. The default is those that are `held`.
        """
        (rows,) = self.read_all([read], kind=kind, shown=lambda answers: versions_of((shown or held)(answers[0])))
        return rows

    def read_all(self, reads: Sequence[Query], *, kind: ItemKind | None, shown: Shown) -> list[Rows]:
        """Run reads of one answer, with one audit row where reads are audited; return the rows of each."""
        with self._connection.pipeline():
            answers = [self._execute(read.name, **read.parameters) for read in reads]
        rows = [_rows(answer) for answer in answers]
        self._log_read(kind, shown(rows))
        return rows

    def read_until(
        self, reads: Sequence[Query], *, kind: ItemKind, enough: Callable[[Rows], bool], shown: Callable[[Rows], Rows]
    ) -> Rows:
        """Run reads of which each finds what those before it find, until one finds *enough*; return what is *shown*."""
        rows: Rows = ()
        for read in reads:
            rows = self.look(read.name, **read.parameters)
            if enough(rows):
                break
        rows = shown(rows)
        self._log_read(kind, versions_of(rows))
        return rows

    def lock_shelf(self, query: str, /, **parameters: object) -> tuple[str, Rows]:
        """Begin a transaction that is alone in writing notes and blocks, and run a query under its lock.

        Returns the id of the agent, and the rows. `commit` ends the transaction; left without, it is undone when
        the connection is given back.
        """
        with self._connection.pipeline():
            locked = self._begin_on_shelf()
            answer = self._execute(query, **parameters)
        return _first(locked).agent_id, _rows(answer)

    def write_on_shelf(self, write: Query) -> tuple[str, Any]:
        """Run a write that no `lock_shelf` may overlook. Returns the id of the agent, and the row."""
        with self._connection.pipeline():
            locked = self._begin_on_shelf()
            answer = self._write(write)
            self._connection.execute("COMMIT")
        return _first(locked).agent_id, _first(answer)

    def commit(self, writes: Sequence[Query]) -> list[Any]:
        """Run writes, each with its audit row, and commit; return the row of each."""
        with self._connection.pipeline():
            answers = [self._write(write) for write in writes]
            self._connection.execute("COMMIT")
        return [_first(answer) for answer in answers]

    def commit_refusal(self, outcome: str) -> None:
        """Write the audit row of a call that was refused under the lock of the shelf, and commit it."""
        with self._connection.pipeline():
            refused = self._refuse(outcome)
            self._connection.execute("COMMIT")
        _must_log(refused)

    def refuse(self, outcome: str) -> None:
        """Write the audit row of a call that a rule refused before it came to a statement."""
        _must_log(self._refuse(outcome))

    def _log_read(self, kind: ItemKind | None, shown: Sequence[Version]) -> None:
        """Write the audit row of a read, where reads are audited. Without it nothing may leave: StaleSession."""
        if not self._audit_reads:
            return
        only = shown[0] if len(shown) == 1 else None
        logged = self._execute(
            "record_read",
            change_id=self.ids.new_uuid(),
            method=self._call.method,
            kind=kind,
            item_id=only and only.item_id,
            revision=only and only.revision,
            result_count=len(shown),
        )
        _must_log(logged)

    def _begin_on_shelf(self) -> Any:
        self._connection.execute("BEGIN")
        return self._execute("lock_shelf")

    def _write(self, write: Query) -> Any:
        item_id, change_id = self.ids.new_uuid(), self.ids.new_uuid()
        answer = self._execute(
            write.name, method=self._call.method, item_id=item_id, change_id=change_id, **write.parameters
        )
        if write.indexing:
            self._index(write.indexing(change_id), change_id)
        return answer

    def _index(self, index: Query, change_id: UUID) -> None:
        """Keep what search finds in step with a write, in its transaction."""
        self._execute(index.name, change_id=change_id, **index.parameters)
        pieces = {name: index.parameters[name] for name in ("kind", "names", "changes")}
        self._execute("queue_pieces", **pieces)
        if change_id.int % _FOLDED_ONCE_IN == 0:
            self._execute("fold_stats", kind=index.parameters["kind"], fold_id=self.ids.new_uuid())

    def _refuse(self, outcome: str) -> Any:
        return self._execute("record_refusal", change_id=self.ids.new_uuid(), method=self._call.method, outcome=outcome)

    def _execute(self, query: str, /, **parameters: object) -> Any:
        parameters |= {"tenant": self.session.tenant, "session_id": self.session.session_id}
        return self._connection.execute(_QUERIES[query], parameters)


def versions_of(rows: Rows) -> Sequence[Version]:
    """The items in rows."""
    return [Version(row.item_id, row.revision) for row in rows]


def held(rows: Rows) -> Rows:
    """The rows that hold an item. One row of nulls says: the session is there, the item is not."""
    return [row for row in rows if row.item_id is not None]


def _rows(cursor: Any) -> Rows:
    rows: Rows = cursor.fetchall()
    if not rows:
        raise StaleSession
    return rows


def _first(cursor: Any) -> Any:
    return _rows(cursor)[0]


def _must_log(cursor: Any) -> None:
    """No audit row: the session is not there any more, and nothing may leave."""
    if cursor.rowcount != 1:
        raise StaleSession
