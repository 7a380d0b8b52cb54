"""A real server in the test's own process, over a real network, and short words to call it.

Calls go through the generated stubs: `at(PUBLIC).save_memory(key="plan", content="…")` is the RPC SaveMemory
with the fields of its request as keywords, and returns its response message or raises grpc.RpcError.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2

from muniment.v1 import passage_service_pb2
from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification, Integrity, Label
from muniment_server.domain.ids import IdSource, RandomIds
from muniment_server.domain.tokens import TokenKind
from muniment_server.monitor.scopes import Scopes
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.epochs import EpochGuard
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.search.embeddings import Vector, no_embedder
from muniment_server.search.reranking import NO_RERANKER, Reranker
from muniment_server.search.search import RemoteQueryEmbedder, Searcher
from muniment_server.telemetry.traces import Tracer
from muniment_server.transport.admission.pools import Limits, Pools
from muniment_server.transport.admission.shares import Shares
from muniment_server.transport.call_log import REQUEST_ID
from muniment_server.transport.server import SERVICES, Server
from tests.support.databases import Database
from tests.support.labels import untrusted

_METHODS = {method.name: method for service in SERVICES for method in service.methods}


_SECONDS = 60.0
"""A call that takes longer hangs, even on a busy machine."""
_IMPORT_PASSAGES = "/muniment.v1.PassageService/ImportPassages"


class Outcome(NamedTuple):
    """All that a caller observes of one call."""

    code: grpc.StatusCode
    message: str
    trailers: tuple[tuple[str, str | bytes], ...]
    response: bytes


class Caller:
    """One principal: knows its token and calls every RPC by its name in snake case, fields as keywords."""

    def __init__(self, channel: grpc.Channel, token: str, session_id: str = "", conversation_id: str = "") -> None:
        self.channel = channel
        self.token = token
        self.session_id = session_id
        self.conversation_id = conversation_id
        self.metadata: tuple[tuple[str, str], ...] = (("authorization", f"Bearer {token}"),)

    def __getattr__(self, name: str) -> Any:
        rpc = "".join(part.capitalize() for part in name.split("_"))
        if rpc not in _METHODS:
            raise AttributeError(name)
        return lambda timeout=_SECONDS, **fields: self.call(rpc, timeout=timeout, **fields)

    def session(self, opened: Any) -> Caller:
        """The caller that OpenSession or ResetSession has answered with."""
        return Caller(self.channel, opened.token, opened.session.session_id, opened.session.conversation_id)

    def call(self, rpc: str, *, timeout: float = _SECONDS, **fields: Any) -> Any:
        """Call *rpc*; return its response or raise grpc.RpcError."""
        method = _METHODS[rpc]
        request = GetMessageClass(method.input_type)(**fields)
        return self.send(rpc, request.SerializeToString(), timeout=timeout)

    def send(self, rpc: str, request: bytes, *, timeout: float = _SECONDS) -> Any:
        """Call *rpc* with *request* as it is on the wire."""
        method = _METHODS[rpc]
        stub: Any = self.channel.unary_unary(
            f"/{method.containing_service.full_name}/{rpc}",
            request_serializer=None,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        return stub(request, metadata=self.metadata, timeout=timeout)

    def observe(self, rpc: str, **fields: Any) -> Outcome:
        """Call *rpc*; return all that is observed of it, whether it succeeds or fails."""
        method = _METHODS[rpc]
        request: Message = GetMessageClass(method.input_type)(**fields)
        stub: Any = self.channel.unary_unary(f"/{method.containing_service.full_name}/{rpc}")
        return self._observed(stub, request.SerializeToString())

    def import_passages(self, *passages: dict[str, Any], timeout: float = _SECONDS) -> Any:
        """Call ImportPassages with a stream of these; return its response or raise grpc.RpcError."""
        return self.import_stream(passages, timeout=timeout)

    def import_stream(self, passages: Iterable[dict[str, Any]], *, timeout: float = _SECONDS) -> Any:
        """The same, with passages that are made while they are sent."""
        stub: Any = self.channel.stream_unary(
            _IMPORT_PASSAGES, response_deserializer=passage_service_pb2.ImportPassagesResponse.FromString
        )
        return stub(map(_import_request, passages), metadata=self.metadata, timeout=timeout)

    def observe_import(self, *passages: dict[str, Any]) -> Outcome:
        """Call ImportPassages with a stream of these; return all that is observed of it."""
        return self._observed(self.channel.stream_unary(_IMPORT_PASSAGES), map(_import_request, passages))

    def _observed(self, stub: Any, request: Any) -> Outcome:
        try:
            response, call = stub.with_call(request, metadata=self.metadata, timeout=_SECONDS)
        except grpc.RpcError as error:
            return failure(error)
        return Outcome(call.code(), call.details(), _trailers(call), response)


def _import_request(passage: dict[str, Any]) -> bytes:
    """One message of the stream, as it is on the wire: the fields of its passage, and its own `validate_only`."""
    fields = {name: value for name, value in passage.items() if name != "validate_only"}
    request = passage_service_pb2.ImportPassagesRequest(
        passage=passage_service_pb2.StorePassageRequest(**fields), validate_only=passage.get("validate_only", False)
    )
    return request.SerializeToString()


@dataclass
class Service:
    """A served database."""

    database: Database
    server: Server
    scopes: Scopes
    port: int
    ids: IdSource
    channel: grpc.Channel
    _hosts: dict[tuple[str, Classification, str], Caller] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def host(self, tenant: str = "acme", ceiling: Classification = Classification.RESTRICTED, name: str = "") -> Caller:
        """A host of *tenant* with *ceiling*: the same one each time it is asked for. It may release."""
        if (tenant, ceiling, name) not in self._hosts:
            key = new_host_key(self.database, tenant, ceiling, ("declassify", "endorse"))
            self._hosts[tenant, ceiling, name] = Caller(self.channel, key)
        return self._hosts[tenant, ceiling, name]

    def agent(self, agent_id: str = "alice", tenant: str = "acme") -> str:
        """An agent of *tenant*, made when it is not there."""
        if self.host(tenant).observe("GetAgent", agent_id=agent_id).code is not grpc.StatusCode.OK:
            self.host(tenant).create_agent(agent_id=agent_id)
        return agent_id

    def lower(self, agent_id: str, ceiling: Classification, tenant: str = "acme") -> None:
        """Lower the ceiling of an agent and its conversations, as no caller can: to test what is behind that guard."""
        with self.database.as_owner() as owner:
            row: Any = owner.execute(_FIND_AGENT, [agent_id, tenant]).fetchone()
            for statement in _LOWER:
                owner.execute(statement, {"ceiling": int(ceiling), "tenant": row[0], "agent": row[1]})

    def session(
        self,
        taint: Classification | Label,
        *,
        agent_id: str = "alice",
        tenant: str = "acme",
        conversation_id: str = "",
    ) -> Caller:
        """A new session, untrusted unless its taint is a label that is trusted. Its id is in `.session_id`."""
        host = self.host(tenant)
        label = taint if isinstance(taint, Label) else untrusted(taint)
        opened = host.open_session(
            agent_id=self.agent(agent_id, tenant),
            taint=int(label.level),
            integrity=int(label.integrity),
            conversation_id=conversation_id,
        )
        return host.session(opened)


_FIND_AGENT = (
    "SELECT tenant, agent FROM vault.agent JOIN vault.tenant USING (tenant) WHERE agent_id = %s AND tenant.name = %s"
)
_OF_AGENT = "tenant = %(tenant)s AND agent = %(agent)s"
_LOWER = (
    f"UPDATE vault.agent SET ceiling = %(ceiling)s, known_from = %(ceiling)s WHERE {_OF_AGENT}",
    "INSERT INTO vault.conversation (tenant, agent, conversation_id, ceiling, taint, trusted)"
    " SELECT tenant, agent, conversation_id, greatest(%(ceiling)s, taint), taint, trusted FROM vault.conversation"
    f" WHERE {_OF_AGENT} ON CONFLICT DO NOTHING",
    "UPDATE vault.session SET ceiling = greatest(%(ceiling)s, (SELECT max(taint) FROM vault.conversation"
    " WHERE conversation.tenant = %(tenant)s AND conversation.agent = %(agent)s"
    f" AND conversation.conversation_id = session.conversation_id)) WHERE {_OF_AGENT}",
    "DELETE FROM vault.conversation WHERE NOT EXISTS (SELECT FROM vault.session WHERE session.tenant = %(tenant)s"
    " AND (session.agent, session.conversation_id, session.ceiling) = (conversation.agent,"
    f" conversation.conversation_id, conversation.ceiling)) AND {_OF_AGENT}",
)


_BOUNDS = {Integrity.TRUSTED: (True, None), Integrity.UNTRUSTED: (False, "SessionService")}


def new_host_key(
    database: Database,
    tenant: str,
    ceiling: Classification,
    may: Collection[str] = (),
    *,
    integrity: Integrity = Integrity.TRUSTED,
) -> str:
    """A host key, made as `muniment host-key create` makes one."""
    with database.as_owner() as owner:
        row: Any = owner.execute("SELECT tenant FROM vault.tenant WHERE name = %s", [tenant]).fetchone()
        row = row or owner.execute("INSERT INTO vault.tenant (name) VALUES (%s) RETURNING tenant", [tenant]).fetchone()
        key = tokens.mint(TokenKind.HOST, tenant=row.tenant, secret=RandomIds().new_secret())
        owner.execute(
            "INSERT INTO vault.host_key"
            " (tenant, host_key_id, key_hash, ceiling, trusted, only_service, may_declassify, may_endorse)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            [
                *(row.tenant, uuid.uuid4(), tokens.digest(key), int(ceiling), *_BOUNDS[integrity]),
                *("declassify" in may, "endorse" in may),
            ],
        )
    return key


@contextmanager
def serving(
    database: Database,
    *,
    ids: IdSource | None = None,
    limits: Limits | None = None,
    open_reflection: bool = True,
    audit_reads_from: Classification = Classification.CONFIDENTIAL,
    embed: Callable[[str], Vector | None] = lambda _: None,
    embed_remotely: RemoteQueryEmbedder = no_embedder,
    reranker: Reranker = NO_RERANKER,
    epochs: EpochGuard | None = None,
    clock: Callable[[], float] = time.monotonic,
    disk: Path | None = None,
    logs_all_calls: bool = False,
    tracer: Tracer | None = None,
) -> Iterator[Service]:
    """Serve *database* on a free port, as if it were on the disk of *disk*. *embed* is asked for vectors of queries."""
    limits = limits or Limits()
    ids = ids or RandomIds()
    connections = RoleDatabase(
        database.conninfo,
        pool_sizes=limits.connections(100),
        epochs=epochs,
    )
    scopes = Scopes(Databases.of_one(connections), ids, audit_reads_from=audit_reads_from)
    server = Server(
        scopes,
        Searcher(lambda text, _: lambda: embed(text), embed_remotely, reranker),
        disk=Disk(disk, clock),
        limits=limits,
        open_reflection=open_reflection,
        logs_all_calls=logs_all_calls,
        tracer=tracer,
        clock=clock,
    )
    port = server.listen("127.0.0.1:0", None)
    server.start()
    set_gate(server, is_open=True)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Service(database, server, scopes, port, ids, channel)
    finally:
        server.stop(grace=1)
        connections.close()


def set_gate(server: Server, *, is_open: bool) -> None:
    """Open or close the gate of *server* whatever its database is like, and report it."""
    server.gate.open = is_open
    server.report()


def pools_of(service: Service) -> Pools:
    """The pools of threads of *service*."""
    return service.server._admission._pools


def shares_of(service: Service, pool: str = "calls") -> Shares:
    """What is in flight in one of the pools of *service*."""
    found = getattr(pools_of(service), pool)
    return found if isinstance(found, Shares) else found.shares


def in_flight(service: Service, pool: str = "calls") -> int:
    """How many calls of one pool run, wait, or have an answer that is not read yet."""
    return shares_of(service, pool).load.in_flight


def without_request_id(metadata: Iterable[tuple[str, str | bytes]]) -> tuple[tuple[str, str | bytes], ...]:
    """All metadata but the id of the call, which is random: `test_call_log.py` holds that."""
    return tuple((name, value) for name, value in metadata if name != REQUEST_ID)


def _trailers(call: Any) -> tuple[tuple[str, str | bytes], ...]:
    return without_request_id(call.trailing_metadata() or ())


def failure(error: Any) -> Outcome:
    """What is observed of a call that failed. The stubs raise errors that are calls, too."""
    return Outcome(error.code(), error.details(), _trailers(error), b"")


def failure_of(call: Any, **fields: Any) -> Outcome:
    """What a caller observes of a call that must fail."""
    try:
        call(**fields)
    except grpc.RpcError as error:
        return failure(error)
    raise AssertionError("the call succeeded")


def reason_of(outcome: Outcome) -> str:
    """The ErrorReason in an outcome, without its prefix; empty when there is none."""
    for name, value in outcome.trailers:
        if name == "grpc-status-details-bin":
            for packed in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if packed.Unpack(info):
                    return str(info.reason)
    return ""
