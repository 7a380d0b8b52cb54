"""Whether a worker can serve calls now, as its health service and its metrics report it."""

from __future__ import annotations

import threading
import time

import psycopg

from muniment_server.domain.errors import MunimentError
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.placement import Databases, PlacedDatabase
from muniment_server.telemetry import worker_metrics as metrics
from muniment_server.transport.server import Server

_INTERVAL = 2.0
_READY_SECONDS = 5.0
"""A worker is ready if the database has answered within this time."""


class Readiness:
    """Logs in to each database every two seconds, and reports whether any lets in and calls make progress.

    Each has its own thread: if a database hangs, its log-in hangs but the report does not.
    """

    def __init__(self, server: Server, databases: Databases) -> None:
        self._server = server
        self._databases = databases
        self._answered = {placed.name: time.monotonic() for placed in databases}

    def start(self) -> None:
        """Start the threads that ask."""
        for placed in self._databases:
            threading.Thread(target=self._ask, args=(placed,), name="ask-database", daemon=True).start()

    def _ask(self, placed: PlacedDatabase) -> None:
        while True:
            try:
                placed.database.log_in(roles.CONTROL, Deadline(_READY_SECONDS))
                self._answered[placed.name] = time.monotonic()
            except (MunimentError, psycopg.Error):  # a fault, too: it may pass
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
