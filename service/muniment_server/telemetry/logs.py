"""The log: a line for each event, as text or JSON, on standard error."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["text", "json"]
_TEXT = "%(asctime)s %(name)s %(levelname)s %(message)s"
_FIELDS = "fields"
"""The attribute of a record that has its fields."""


def fields(**values: object) -> dict[str, object]:
    """The `extra` of a log call: *values* that are not None become fields of the line, in this order."""
    return {_FIELDS: {name: value for name, value in values.items() if value is not None}}


def configure(log_format: LogFormat, process: str) -> None:
    """Log in this format from now on. *process* says which process of the server this is, such as `worker`."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json(process) if log_format == "json" else _Text(_TEXT))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class _Text(logging.Formatter):
    """The message, and its fields as `name=value`."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - its name in logging
        return " ".join(
            [super().formatMessage(record), *(f"{name}={value}" for name, value in _fields_of(record).items())]
        )


class _Json(logging.Formatter):
    """One object a line. The names of fields never change between events."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """One line: JSON escapes line breaks."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "process": self._process,
            "pid": os.getpid(),
            "message": record.getMessage(),
            **_fields_of(record),
        }
        return json.dumps(line, default=str, ensure_ascii=False)


def _fields_of(record: logging.LogRecord) -> Mapping[str, object]:
    found: Mapping[str, object] = getattr(record, _FIELDS, {})
    return found
