"""Fixtures for the tests of core blocks: most share one server."""

from tests.support.tenants import at, host

__all__ = ["at", "host"]
