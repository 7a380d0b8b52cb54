"""Sessions of one agent on a real server, and a store for one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import muniment
from muniment import Classification, HostClient, SessionClient
from muniment.langgraph import MunimentStore
from tests.support.services import Service

Opened = Callable[[Classification], SessionClient]


@pytest.fixture
def owner(service: Service) -> Iterator[HostClient]:
    """A host with an agent `alice`."""
    with muniment.connect(service.address, host_key=service.host().token) as host:
        host.create_agent("alice")
        yield host


@pytest.fixture
def opened(owner: HostClient) -> Opened:
    """Opens sessions of `alice`, each with a conversation of its own."""
    return lambda taint: owner.open_session("alice", taint)


@pytest.fixture
def store(opened: Opened) -> MunimentStore:
    return MunimentStore(opened(Classification.INTERNAL))
