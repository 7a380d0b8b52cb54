"""Fixtures for the tests of the audit log: most share one server."""

from tests.support.tenants import at, host

__all__ = ["at", "host"]
