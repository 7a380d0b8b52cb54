"""Replaces processes one after the other while the others serve: each drains and exits, and another is started."""

from __future__ import annotations

import logging
import time
from collections import deque

from muniment_server.process.assignment import Assignment
from muniment_server.runtime.child import REPLACED, Child

_LOG = logging.getLogger("muniment.supervisor")
_REPLACEMENT_SECONDS = 60.0


class Replacements:
    """The processes that wait to be replaced, and whether a reload was requested."""

    def __init__(self) -> None:
        self._requested = False
        self._waiting: deque[Child] = deque()
        self._replaced: Child | None = None
        self._assignment: Assignment | None = None
        """That of the reload that runs."""
        self._next_grown = 0.0

    def request(self) -> None:
        """Request a reload. May be called by a signal handler."""
        self._requested = True

    def takes_request(self) -> bool:
        """Whether a reload was requested since the last look."""
        requested, self._requested = self._requested, False
        return requested

    def reload(self, children: list[Child], assignment: Assignment) -> None:
        """Replace *children* by processes with *assignment*, and log when all of them serve.

        Takes the place of a reload that runs: one whose process does not start must not stop the one that corrects it.
        What does not serve is replaced first.
        """
        self._assignment = assignment
        if children:
            self._waiting = deque(sorted(children, key=lambda child: child.is_ready))
            self._replaced = None

    def advance(self, workers: list[Child]) -> None:
        """Begin to replace the next process, once the one that was replaced before serves again.

        Of the *workers* that have grown, one is replaced a minute. Otherwise, workers that grow again and again would
        make the server start processes all the time.
        """
        if self._replaced is not None and not self._replaced.is_ready:
            return
        self._replaced = None
        if self._waiting:
            self._replace(self._waiting.popleft())
        elif self._assignment is not None:
            self._assignment = None
            _LOG.info("reloaded")
        elif time.monotonic() >= self._next_grown:
            self._replace_grown(workers)

    def _replace_grown(self, workers: list[Child]) -> None:
        for grown in [worker for worker in workers if worker.has_grown][:1]:
            _LOG.warning("a worker has grown to %d MiB: replacing it", grown.mebibytes)
            REPLACED[grown.name, "memory"] += 1
            self._next_grown = time.monotonic() + _REPLACEMENT_SECONDS
            self._replace(grown)

    def _replace(self, child: Child) -> None:
        self._replaced = child
        child.replace(self._assignment)
