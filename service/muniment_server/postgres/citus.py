"""Citus, which spreads tables over several machines. It is refused: see `service/docs/adr/14-citus.md`.

What the levels may do rests on grants and views in the catalog of one server. On a cluster they would have to hold on
each node and shard, and nothing compares those with the matrix yet.
"""

from __future__ import annotations

from typing import Any

import psycopg

REFUSAL = (
    "the database is part of a Citus cluster, on which Muniment cannot keep the levels apart yet: "
    "use a database without the extension citus"
)


def is_cluster(connection: psycopg.Connection[Any]) -> bool:
    """Whether the database of *connection* has the extension, as a coordinator and workers do. Any role may ask."""
    return connection.execute("SELECT to_regclass('pg_catalog.pg_dist_node') IS NOT NULL").fetchone() == (True,)
