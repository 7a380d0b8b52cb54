"""Statements that fail, as those of a database in trouble do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from muniment_server.domain.classification import Classification
from tests.support.databases import Database
from tests.support.labels import untrusted


@contextmanager
def embeddings_refused(
    database: Database, sqlstate: str, *, level: Classification = Classification.PUBLIC, name: str | None = None
) -> Iterator[None]:
    """Until the block ends, storing embeddings at *level* fails: those of the items *name*, or all."""
    table = f"{untrusted(level).role}.meaning"
    with database.as_admin() as admin:
        admin.execute("SET citus.enable_unsafe_triggers = on")  # for a cluster; elsewhere it means nothing
        admin.execute(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{sqlstate}'; END $$"
        )
        admin.execute(
            f"CREATE TRIGGER refuse BEFORE UPDATE ON {table} FOR EACH ROW"
            f" WHEN ({f'OLD.name = {name!r}' if name else 'TRUE'}) EXECUTE FUNCTION public.refuse()"
        )
        yield
        admin.execute(f"DROP TRIGGER refuse ON {table}")
        admin.execute("DROP FUNCTION public.refuse()")
