"""A Postgres that warns as the coordinator of a Citus cluster does when a node did not confirm a commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from muniment_server.engines.citus import cluster as citus

_WARN = f"""
CREATE FUNCTION public.warn() RETURNS event_trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE WARNING '{citus.COMMIT_WARNING}worker:5432'; END $$
"""
_WARN_OF_ROWS = f"""
CREATE FUNCTION public.warn_of_rows() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE WARNING '{citus.COMMIT_WARNING}worker:5432'; RETURN NULL; END $$
"""


@contextmanager
def unconfirmed_commits(admin: str) -> Iterator[None]:
    """During the block, each change of the schema of the database of the conninfo *admin*, a superuser's, warns."""
    with psycopg.connect(admin, autocommit=True) as superuser:
        superuser.execute(_WARN.encode())
        superuser.execute("CREATE EVENT TRIGGER warns ON ddl_command_end EXECUTE FUNCTION public.warn()")
        try:
            yield
        finally:
            superuser.execute("DROP EVENT TRIGGER warns")
            superuser.execute("DROP FUNCTION public.warn()")


@contextmanager
def unconfirmed_rows(admin: str, table: str) -> Iterator[None]:
    """During the block, each statement that adds or changes rows of *table* warns."""
    with psycopg.connect(admin, autocommit=True) as superuser:
        superuser.execute(_WARN_OF_ROWS.encode())
        warns = f"CREATE TRIGGER warns AFTER INSERT OR UPDATE ON {table} EXECUTE FUNCTION public.warn_of_rows()"
        superuser.execute(warns.encode())
        try:
            yield
        finally:
            superuser.execute("DROP FUNCTION public.warn_of_rows() CASCADE")
