"""Erases deleted agents, in batches.

DeleteAgent only marks an agent. Every worker has an eraser; of all servers, one erases at a time. All that it knows is
in the database, so after a restart whichever server is first goes on.

Chunks go first, with what waits to be embedded.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from muniment_server.domain.classification import Label
from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.postgres import queries, roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.pool import Database, RoleConnection
from muniment_server.postgres.rows import rows_of

_LOG = logging.getLogger("muniment.eraser")
_QUERIES = queries.load(__package__, "eraser.sql")
_LOCK = 0x65726173  # "eras"
_INTERVAL = 1.0
_WARN_INTERVAL = 60.0
"""The database, or a node of a cluster, may be away for long."""
_BATCH_ROWS = 500
_BATCH_SECONDS = 10.0
_MOST_AGENTS = 1000
"""How many deleted agents the eraser looks at. Those after them wait until one of these is erased."""
_CHUNK_STEPS = tuple((label.role, "erase_chunks") for label in Label)
_STEPS = (
    (roles.ERASER, "erase_sessions"),
    (roles.ERASER, "erase_conversations"),
    *(
        (label.role, query)
        for query in ("erase_stats", "erase_items", "erase_revisions", "erase_storage")
        for label in Label
    ),
    (roles.ERASER, "erase_agent"),
)
"""The steps after the chunks, in their order, each with the schema of its names.

Items go before their ledgers, which stay whole.
"""


@dataclass(frozen=True, slots=True)
class _Agent:
    tenant: TenantNumber
    agent: AgentNumber


def is_deleted(connection: psycopg.Connection[Any], tenant: TenantNumber, agent: AgentNumber) -> bool:
    """Whether an agent has been deleted, and is not erased yet. *connection* sees the eraser's views."""
    given = {"tenant": tenant, "agent": agent}
    return connection.execute(_QUERIES["is_deleted"], given).fetchone() == (True,)


class _Interrupted(Exception):
    """Another server erases now, or the gate is closed. The agent must not be taken for empty."""


class Eraser:
    """Erases, on a thread of its own, while *may_erase* says so."""

    def __init__(self, database: Database, may_erase: Callable[[], bool]) -> None:
        self._database = database
        self._may_erase = may_erase
        self._is_ended = threading.Event()
        self._warn_again = 0.0

    def start(self) -> None:
        """Start to look for deleted agents, every second."""
        threading.Thread(target=self._run, name="eraser", daemon=True).start()

    def end(self) -> None:
        """Look no more. What fails from now on is not logged: the worker closes its connections."""
        self._is_ended.set()

    def _run(self) -> None:
        while not self._is_ended.is_set():
            try:
                self.erase_all()
            except _Interrupted:
                pass
            except Exception as error:  # noqa: BLE001 - whatever it is, the rest must be erased later
                if not self._is_ended.is_set() and time.monotonic() >= self._warn_again:
                    self._warn_again = time.monotonic() + _WARN_INTERVAL
                    _LOG.warning("erasing failed and will be retried: %s", type(error).__name__)
            self._is_ended.wait(_INTERVAL)

    def erase_all(self) -> None:
        """Erase until no deleted agent is left: first the chunks of all, then the rest of one after the other.

        Raises _Interrupted or MunimentError.
        """
        cleared: set[_Agent] = set()
        while agents := self._clear_chunks(cleared):
            for schema, query in _STEPS:
                while self._erase_batch(agents[0], schema, query) == _BATCH_ROWS:
                    self._clear_chunks(cleared)  # of agents that have been deleted meanwhile

    def _clear_chunks(self, cleared: set[_Agent]) -> Sequence[_Agent]:
        """Erase the chunks of all deleted agents that are not in *cleared*, and add these agents to it.

        Returns the deleted agents. None of them gets new chunks: DeleteAgent has waited for their writers.
        """
        agents = self._deleted_agents()
        for agent in agents:
            if agent not in cleared:
                for schema, query in _CHUNK_STEPS:
                    while self._erase_batch(agent, schema, query) == _BATCH_ROWS:
                        pass
                cleared.add(agent)
        return agents

    def _deleted_agents(self) -> Sequence[_Agent]:
        with self._turn() as connection:
            return rows_of(connection, _QUERIES, "deleted_agents", _Agent, most=_MOST_AGENTS)

    def _erase_batch(self, agent: _Agent, schema: str, query: str) -> int:
        """Erase up to `_BATCH_ROWS` rows and return how many. Pauses as long afterwards, for the sake of callers."""
        began = time.monotonic()
        with self._turn() as connection:
            connection.execute(_QUERIES["prepare_batch"], {"schema": schema})
            erased = connection.execute(
                _QUERIES[query], {"tenant": agent.tenant, "agent": agent.agent, "most": _BATCH_ROWS}
            ).rowcount
        if erased:
            time.sleep(time.monotonic() - began)
        return erased

    @contextmanager
    def _turn(self) -> Iterator[RoleConnection]:
        """A short transaction in which no other server erases. Raises _Interrupted if another does, or it may not."""
        if not self._may_erase():
            raise _Interrupted
        with self._database.connection(roles.ERASER, Deadline(_BATCH_SECONDS)) as connection, connection.transaction():
            if connection.execute(_QUERIES["take_turn"], {"key": _LOCK}).fetchone() != (True,):
                raise _Interrupted
            yield connection
