"""Fixtures for the tests of sessions: most share one server."""

from tests.support.tenants import at, host

__all__ = ["at", "host"]
