"""Fixtures for faults: Postgres is durable here, in this process and in the servers' own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muniment_server.embedded_postgres import EmbeddedPostgres
from tests.proof.faults.load import Load
from tests.proof.faults.processes import ServerProcess, running
from tests.support.databases import running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """In place of that of the other tests: the server refuses a database without fsync."""
    with running_postgres(durable=True) as server:
        yield server


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    """A server that serves, in processes of its own, without an embedder."""
    with running(ServerProcess(words_alone=True)) as server:
        yield server


@pytest.fixture
def load(server: ServerProcess) -> Load:
    """Callers of that server."""
    return Load(server.address, server.host_key)
