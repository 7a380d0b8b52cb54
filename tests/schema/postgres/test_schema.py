"""`schema.sql` says what the migrations make."""

from __future__ import annotations

from tests.support.schema import SCHEMA, dump


def test_schema_sql_equals_the_migrations(postgres):
    """A reader may trust it. When it differs: `make schema`."""
    assert SCHEMA.read_text() == dump(postgres, "muniment")
