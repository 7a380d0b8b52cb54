"""Fixtures for the tests of releases: most share one server."""

from collections.abc import Callable

import pytest

from muniment_server.domain.classification import Classification
from tests.support.releases import TEXT, UNTRUSTED
from tests.support.services import Caller, Service, new_host_key
from tests.support.tenants import at, host, session, shared, tenant

__all__ = ["at", "host", "session", "shared", "tenant"]

RIGHTS = ("declassify", "endorse")


@pytest.fixture
def key(shared: Service, tenant: str) -> Callable[..., Caller]:
    """Makes another host of this test's tenant, with both rights at the desk unless the caller names others."""

    def new(*may: str, ceiling: Classification = Classification.RESTRICTED, rights: tuple[str, ...] = RIGHTS) -> Caller:
        return Caller(shared.channel, new_host_key(shared.database, tenant, ceiling, may or rights))

    return new


@pytest.fixture
def plan(at):
    """A memory that an untrusted session saved."""
    at(UNTRUSTED).save_memory(key="plan", content=TEXT, tags=["trip"])
