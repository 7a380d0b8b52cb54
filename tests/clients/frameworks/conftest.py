"""Sessions of one agent for each test, on a real server that all tests of a worker share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import muniment
from muniment import Classification, HostClient, SessionClient
from muniment.files import FileView
from muniment_server.embedded_postgres import EmbeddedPostgres
from tests.clients.mcp import over_http
from tests.support.databases import cloned
from tests.support.services import Service, serving

collect_ignore = ["isolated"]
"""Run by `test_isolated.py`."""
Opened = Callable[[Classification], SessionClient]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def service(postgres: EmbeddedPostgres) -> Iterator[Service]:
    with cloned(postgres) as database, serving(database) as served:
        yield served


@pytest.fixture(scope="session")
def owner(service: Service) -> Iterator[HostClient]:
    with muniment.connect(service.address, host_key=service.host().token) as host:
        yield host


@pytest.fixture
def opened(owner: HostClient) -> Opened:
    """Opens sessions of this test's agent, each with a conversation of its own."""
    agent_id = owner.create_agent().agent_id
    return lambda taint: owner.open_session(agent_id, taint)


@pytest.fixture
def mcp(service: Service) -> Iterator[str]:
    """Where the memory of the server is served to models."""
    with over_http.serving(service.address) as endpoint:
        yield endpoint.url


@pytest.fixture
def files(opened: Opened) -> Callable[[Classification], FileView]:
    """The files of this test's agent, as a session at a level sees them."""
    return lambda taint: FileView(opened(taint))
