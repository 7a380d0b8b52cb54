"""Fixtures for the tests of search: most share one server."""

from __future__ import annotations

import pytest

from muniment_server.embedder import socket as embedder_socket
from muniment_server.transport.admission import cutoff
from tests.support.tenants import at, host

__all__ = ["at", "host"]


@pytest.fixture
def more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """More time for each search: on a busy machine, even a prompt answer may take longer than is waited for.

    Then another model searches, or nothing is reranked.
    """
    for limit in ("_REMOTE_SECONDS", "_RERANKING_SECONDS"):
        monkeypatch.setattr(embedder_socket, limit, 10.0)
    monkeypatch.setattr(cutoff, "TURN_SECONDS", 60.0)
