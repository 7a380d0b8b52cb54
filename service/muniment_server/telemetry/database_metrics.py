"""The metrics of a process that has connections to the database."""

from __future__ import annotations

from prometheus_client import Counter

from muniment_server.telemetry.metrics import REGISTRY, gauge

DATABASE_FAILURES = Counter(
    "muniment_database_failures",
    "Statements and connections that failed, by SQLSTATE; `none` if the failure has none.",
    ("role", "sqlstate"),
    registry=REGISTRY,
)
CONNECTIONS = gauge("muniment_database_connections", "Connections to the database.", "role", "state")
WAITING_FOR_CONNECTION = gauge("muniment_database_connection_waiters", "Threads without a connection.", "role")
