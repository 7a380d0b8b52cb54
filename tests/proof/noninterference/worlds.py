"""Two worlds: two databases cloned from one template, two processes with a server of one build, nothing left to chance.

Time and ids are injected (see `replay.py`). The time is one row that the harness sets before each operation; ids
depend on the operation, so that an operation gets the same ids in both worlds whatever one of them has left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

import grpc
import psycopg

from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.tokens import TokenKind
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.embedder.queue import (
    BATCH_CHUNKS,
    FIRST,
    START,
    ChunkPosition,
    embed_batch,
    queue_missing,
    read_remote_batch,
    store_remote_batch,
)
from muniment_server.transport.server import SERVICES
from tests.operations.citus.clones import ClusterPostgres
from tests.proof.noninterference.model.desk import APPROVALS
from tests.proof.noninterference.replay import (
    OPERATION,
    REMOTE_MODEL,
    derived,
    embedding_of,
    remote_embedding_of,
    replayed,
)
from tests.proof.noninterference.server_process import Change, ServerProcess, server_process
from tests.proof.noninterference.values import LABELS, flows, level_of
from tests.support.databases import Database, cloned
from tests.support.services import Outcome, without_request_id

RESTRICTED = Classification.RESTRICTED
PATHS = {method.name: f"/{service.full_name}/{method.name}" for service in SERVICES for method in service.methods}
STREAMS = {PATHS[rpc] for rpc in PATHS if rpc == "ImportPassages"}

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
_CLOCK_OF_CLUSTER = """
CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE RETURN timestamptz '{}'
"""


Door: TypeAlias = Callable[[int], AbstractContextManager[Any]]
"""Opens a channel, or what can do as much, to the server at a port."""


@dataclass
class World:
    """One served database."""

    database: Database
    owner: psycopg.Connection[Any]
    channel: Any
    """Of gRPC, or of another door to the server."""
    embedders: Sequence[psycopg.Connection[Any]]
    """Where vectors are made, label by label."""
    other_process: ServerProcess | None = None
    """Where the server runs, if it is not this one."""
    remote_ceiling: int = 0
    """Up to which level a model at an address embeds, too."""
    _calls: dict[str, Any] = field(default_factory=dict)

    @property
    def process(self) -> ServerProcess:
        """Where the server runs."""
        assert self.other_process is not None
        return self.other_process

    def call(
        self,
        operation: str,
        time: datetime | None,
        path: str,
        requests: Sequence[bytes],
        metadata: Sequence[tuple[str, str]],
    ) -> Outcome:
        """Call the method at *path* at *time*; return all that is observed, whether it succeeds or fails.

        Without *time*, the time stays what it is, and other threads may call meanwhile.
        """
        if time is not None:
            self.set_time(time)
        streams = path in STREAMS
        if path not in self._calls:
            self._calls[path] = self.channel.stream_unary(path) if streams else self.channel.unary_unary(path)
        try:
            sent = iter(requests) if streams else requests[0]
            named = (*metadata, (OPERATION, operation))
            response, call = self._calls[path].with_call(sent, metadata=named, timeout=20.0)
        except grpc.RpcError as error:
            return _outcome(error, b"")
        return _outcome(call, response)

    def set_time(self, time: datetime) -> None:
        """Stop the time at *time*. On a cluster, the time is part of the function."""
        if isinstance(self.database.postgres, ClusterPostgres):
            self.owner.execute(_CLOCK_OF_CLUSTER.format(time.isoformat()).encode())
        else:
            self.owner.execute("UPDATE test_clock.now SET time = %s", [time])

    def embed(self, label: int, moment: str = "") -> None:
        """Make every vector that is waited for with labels that flow to *label*. Those of others wait on.

        Which chunks the model at the address leaves out depends on the *moment*. The same moment again changes nothing.
        """
        chance = derived(moment)
        for source in (source for source in LABELS if flows(source, label)):
            connection, is_remote = self.embedders[source - 1], level_of(source) <= self.remote_ceiling
            model = REMOTE_MODEL if is_remote and chance[0] % 5 else None  # without one, chunks go missing
            while embed_batch(connection, embedding_of, START, next_model=model):
                pass
            if is_remote:
                self._embed_remotely(connection, chance)

    def _embed_remotely(self, connection: psycopg.Connection[Any], chance: bytes) -> None:
        """Embed with the model at the address what waits. What is missing is found and embedded at times only."""
        if chance[1] % 3 == 0:
            position: ChunkPosition | None = FIRST
            while position is not None:
                position = queue_missing(connection, position, model=REMOTE_MODEL)
        for is_missing in (False, True)[: 1 + chance[2] % 2]:
            while batch := read_remote_batch(
                connection, START, most=BATCH_CHUNKS, model=REMOTE_MODEL, is_missing=is_missing
            ):
                vectors = [remote_embedding_of(chunk.text) for chunk in batch]
                store_remote_batch(connection, batch, vectors, model=REMOTE_MODEL)

    def add_desk_key(self, tenant: str, number: int) -> tuple[str, str]:
        """A host key with both rights of the desk, and its id. A release needs APPROVALS of them."""
        key = self.add_host(tenant, RESTRICTED, f"desk {number}")
        given = {"hash": tokens.digest(key), "approvals": APPROVALS, "tenant": tenant}
        row = self.owner.execute(
            "UPDATE vault.host_key SET may_declassify = TRUE, may_endorse = TRUE WHERE key_hash = %(hash)s"
            " RETURNING host_key_id",
            given,
        ).fetchone()
        self.owner.execute("UPDATE vault.tenant SET release_approvals = %(approvals)s WHERE name = %(tenant)s", given)
        return key, str(row.host_key_id)  # type: ignore[union-attr]  # a row returned

    def add_host(self, tenant: str, ceiling: int, name: str = "") -> str:
        """A host key of *tenant*, the same in every world in which the same keys were made before."""
        row = self.owner.execute("SELECT tenant FROM vault.tenant WHERE name = %s", [tenant]).fetchone()
        row = (
            row
            or self.owner.execute("INSERT INTO vault.tenant (name) VALUES (%s) RETURNING tenant", [tenant]).fetchone()
        )
        secret = derived(f"{tenant}/{ceiling}{name}")
        key = tokens.mint(TokenKind.HOST, tenant=row.tenant, secret=secret)  # type: ignore[union-attr]  # a row returned
        self.owner.execute(
            "INSERT INTO vault.host_key (tenant, host_key_id, key_hash, ceiling) VALUES (%s, %s, %s, %s)",
            [row.tenant, uuid.UUID(bytes=secret[:16], version=4), tokens.digest(key), ceiling],  # type: ignore[union-attr]
        )
        return key


def _outcome(call: Any, response: bytes) -> Outcome:
    """Initial metadata are observed too: they stand before the trailers."""
    seen = (*(call.initial_metadata() or ()), *(call.trailing_metadata() or ()))
    return Outcome(call.code(), call.details(), without_request_id(seen), response)


@contextmanager
def world(postgres: EmbeddedPostgres | ClusterPostgres, *, damage: Sequence[str] = ()) -> Iterator[World]:
    """One world, served by this process. *damage* is SQL run in it beforehand, as the superuser."""
    with _prepared(postgres, damage) as (database, owner), replayed(database) as service, ExitStack() as stack:
        yield World(database, owner, service.channel, _embedders(database, stack))


def by_grpc(server: int) -> AbstractContextManager[grpc.Channel]:
    """A channel to the server at a port."""
    return grpc.insecure_channel(f"127.0.0.1:{server}")


@contextmanager
def two_worlds(
    postgres: EmbeddedPostgres | ClusterPostgres, *, damage: Sequence[str] = (), door: Door = by_grpc
) -> Iterator[tuple[World, World]]:
    """Two worlds that nothing distinguishes yet, each served by a process of its own, and called through a *door*."""
    with _elsewhere(postgres, damage, 0, door) as first, _elsewhere(postgres, damage, 1, door) as second:
        yield first, second


@contextmanager
def changed(worlds: Iterable[World], change: Change) -> Iterator[None]:
    """The code of the processes that serve *worlds* is changed, until the block ends."""
    with ExitStack() as stack:
        for one in worlds:
            stack.enter_context(one.process.changed(change))
        yield


@contextmanager
def _elsewhere(
    postgres: EmbeddedPostgres | ClusterPostgres, damage: Sequence[str], number: int, door: Door
) -> Iterator[World]:
    process = server_process(number)
    with _prepared(postgres, damage) as (database, owner), ExitStack() as stack:
        port = stack.enter_context(process.serving(database.admin))
        channel = stack.enter_context(door(port))
        yield World(database, owner, channel, _embedders(database, stack), process)


@contextmanager
def _prepared(
    postgres: EmbeddedPostgres | ClusterPostgres, damage: Sequence[str]
) -> Iterator[tuple[Database, psycopg.Connection[Any]]]:
    """A database with a clock of its own, and *damage*."""
    with cloned(postgres) as database, database.as_owner() as owner:
        for statement in () if isinstance(postgres, ClusterPostgres) else _CLOCK:
            owner.execute(statement)
        with database.as_admin() as admin:
            for statement in damage:
                admin.execute(statement)
        yield database, owner


def _embedders(database: Database, stack: ExitStack) -> Sequence[psycopg.Connection[Any]]:
    return [stack.enter_context(database.connect(label.role)) for label in Label]
