"""How many connections all servers of one database may open together.

Each states its budget in the name of its connections, where the others read it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from muniment_server.monitor.grants import RESERVED_CONNECTIONS
from muniment_server.postgres import queries, roles
from muniment_server.postgres.pool import RoleConnection
from muniment_server.postgres.rows import rows_of

_QUERIES = queries.load(__package__, "connection_budget.sql")


@dataclass(frozen=True, slots=True)
class _Budgets:
    servers: int
    connections: int
    max_connections: int


def application_name(connections: int) -> str:
    """The application_name of one server's connections. It states how many it may open: *connections*."""
    return f"muniment/{connections}/{secrets.token_hex(4)}"


def warnings(connection: RoleConnection, connections: int) -> list[str]:
    """A warning if the running servers, and one more that may open *connections*, could exceed max_connections."""
    (found,) = rows_of(connection, _QUERIES, "budgets", _Budgets, role=roles.CONTROL)
    most = found.max_connections - RESERVED_CONNECTIONS
    if found.connections + connections <= most:
        return []
    return [
        f"{found.servers + bool(connections)} servers may open {found.connections + connections} connections together, "
        f"and the database has {most} for them: raise its max_connections, or lower --max-connections"
    ]
