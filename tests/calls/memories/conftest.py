"""Fixtures for the tests of memories: most share one server."""

from tests.support.tenants import at, host

__all__ = ["at", "host"]
