"""Fixtures for the tests of prompts: most share one server."""

from tests.support.tenants import at, host

__all__ = ["at", "host"]
