"""A Postgres that the server runs itself if no database is configured."""

from muniment_server.embedded_postgres.binaries import find_bindir
from muniment_server.embedded_postgres.cluster import sync_directory
from muniment_server.embedded_postgres.errors import (
    BinariesNotFound,
    DidNotStart,
    DirectoryInUse,
    EmbeddedPostgresError,
    UnusableAccount,
    UnusableDirectory,
    WrongVersion,
)
from muniment_server.embedded_postgres.postmaster import conninfo_of_running
from muniment_server.embedded_postgres.server import EmbeddedPostgres

__all__ = [
    "BinariesNotFound",
    "DidNotStart",
    "DirectoryInUse",
    "EmbeddedPostgres",
    "EmbeddedPostgresError",
    "UnusableAccount",
    "UnusableDirectory",
    "WrongVersion",
    "conninfo_of_running",
    "find_bindir",
    "sync_directory",
]
