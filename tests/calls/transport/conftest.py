"""Fixtures for the tests of what every call passes: most share one server."""

from tests.support.tenants import at, host

__all__ = ["at", "host"]
