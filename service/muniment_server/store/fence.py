"""The fence: every statement of a session goes through its row, at its level, or does nothing.

The row is found through the window of the level's role. If the taint was raised meanwhile, or the session
ended, the window is empty and the statement has no effect: StaleSession.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muniment_server.domain.errors import StaleSession
from muniment_server.domain.ids import IdSource
from muniment_server.domain.lifetime import Call
from muniment_server.domain.records import ItemKind, SessionIdentity
from muniment_server.store import queries
from muniment_server.store.database import RoleConnection

_QUERIES = queries.load("items")


class Fence:
    """The level's connection, as far as one session may use it in one call."""

    def __init__(
        self, connection: RoleConnection, session: SessionIdentity, call: Call, ids: IdSource, *, audit_reads: bool
    ) -> None:
        self._connection = connection
        self._session = session
        self._call = call
        self._ids = ids
        self._audit_reads = audit_reads

    def write(self, query: str, /, **parameters: object) -> Any:
        """Run a write with its audit row, one statement; return its one row."""
        row = self._execute(
            query, method=self._call.method, item_id=self._ids.new_uuid(), change_id=self._ids.new_uuid(), **parameters
        ).fetchone()
        if row is None:
            raise StaleSession
        return row

    def look(self, query: str, /, **parameters: object) -> Any:
        """Run a query that shows no items, so that it needs no audit; return its one row."""
        row = self._execute(query, **parameters).fetchone()
        if row is None:
            raise StaleSession
        return row

    def read(self, query: str, /, *, kind: ItemKind, **parameters: object) -> Sequence[Any]:
        """Run a read, with its audit row where reads are audited; return the items' rows."""
        if self._audit_reads:
            return self._audited(query, kind=kind, **parameters)
        return _items(self._execute(query, kind=kind, **parameters).fetchall())

    def refuse(self, outcome: str) -> None:
        """Write the audit row of a call that a rule refused before it came to a statement."""
        _must_log(
            self._execute("record_refusal", change_id=self._ids.new_uuid(), method=self._call.method, outcome=outcome)
        )

    def _audited(self, query: str, /, *, kind: ItemKind, **parameters: object) -> Sequence[Any]:
        """Two round trips: the read, then its audit row and the commit. Without the row nothing is returned."""
        with self._connection.pipeline():
            self._connection.execute("BEGIN")
            answer = self._execute(query, kind=kind, **parameters)
        items = _items(answer.fetchall())
        only = items[0] if len(items) == 1 else None
        with self._connection.pipeline():
            logged = self._execute(
                "record_read",
                change_id=self._ids.new_uuid(),
                method=self._call.method,
                kind=kind,
                item_id=only and only.item_id,
                revision=only and only.revision,
                result_count=len(items),
            )
            self._connection.execute("COMMIT")
        _must_log(logged)
        return items

    def _execute(self, query: str, /, **parameters: object) -> Any:
        parameters |= {"tenant": self._session.tenant, "session_id": self._session.session_id}
        return self._connection.execute(_QUERIES[query], parameters)


def _items(rows: Sequence[Any]) -> Sequence[Any]:
    """The rows that hold an item. One row of nulls says: the session is there, the item is not."""
    if not rows:
        raise StaleSession
    return [row for row in rows if row.item_id is not None]


def _must_log(cursor: Any) -> None:
    """No audit row: the session is not there any more, and nothing may leave."""
    if cursor.rowcount != 1:
        raise StaleSession
