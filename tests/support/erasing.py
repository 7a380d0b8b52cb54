"""Erases what DeleteAgent has left, as a server's eraser does."""

from __future__ import annotations

from contextlib import closing

from muniment_server.background.eraser import Eraser
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from tests.support.databases import Database


def erase_all(database: Database) -> None:
    """Erase all deleted agents."""
    with closing(RoleDatabase(database.conninfo, pool_sizes=SINGLE)) as connections:
        Eraser(connections, lambda: True).erase_all()
