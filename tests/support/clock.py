"""Time in a test's database, and in its server: moved, never waited for."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.support.databases import Database

_REPLACE = """
CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN {}
"""


class StoppedClock:
    """The seconds of a server. They pass when the test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Clock:
    """The one source of time of a database, replaced as its owner."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ahead = timedelta()

    def advance(self, **ahead: float) -> None:
        """Move on by timedelta(**ahead)."""
        self._ahead += timedelta(**ahead)
        with self._database.as_owner() as owner:
            owner.execute(
                _REPLACE.format(f"pg_catalog.now() + interval '{self._ahead.total_seconds()} seconds'").encode()
            )

    def stop_at(self, time: datetime) -> None:
        """Stand still at *time*, to the microsecond."""
        with self._database.as_owner() as owner:
            owner.execute(_REPLACE.format(f"timestamptz '{time.isoformat()}'").encode())
