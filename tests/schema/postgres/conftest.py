"""Fixtures for the tests of the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muniment_server.embedded_postgres import EmbeddedPostgres
from tests.support.databases import Database, cloned


@pytest.fixture(scope="session")
def migrated(postgres: EmbeddedPostgres) -> Iterator[Database]:
    """A migrated database for all tests that leave it as it was."""
    with cloned(postgres) as database:
        yield database
