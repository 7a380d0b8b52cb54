"""Fixtures for tests of calls over the network.

Most of these tests share one server and keep apart by a tenant of their own, as customers do. A test that changes the
clock, the grants or the server asks for `service`, which is its own. The conftest of each folder of such tests takes
`at` and `host` from here; elsewhere they are those of `service`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from muniment_server.domain.classification import Classification, Label
from muniment_server.embedded_postgres import EmbeddedPostgres
from tests.support.clock import Clock
from tests.support.databases import Database, cloned
from tests.support.services import Caller, Service, serving

_tenants = itertools.count(1)


@pytest.fixture(scope="session")
def shared(postgres: EmbeddedPostgres) -> Iterator[Service]:
    """A real server for all tests that change nothing but their own tenant."""
    with cloned(postgres) as database, serving(database) as served:
        yield served


@pytest.fixture
def tenant() -> str:
    """A tenant of this test only."""
    return f"tenant{next(_tenants)}"


@pytest.fixture
def host(shared: Service, tenant: str) -> Caller:
    """A host of this test's tenant, up to RESTRICTED."""
    return shared.host(tenant)


@pytest.fixture
def session(shared: Service, tenant: str) -> Callable[..., Caller]:
    """Opens a new session of this test's tenant: of `alice`, unless the caller names another."""
    return lambda level, **named: shared.session(level, tenant=tenant, **named)


@pytest.fixture
def at(session: Callable[..., Caller]) -> Callable[[Classification | Label], Caller]:
    """A session of the agent `alice` at a level or a label: the same one each time it is asked for."""
    opened: dict[Classification | Label, Caller] = {}

    def session_at(taint: Classification | Label) -> Caller:
        if taint not in opened:
            opened[taint] = session(taint)
        return opened[taint]

    return session_at


@pytest.fixture
def clock(database: Database) -> Clock:
    """The time of this test's own database, for tests that use `service`."""
    return Clock(database)
