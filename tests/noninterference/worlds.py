"""Two worlds: two databases cloned from one template, two servers of one build, and nothing left to chance.

Time and ids are injected, never masked: a mask would hide a leak. The time is one row that the harness sets
before each operation; ids are HMAC(operation, n), so that an operation gets the same ids in both worlds
whatever one of them has left out.
"""

from __future__ import annotations

import hmac
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import grpc
import psycopg

from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification
from muniment_server.domain.tokens import TokenKind
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.search.embedding_queue import START, embed_batch
from muniment_server.search.embeddings import Vector
from muniment_server.transport.server import SERVICES
from tests.support.databases import Database, cloned
from tests.support.embedders import quick
from tests.support.services import Outcome, serving

BEGINNING = datetime(2030, 1, 1, tzinfo=UTC)
PATHS = {method.name: f"/{service.full_name}/{method.name}" for service in SERVICES for method in service.methods}
STREAMS = {PATHS[rpc] for rpc in PATHS if rpc == "ImportPassages"}
_KEY = b"the same in both worlds"
_ALIKE = {"the": "meeting", "user": "budget", "name": "running"}
"""Words of queries that no item holds, and what they mean."""

_CLOCK = (
    "CREATE SCHEMA test_clock",
    "CREATE TABLE test_clock.now (time timestamptz NOT NULL)",
    "INSERT INTO test_clock.now VALUES ('2030-01-01 00:00:00+00')",
    "GRANT USAGE ON SCHEMA test_clock TO PUBLIC",
    "GRANT SELECT ON test_clock.now TO PUBLIC",
    """CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz
       LANGUAGE sql STABLE PARALLEL SAFE
       RETURN (SELECT now.time FROM test_clock.now)""",
)
"""The schema is none of ours, so that the comparison with the matrix of grants does not see it."""


class ReplayedIds:
    """Ids and secrets that are a function of the operation and of how many it has drawn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begin("")

    def begin(self, operation: str) -> None:
        """What is drawn from now on belongs to *operation*."""
        with self._lock:
            self._operation, self._drawn = operation, 0

    def new_uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._draw()[:16], version=4)

    def new_number(self) -> int:
        return int.from_bytes(self._draw()[:8]) >> 1 | 1

    def new_secret(self) -> bytes:
        return self._draw()

    def _draw(self) -> bytes:
        with self._lock:
            self._drawn += 1
            return derived(f"{self._operation}/{self._drawn}")


def derived(name: str) -> bytes:
    """32 bytes that depend on *name* only."""
    return hmac.digest(_KEY, name.encode(), "sha256")


@dataclass
class World:
    """One served database."""

    database: Database
    owner: psycopg.Connection[Any]
    ids: ReplayedIds
    channel: grpc.Channel
    embedders: Sequence[psycopg.Connection[Any]]
    """At each level, where vectors are made."""
    _calls: dict[str, Any] = field(default_factory=dict)

    def call(
        self,
        operation: str,
        time: datetime,
        path: str,
        requests: Sequence[bytes],
        metadata: Sequence[tuple[str, str]],
    ) -> Outcome:
        """Call the method at *path* at *time*; return all that is observed, whether it succeeds or fails."""
        self.ids.begin(operation)
        self.owner.execute("UPDATE test_clock.now SET time = %s", [time])
        streams = path in STREAMS
        if path not in self._calls:
            self._calls[path] = self.channel.stream_unary(path) if streams else self.channel.unary_unary(path)
        try:
            sent = iter(requests) if streams else requests[0]
            response, call = self._calls[path].with_call(sent, metadata=tuple(metadata), timeout=20.0)
        except grpc.RpcError as error:
            return _outcome(error, b"")
        return _outcome(call, response)

    def embed(self, level: int) -> None:
        """Make every vector that is waited for at or below *level*. Those above wait on."""
        for connection in self.embedders[:level]:
            while embed_batch(connection, lambda text, _: embedding_of(text), START):
                pass

    def add_host(self, tenant: str, ceiling: int) -> str:
        """A host key of *tenant*, the same in every world in which the same keys were made before."""
        row = self.owner.execute("SELECT tenant FROM vault.tenant WHERE name = %s", [tenant]).fetchone()
        row = (
            row
            or self.owner.execute("INSERT INTO vault.tenant (name) VALUES (%s) RETURNING tenant", [tenant]).fetchone()
        )
        secret = derived(f"{tenant}/{ceiling}")
        key = tokens.mint(TokenKind.HOST, tenant=row.tenant, secret=secret)  # type: ignore[union-attr]  # a row returned
        self.owner.execute(
            "INSERT INTO vault.host_key (tenant, host_key_id, key_hash, ceiling) VALUES (%s, %s, %s, %s)",
            [row.tenant, uuid.UUID(bytes=secret[:16], version=4), tokens.digest(key), ceiling],  # type: ignore[union-attr]
        )
        return key


def embedding_of(text: str) -> Vector:
    """The embedding of a text, the same in both worlds."""
    return quick(text, _ALIKE)


def _outcome(call: Any, response: bytes) -> Outcome:
    """Initial metadata are observed too: they stand before the trailers."""
    seen = (*(call.initial_metadata() or ()), *(call.trailing_metadata() or ()))
    return Outcome(call.code(), call.details(), tuple((name, value) for name, value in seen), response)


@contextmanager
def world(postgres: EmbeddedPostgres, *, damage: Sequence[str] = ()) -> Iterator[World]:
    """One world. *damage* is SQL run in it beforehand, as the superuser."""
    ids = ReplayedIds()
    with cloned(postgres) as database, database.as_owner() as owner:
        for statement in _CLOCK:
            owner.execute(statement)
        with database.as_admin() as admin:
            for statement in damage:
                admin.execute(statement)
        with serving(database, ids=ids, embed=embedding_of) as service, ExitStack() as stack:
            embedders = [stack.enter_context(database.connect(level.role)) for level in Classification]
            yield World(database, owner, ids, service.channel, embedders)


@contextmanager
def two_worlds(postgres: EmbeddedPostgres, *, damage: Sequence[str] = ()) -> Iterator[tuple[World, World]]:
    """Two worlds that nothing distinguishes yet."""
    with world(postgres, damage=damage) as first, world(postgres, damage=damage) as second:
        yield first, second
