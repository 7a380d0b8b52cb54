"""Fixtures for faults: Postgres is durable here, in this process and in the servers' own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.postgres import roles
from tests.faults.load import Load
from tests.faults.processes import ServerProcess
from tests.support.databases import make_template

_LOG_SHOWN = 10_000


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """In place of that of the other tests: the walls of a database without fsync do not stand."""
    folder = Path(tempfile.mkdtemp(prefix="muniment-faults-"))
    try:
        with EmbeddedPostgres(folder, roles=roles.ALL, settings={"max_connections": "200"}) as server:
            make_template(server)
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    """A server that serves, in processes of its own."""
    server = ServerProcess()
    try:
        server.start()
        yield server
    finally:
        print(server.log[-_LOG_SHOWN:])  # which pytest shows when the test fails
        server.destroy()


@pytest.fixture
def load(server: ServerProcess) -> Load:
    """Callers of that server."""
    return Load(server.address, server.host_key)
