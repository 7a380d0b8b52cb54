"""A Postgres that warns as the coordinator of a Citus cluster does when a node did not confirm a commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from muniment_server.postgres import citus

_WARN = f"""
CREATE FUNCTION public.warn() RETURNS event_trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE WARNING '{citus.COMMIT_WARNING}worker:5432'; END $$
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
