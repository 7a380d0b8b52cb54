"""Migrates a database, including the step that SQL cannot do: indexing existing items for search."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from muniment_server.monitor import grants
from muniment_server.postgres import migrate as migrations
from muniment_server.postgres.engine import engine_of
from muniment_server.postgres.pool import operator_conninfo
from muniment_server.search.reindex import reindex


def migrate(admin: str, *, passwords: Mapping[str, str] | None = None, until: int | None = None) -> list[str]:
    """Migrate the database of the conninfo *admin*, and rebuild the search index if needed; return what was done.

    With *until* 0, makes the roles alone. Raises CannotMigrate if a later version made the schema, and servers of this
    one refuse it.
    """
    with psycopg.connect(admin) as connection:
        names = engine_of(connection).recorded_grants() or grants.grant_names()
    done = migrations.migrate(admin, passwords=passwords, grants=names, until=until)
    if any(migrations.SEARCH_MIGRATION in step for step in done):
        with psycopg.connect(operator_conninfo(admin), autocommit=True) as connection:
            count = sum(step.items for step in reindex(connection))
        if count:
            done.append(f"indexed {count} items for search")
    if until is None:
        with psycopg.connect(operator_conninfo(admin)) as connection:
            for problem in grants.schema_problems(connection, lambda *_: []):
                raise migrations.CannotMigrate(problem)
    return done
