"""A Postgres of our own, for a server that was given no database."""

from muniment_server.embedded_postgres.binaries import find_bindir
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
]
