"""The server's internals that the driver needs: ids, clock, host keys, vectors, and ways to break it.

Nothing else in this folder knows how the server is built. Whoever moves the server adapts this module and
`tests.support.services`. `make diff` plays scenes of earlier commits with it, so what they use of it must stay.
"""

from __future__ import annotations

import hmac
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any, LiteralString

import psycopg
from psycopg import conninfo as libpq

from muniment_server.domain import tokens
from muniment_server.domain.ids import TenantNumber
from muniment_server.domain.tokens import TokenKind
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.postgres.pool import operator_conninfo
from muniment_server.search.embeddings import Vector
from muniment_server.transport.admission.pools import Limits
from tests.operations.citus.clones import ClusterPostgres
from tests.support.concurrency import lock_rows, waiting
from tests.support.databases import Database, cloned, running_postgres
from tests.support.embedders import Quick, embed_all, quick
from tests.support.services import Service, serving, set_gate, without_request_id

__all__ = ["BEGINNING", "EmbeddedPostgres", "Stand", "running_postgres", "standing", "without_request_id"]

BEGINNING = datetime(2030, 1, 1, tzinfo=UTC)
_KEY = b"golden"
_CLOCK = (
    "CREATE SCHEMA test_clock",
    "CREATE TABLE test_clock.now (time timestamptz NOT NULL)",
    "INSERT INTO test_clock.now VALUES ('2030-01-01 00:00:00+00')",
    "GRANT USAGE ON SCHEMA test_clock TO PUBLIC",
    "GRANT SELECT ON test_clock.now TO PUBLIC",
)
_REPLACED_CLOCK = """
CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT now.time FROM test_clock.now)
"""
_LATE_CLOCK = """
CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz
    LANGUAGE plpgsql STABLE AS $$ BEGIN RAISE query_canceled; END $$
"""
_FULL_CLOCK = """
CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz
    LANGUAGE plpgsql STABLE AS $$ BEGIN RAISE disk_full; END $$
"""


def derived(name: str) -> bytes:
    """32 bytes that depend on *name* only."""
    return hmac.digest(_KEY, name.encode(), "sha256")


