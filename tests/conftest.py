"""Fixtures for all tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muniment_server.domain.classification import Classification
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.postgres import roles
from tests.support.databases import Database, cloned, make_template
from tests.support.services import Caller, Service, serving


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A Postgres for this run, with the template. Without fsync: what kill -9 and power may do is tested elsewhere."""
    folder = Path(tempfile.mkdtemp(prefix="muniment-tests-"))
    try:
        with EmbeddedPostgres(folder, roles=roles.ALL, durable=False, settings={"max_connections": "200"}) as server:
            make_template(server)
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> Iterator[Database]:
    """A database for this test."""
    with cloned(postgres) as clone:
        yield clone


@pytest.fixture
def service(database: Database) -> Iterator[Service]:
    """A real server over this test's database."""
    with serving(database) as served:
        yield served


@pytest.fixture
def at(service: Service) -> Callable[[Classification], Caller]:
    """A session of the agent `alice` at a level: the same one each time it is asked for."""
    sessions: dict[Classification, Caller] = {}

    def session_at(level: Classification) -> Caller:
        if level not in sessions:
            sessions[level] = service.session(level)
        return sessions[level]

    return session_at


@pytest.fixture
def host(service: Service) -> Caller:
    """A host of the tenant `acme` up to RESTRICTED."""
    return service.host()
