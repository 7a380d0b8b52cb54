"""Migrates a database, including the step that SQL cannot do: indexing existing items for search."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from muniment_server.postgres import migrate as migrations
from muniment_server.postgres.pool import operator_conninfo
from muniment_server.search.reindex import reindex


def migrate(admin: str, *, passwords: Mapping[str, str] | None = None) -> list[str]:
    """Migrate the database of the conninfo *admin*, and rebuild the search index if needed; return what was done."""
    done = migrations.migrate(admin, passwords=passwords)
    if any(migrations.SEARCH_MIGRATION in step for step in done):
        with psycopg.connect(operator_conninfo(admin), autocommit=True) as connection:
            count = sum(step.items for step in reindex(connection))
        if count:
            done.append(f"indexed {count} items for search")
    return done
