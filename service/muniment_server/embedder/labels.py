"""Which labels have anything to embed: for a trusted label that no one uses, the embedder opens no connection."""

from __future__ import annotations

import time
from collections.abc import Set

from muniment_server.domain.classification import Label
from muniment_server.postgres import queries
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.pool import Database
from muniment_server.postgres.rows import values_of

_QUERIES = queries.load(__package__, "labels.sql")
_SECONDS = 2.0
"""How long an answer counts. For so long at most, the first text of a label waits."""


class LabelsInUse:
    """Asks each database which trusted labels it has something of. Untrusted ones are always in use."""

    def __init__(self) -> None:
        self._found: dict[Database, tuple[float, Set[Label]]] = {}

    def has(self, database: Database, label: Label) -> bool:
        """Whether there may be anything of *label*. Raises MunimentError if the database is away."""
        if not label.is_trusted:
            return True
        since, found = self._found.get(database, (0.0, frozenset()))
        if time.monotonic() - since > _SECONDS:
            with database.connection(Label.RESTRICTED.role, Deadline()) as connection:
                found = {Label(number) for number in values_of(connection, _QUERIES, "trusted_labels_in_use")}
            self._found[database] = time.monotonic(), found
        return label in found
