"""Fixtures for races: a Postgres that remembers when each transaction was committed, and one server for all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.transport.admission.pools import Limits
from tests.operations.citus.clones import ClusterPostgres, running_cluster
from tests.proof.races.crew import Crew
from tests.support.databases import cloned, running_postgres
from tests.support.services import Service, serving

_THREADS = 12
"""More than a worker has: calls shall meet."""
_STREAM_THREADS = 8
_SLOWNESS_OF_CLUSTERS = 150.0
"""A write takes some 40 times as long there (ADR 14), and the other nodes are on the same cores."""
_names = itertools.count(1)


@pytest.fixture(scope="session")
def timed_postgres(pytestconfig: pytest.Config) -> Iterator[EmbeddedPostgres | ClusterPostgres]:
    """A Postgres of this folder's own. Deadlocks show at once, without fsync; tables are analyzed while they grow."""
    running = running_cluster if pytestconfig.getoption("cluster") else running_postgres
    with running(
        max_connections="300", track_commit_timestamp="on", deadlock_timeout="50ms", autovacuum_naptime="1s"
    ) as server:
        yield server


@pytest.fixture(scope="module")
def arena(timed_postgres: EmbeddedPostgres | ClusterPostgres) -> Iterator[Service]:
    """A real server over a database of the module's own; races keep apart by their agents."""
    with (
        cloned(timed_postgres) as database,
        serving(
            database,
            limits=Limits(threads=_THREADS, host_threads=_THREADS, running_streams=_STREAM_THREADS, max_in_flight=500),
        ) as served,
    ):
        yield served


@pytest.fixture
def owner(arena: Service) -> Iterator[psycopg.Connection[Any]]:
    """Looks at everything."""
    with arena.database.as_owner() as connection:
        yield connection


@pytest.fixture(scope="session")
def crew(pytestconfig: pytest.Config) -> Iterator[Crew]:
    """The threads of all races."""
    crew = Crew(slowness=_SLOWNESS_OF_CLUSTERS if pytestconfig.getoption("cluster") else 1.0)
    yield crew
    crew.end()


@pytest.fixture
def agent() -> str:
    """The name of an agent that only this test has."""
    return f"racer{next(_names)}"
