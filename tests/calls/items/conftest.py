"""Fixtures for the tests of items of every kind: most share one server."""

from tests.support.tenants import at, host, session

__all__ = ["at", "host", "session"]
