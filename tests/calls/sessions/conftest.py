"""Fixtures for the tests of sessions: most share one server."""

from __future__ import annotations

import pytest

from tests.support.services import Service
from tests.support.tenants import at, host

__all__ = ["at", "host"]


@pytest.fixture
def alice(shared: Service, tenant: str) -> str:
    agent: str = shared.agent("alice", tenant)
    return agent
