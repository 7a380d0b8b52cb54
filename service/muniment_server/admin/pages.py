"""A check of every table and index of a database, by Postgres's extension amcheck."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg

from muniment_server.postgres import queries
from muniment_server.postgres.driver_errors import AFTER_DAMAGE, storage_advice

_QUERIES = queries.load(__package__, "pages.sql")


def damaged_relations(admin: str) -> Iterator[str]:
    """Each damaged table and index of the database of the conninfo *admin*, and the first damage in it.

    Changes nothing: the extension is made for the check, and rolled back. Raises psycopg.Error if it cannot be made.
    """
    with psycopg.connect(admin) as connection:
        connection.execute(_QUERIES["make_amcheck"])
        connection.execute(_QUERIES["use_amcheck"])
        for relation, name, method in connection.execute(_QUERIES["relations"]).fetchall():
            if damage := _damage(connection, _QUERIES[f"check_{method}"], relation):
                yield f"{name} is damaged ({damage}): {AFTER_DAMAGE}"
        connection.rollback()


def _damage(connection: psycopg.Connection[Any], query: str, relation: int) -> str | None:
    """The first damage of a relation. Only changes of its structure wait for the check."""
    try:
        with connection.transaction(force_rollback=True):
            return next((damage for (damage,) in connection.execute(query, {"relation": relation})), None)
    except psycopg.Error as error:
        if storage_advice(error) is None:
            raise
        return error.diag.message_primary
