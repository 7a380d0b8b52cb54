"""Whether a worker can serve calls now, as its health service and its metrics report it."""

from __future__ import annotations

import threading
import time

from muniment_server.domain.errors import MunimentError
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.placement import Databases, PlacedDatabase
from muniment_server.telemetry import worker_metrics as metrics
from muniment_server.transport.server import Server

_INTERVAL = 1.0
_READY_SECONDS = 5.0
"""A worker is ready if the database has answered within this time."""


class Readiness:
    """Pings each database every second, and reports whether any answers and calls make progress.

    Each has its own thread: if a database hangs, its ping hangs but the report does not.
    """

    def __init__(self, server: Server, databases: Databases) -> None:
        self._server = server
        self._databases = databases
        self._answered = {placed.name: time.monotonic() for placed in databases}

    def start(self) -> None:
        """Start the threads that ping."""
        for placed in self._databases:
            threading.Thread(target=self._ping, args=(placed,), name="ping-database", daemon=True).start()

    def _ping(self, placed: PlacedDatabase) -> None:
        while True:
            try:
                with placed.database.connection(roles.CONTROL, Deadline(_READY_SECONDS)) as connection:
                    connection.ping()
                self._answered[placed.name] = time.monotonic()
            except MunimentError:
                pass  # the report says so
            time.sleep(_INTERVAL)

    def report(self) -> bool:
        """Report what is known now, every second. Returns True, unless a lock that calls need is never released."""
        for placed in self._databases:
            placed.answers = time.monotonic() - self._answered[placed.name] < _READY_SECONDS
        if all(placed.answers for placed in self._databases):
            metrics.DATABASE_ANSWERED.set_to_current_time()
        self._server.set_ready(any(placed.answers for placed in self._databases) and not self._server.is_stuck)
        self._server.measure()
        self._databases.measure()
        return True
