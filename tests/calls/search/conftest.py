"""Fixtures for the tests of search: most share one server."""

from __future__ import annotations

import pytest

from muniment_server.embedder import request_socket
from muniment_server.embedder import socket as embedder_socket
from muniment_server.embedder.remote import embedding_service as remote_embedding
from muniment_server.embedder.remote import reranking_service as remote_reranking
from tests.support.tenants import at, host

__all__ = ["at", "host"]


@pytest.fixture
def more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """More time for each search: on a busy machine, even a prompt answer may take longer than is waited for.

    Then another model searches, or nothing is reranked. Request it before the world, whose sockets it is for.
    """
    monkeypatch.setattr(request_socket, "_RECEIVE_SECONDS", 20.0)
    for queue in ("_MAX_QUEUE_SECONDS", "_MAX_RERANKING_QUEUE_SECONDS"):  # less than the answers below may take
        monkeypatch.setattr(embedder_socket, queue, 3.0)
    for module, limit, socket, longer in (
        (remote_embedding, "_QUERY_SECONDS", "_REMOTE_SECONDS", 5.0),
        (remote_reranking, "_SECONDS", "_RERANKING_SECONDS", 5.0),
    ):
        monkeypatch.setattr(module, limit, longer)
        monkeypatch.setattr(embedder_socket, socket, longer + 5.0)
