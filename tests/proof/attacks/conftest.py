"""Fixtures for the attacks: most share one server, and one has an embedder that compares words."""

from tests.support.tenants import at, host

__all__ = ["at", "host"]
