"""Whether the grants of a database are as they must be, with its engine. Opens and closes the gate of a worker."""

from __future__ import annotations

from typing import Any

import psycopg

from muniment_server.monitor import grants
from muniment_server.postgres.engine import engine_of


def problems(connection: psycopg.Connection[Any], *, connections: int, durable: bool = True) -> list[str]:
    """What is wrong with the database, and what to do about it; empty if everything is as it must be.

    *connections* is how many the server may open. *durable* False accepts a database without fsync: for tests only.
    """
    engine = engine_of(connection)
    found = [*grants.server_problems(connection, connections=connections, durable=durable)]
    if refusal := engine.refusal(connection):
        return [*found, refusal]
    found += engine.risks(connection, durable=durable)
    return [*found, *grants.schema_problems(connection, engine.compare or grants.differences)]


def grant_names(connection: psycopg.Connection[Any]) -> list[str]:
    """The matrix as `muniment migrate` records it in the database of *connection*."""
    return engine_of(connection).recorded_grants() or grants.grant_names()
