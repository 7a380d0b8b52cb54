"""Backups, as `muniment restore` loads them, with the sessions still open."""

from __future__ import annotations

from pathlib import Path

from muniment_server.admin import dumps
from muniment_server.runtime import schema


def load(admin: str, file: Path) -> None:
    """Load the backup *file* into the database of the conninfo *admin*, which has no data. It stays marked."""
    with dumps.emptied(admin, file):
        schema.migrate(admin, until=0)
        dumps.load(admin, file)
