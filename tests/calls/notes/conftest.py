"""Fixtures for the tests of notes: most share one server."""

from tests.support.tenants import at, host

__all__ = ["at", "host"]