class ReplayedIds:
    """An IdSource: ids and secrets that depend only on the operation and on how many of a kind it has drawn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begin("")

    def begin(self, operation: str) -> None:
        """What is drawn from now on belongs to *operation*."""
        with self._lock:
            self._operation = operation
            self._drawn: dict[str, int] = {}

    def new_uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._draw("uuid")[:16], version=4)

    def new_number(self) -> int:
        return int.from_bytes(self._draw("number")[:8]) >> 1 | 1

    def new_secret(self) -> bytes:
        return self._draw("secret")

    def _draw(self, kind: str) -> bytes:
        with self._lock:
            self._drawn[kind] = self._drawn.get(kind, 0) + 1
            return derived(f"{self._operation}/{kind}/{self._drawn[kind]}")


class Stand:
    """One server whose time and ids are given, and the database below it."""

    def __init__(self, service: Service, nodes: _Nodes, ids: ReplayedIds, query_embedder: _QueryEmbedder) -> None:
        self.channel = service.channel
        self._service = service
        self._nodes = nodes
        self._owner = nodes.coordinator
        self._ids = ids
        self._query_embedder = query_embedder

    def begin(self, operation: str, time: datetime) -> None:
        """What the server does from now on belongs to *operation* and happens at *time*."""
        self._ids.begin(operation)
        self._nodes.execute("UPDATE test_clock.now SET time = %s", [time])

    def add_host(self, tenant: str, ceiling: int, name: str = "") -> str:
        """A new host key of *tenant*, which is the same in every run.

        One with a name may release; `bound` is for untrusted sessions only.
        """
        bound = name == "bound"
        releases = bool(name) and not bound
        secret = derived(f"host/{tenant}/{ceiling}{name}")
        number = TenantNumber(int.from_bytes(derived(f"tenant/{tenant}")[:3]))
        self._owner.execute(
            "INSERT INTO vault.tenant (tenant, name) OVERRIDING SYSTEM VALUE VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [number, tenant],
        )
        key = tokens.mint(TokenKind.HOST, tenant=number, secret=secret)
        self._owner.execute(
            "INSERT INTO vault.host_key"
            " (tenant, host_key_id, key_hash, ceiling, trusted, only_service, may_declassify, may_endorse)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            [
                *(number, uuid.UUID(bytes=secret[:16], version=4), tokens.digest(key), ceiling),
                *(not bound, "SessionService" if bound else None, releases, releases),
            ],
        )
        return key

    def set_query_embeddings(self, on: bool) -> None:
        """Whether queries get vectors from now on."""
        self._query_embedder.on = on

    def embed(self) -> None:
        """Make every vector that is waited for."""
        embed_all(self._service.database, Quick())

    # Ways to break the server, each until its `with` ends.

    @contextmanager
    def closed(self) -> Iterator[None]:
        """The server takes no calls."""
        set_gate(self._service.server, is_open=False)
        yield
        set_gate(self._service.server, is_open=True)

    @contextmanager
    def revoked(self) -> Iterator[None]:
        """A right that the server needs at PUBLIC is missing."""
        self._nodes.execute("REVOKE SELECT ON muniment_public.item FROM muniment_public")
        yield
        self._nodes.execute("GRANT SELECT ON muniment_public.item TO muniment_public")

    @contextmanager
    def late(self) -> Iterator[None]:
        """Every statement is cut off."""
        self._nodes.execute("ALTER FUNCTION vault.clock() SET statement_timeout = 1")  # keeps it from being inlined
        self._nodes.execute(_LATE_CLOCK)
        yield
        self._nodes.execute("ALTER FUNCTION vault.clock() RESET ALL")
        self._nodes.execute(_REPLACED_CLOCK)

    @contextmanager
    def full(self) -> Iterator[None]:
        """No statement finds room on the disk. No texts are stored after that, since no time passes."""
        self._nodes.execute(_FULL_CLOCK)
        yield
        self._nodes.execute(_REPLACED_CLOCK)

    @contextmanager
    def locked(self, conversation_id: str) -> Iterator[None]:
        """Writes in the conversation wait."""
        with self._service.database.as_owner() as writer, writer.transaction():
            lock_rows(writer, "vault.conversation", "conversation_id = %s", conversation_id)
            yield

    def wait_until_blocked(self) -> None:
        """Until a statement of the server waits for a lock."""
        with self._service.database.as_admin() as admin:
            while not waiting(admin):
                pass

    @contextmanager
    def small(self) -> Iterator[Stand]:
        """A second server of the same database, which takes one call at a time."""
        limits = Limits(threads=1, max_in_flight=1)
        with serving(self._service.database, ids=self._ids, limits=limits) as service:
            yield Stand(service, self._nodes, self._ids, self._query_embedder)


class _QueryEmbedder:
    """The vectors of queries: a fixed function of the text, or none."""

    def __init__(self) -> None:
        self.on = False

    def __call__(self, text: str) -> Vector | None:
        return quick(text) if self.on else None


@contextmanager
def standing(postgres: EmbeddedPostgres) -> Iterator[Stand]:
    """A server over a new database in which nothing is left to chance."""
    ids, query_embedder = ReplayedIds(), _QueryEmbedder()
    with cloned(postgres) as database, _connected(database) as nodes:
        for statement in (*_CLOCK, _REPLACED_CLOCK):
            nodes.execute(statement)
        with serving(database, ids=ids, embed=query_embedder, clock=lambda: 0.0) as service:
            yield Stand(service, nodes, ids, query_embedder)


class _Nodes:
    """Connections as the owner to the database of a test: one, or to each node of a cluster."""

    def __init__(self, connections: Sequence[psycopg.Connection[Any]]) -> None:
        self.coordinator = connections[0]
        self._connections = connections

    def execute(self, statement: LiteralString, parameters: Sequence[object] = ()) -> None:
        """Execute a statement on each node: the time is a table that Citus does not know."""
        for connection in self._connections:
            connection.execute(statement, parameters)


@contextmanager
def _connected(database: Database) -> Iterator[_Nodes]:
    with ExitStack() as stack:
        connections = [stack.enter_context(database.as_owner())]
        if isinstance(database.postgres, ClusterPostgres):
            connections[0].execute("SET citus.enable_ddl_propagation = off")
            for port in database.postgres.cluster.workers:
                admin = libpq.make_conninfo(database.admin, port=port)
                worker = stack.enter_context(psycopg.connect(operator_conninfo(admin), autocommit=True))
                worker.execute("SET citus.enable_ddl_propagation = off")
                connections.append(worker)
        yield _Nodes(connections)
