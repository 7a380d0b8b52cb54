"""What a server would have written to its log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muniment_server.telemetry import logs

_JSON = logs._Json("worker")


def lines_of(caplog: pytest.LogCaptureFixture, message: str | None = None) -> list[dict[str, Any]]:
    """The lines of the log as JSON: all, or those with this message."""
    lines = [json.loads(_JSON.format(record)) for record in caplog.records]
    return [line for line in lines if message in {None, line["message"]}]


def text_of(caplog: pytest.LogCaptureFixture) -> str:
    """All lines."""
    return "\n".join(map(_JSON.format, caplog.records))
