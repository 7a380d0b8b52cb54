"""A Postgres of our own, for a server that was given no database."""

from muniment_server.store.embedded.binaries import find_bindir
from muniment_server.store.embedded.errors import (
    BinariesNotFound,
    DidNotStart,
    DirectoryInUse,
    EmbeddedPostgresError,
    UnusableAccount,
    UnusableDirectory,
    WrongVersion,
)
from muniment_server.store.embedded.postmaster import conninfo_of_running
from muniment_server.store.embedded.server import EmbeddedPostgres

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
