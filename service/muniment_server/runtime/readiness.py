"""Whether a worker can serve calls now, as its health service reports it."""

from __future__ import annotations

import threading
import time

from muniment_server.domain.errors import MunimentError
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.pool import Database
from muniment_server.transport.server import Server

_INTERVAL = 1.0
_SECONDS = 5.0
"""A worker is ready if the database has answered within this time."""


class Readiness:
    """Asks the database something every second, and reports whether it answers and calls make progress.

    The two run on threads of their own: a database that hangs makes the question hang, but not the report.
    """

    def __init__(self, server: Server, database: Database) -> None:
        self._server = server
        self._database = database
        self._answered = time.monotonic()

    def start(self) -> None:
        """Start to ask and to report."""
        threading.Thread(target=self._ask, name="ask-database", daemon=True).start()
        threading.Thread(target=self._report, name="report-readiness", daemon=True).start()

    def _ask(self) -> None:
        while True:
            try:
                with self._database.connection(roles.CONTROL, Deadline(_SECONDS)) as connection:
                    connection.ask()
                self._answered = time.monotonic()
            except MunimentError:
                pass  # the report says so
            time.sleep(_INTERVAL)

    def _report(self) -> None:
        while True:
            is_answered = time.monotonic() - self._answered < _SECONDS
            self._server.set_ready(is_answered and not self._server.is_stuck)
            time.sleep(_INTERVAL)
