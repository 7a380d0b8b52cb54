"""Sessions of one agent for each test, on the server that MUNIMENT_ADDRESS and MUNIMENT_HOST_KEY name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import muniment
from muniment import Classification, HostClient, Integrity, SessionClient

Opened = Callable[..., SessionClient]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def owner() -> Iterator[HostClient]:
    host = muniment.connect()
    assert isinstance(host, HostClient)
    with host:
        yield host


@pytest.fixture
def opened(owner: HostClient) -> Opened:
    """Opens sessions of this test's agent, each with a conversation of its own."""
    agent_id = owner.create_agent().agent_id

    def open_session(taint: Classification, integrity: Integrity = Integrity.UNTRUSTED) -> SessionClient:
        return owner.open_session(agent_id, taint, integrity=integrity)

    return open_session
