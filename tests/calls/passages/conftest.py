"""Fixtures for the tests of passages: most share one server."""

from tests.support.tenants import at, host

__all__ = ["at", "host"]
