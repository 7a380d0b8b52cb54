"""What the MCP server writes to standard error while it serves: never what callers sent.

The log of the SDK quotes requests, and draws tracebacks: seconds of work on the thread that serves all callers. So only
the place and the type of the error are written when a library logs something, at most once a second for each place.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TextIO

_SECONDS = 1.0
_OWN = "muniment"
"""The logger whose messages are ours, so they contain nothing of a request."""

_Place = tuple[str, int]


class BriefHandler(logging.StreamHandler[TextIO]):
    """Writes each record in one line, to standard error."""

    def __init__(self) -> None:
        super().__init__()
        self._written: dict[_Place, float] = {}
        self._left_out = Counter[_Place]()

    def emit(self, record: logging.LogRecord) -> None:
        """Write *record*, unless one from the same place was written within the last second."""
        place = record.name, record.lineno
        if record.created - self._written.get(place, 0.0) < _SECONDS:
            self._left_out[place] += 1
            return
        self._written[place] = record.created
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """The message of our records. Of a library's records, only the place and the type of the error."""
        if record.name.partition(".")[0] == _OWN:
            text = record.getMessage()
        else:
            error = record.exc_info and record.exc_info[0]
            text = f"line {record.lineno}" + (f", {error.__name__}" if error else "")
        left_out = self._left_out.pop((record.name, record.lineno), 0)
        return f"{record.levelname} {record.name}: {text}" + (f" ({left_out} more before)" if left_out else "")


def configure() -> None:
    """Log warnings and errors with a BriefHandler. Call it before the SDK is set up, which adds none beside it."""
    logging.basicConfig(level=logging.WARNING, handlers=[BriefHandler()])
