"""Whether a worker can serve calls now, as its health service and its metrics report it."""

from __future__ import annotations

import threading
import time

from muniment_server.domain.errors import MunimentError
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.pool import Database
from muniment_server.telemetry import worker_metrics as metrics
from muniment_server.transport.server import Server

_INTERVAL = 1.0
_READY_SECONDS = 5.0
"""A worker is ready if the database has answered within this time."""


class Readiness:
    """Pings the database every second, and reports whether it answers and calls make progress.

    Each has its own thread: if the database hangs, the ping hangs but the report does not.
    """

    def __init__(self, server: Server, database: Database) -> None:
        self._server = server
        self._database = database
        self._answered = time.monotonic()

    def start(self) -> None:
        """Start both threads."""
        threading.Thread(target=self._ping, name="ping-database", daemon=True).start()
        threading.Thread(target=self._report, name="report-readiness", daemon=True).start()

    def _ping(self) -> None:
        while True:
            try:
                with self._database.connection(roles.CONTROL, Deadline(_READY_SECONDS)) as connection:
                    connection.ping()
                self._answered = time.monotonic()
                metrics.DATABASE_ANSWERED.set_to_current_time()
            except MunimentError:
                pass  # the report says so
            time.sleep(_INTERVAL)

    def _report(self) -> None:
        while True:
            is_answered = time.monotonic() - self._answered < _READY_SECONDS
            self._server.set_ready(is_answered and not self._server.is_stuck)
            self._server.measure()
            self._database.measure()
            time.sleep(_INTERVAL)
