"""One gRPC server: the services of the contract behind the interceptors, with health and reflection."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import grpc
from google.protobuf.descriptor import FileDescriptor, ServiceDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from muniment.v1 import agent_service_pb2 as agents
from muniment.v1 import agent_service_pb2_grpc as agents_grpc
from muniment.v1 import audit_service_pb2 as audit_log
from muniment.v1 import audit_service_pb2_grpc as audit_log_grpc
from muniment.v1 import block_service_pb2 as blocks
from muniment.v1 import block_service_pb2_grpc as blocks_grpc
from muniment.v1 import memory_service_pb2 as memories
from muniment.v1 import memory_service_pb2_grpc as memories_grpc
from muniment.v1 import note_service_pb2 as notes
from muniment.v1 import note_service_pb2_grpc as notes_grpc
from muniment.v1 import passage_service_pb2 as passages
from muniment.v1 import passage_service_pb2_grpc as passages_grpc
from muniment.v1 import prompt_service_pb2 as prompts
from muniment.v1 import prompt_service_pb2_grpc as prompts_grpc
from muniment.v1 import release_service_pb2 as releases
from muniment.v1 import release_service_pb2_grpc as releases_grpc
from muniment.v1 import session_service_pb2 as sessions
from muniment.v1 import session_service_pb2_grpc as sessions_grpc
from muniment.v1 import version_service_pb2 as versions
from muniment.v1 import version_service_pb2_grpc as versions_grpc
from muniment_server.agents.servicer import AgentServicer
from muniment_server.audit_log.servicer import AuditServicer
from muniment_server.blocks.servicer import BlockServicer
from muniment_server.memories.servicer import MemoryServicer
from muniment_server.monitor import interceptors, policy
from muniment_server.monitor.authentication import Credential, Credentials
from muniment_server.monitor.gate import Gate
from muniment_server.monitor.scopes import Scopes
from muniment_server.monitor.validation import Validator, load_pool
from muniment_server.notes.servicer import NoteServicer
from muniment_server.passages.servicer import PassageServicer
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases
from muniment_server.prompts.servicer import PromptServicer
from muniment_server.releases.servicer import ReleaseServicer
from muniment_server.search.search import Searcher
from muniment_server.sessions.servicer import SessionServicer
from muniment_server.telemetry import worker_metrics as metrics
from muniment_server.telemetry.traces import Tracer
from muniment_server.transport import descriptions
from muniment_server.transport.admission.admission import Admission
from muniment_server.transport.admission.pools import Limits
from muniment_server.transport.admission.rates import CountCalls, Rates
from muniment_server.transport.call_log import CallLog
from muniment_server.transport.dispatch import Dispatcher
from muniment_server.transport.full_disk import RefuseWhenFull
from muniment_server.versions.servicer import VersionServicer

_SERVED: tuple[tuple[FileDescriptor, Callable[[Any, grpc.Server], None], Callable[[Searcher], object]], ...] = (
    (agents.DESCRIPTOR, agents_grpc.add_AgentServiceServicer_to_server, lambda _: AgentServicer()),
    (sessions.DESCRIPTOR, sessions_grpc.add_SessionServiceServicer_to_server, lambda _: SessionServicer()),
    (memories.DESCRIPTOR, memories_grpc.add_MemoryServiceServicer_to_server, MemoryServicer),
    (blocks.DESCRIPTOR, blocks_grpc.add_BlockServiceServicer_to_server, lambda _: BlockServicer()),
    (notes.DESCRIPTOR, notes_grpc.add_NoteServiceServicer_to_server, NoteServicer),
    (passages.DESCRIPTOR, passages_grpc.add_PassageServiceServicer_to_server, PassageServicer),
    (prompts.DESCRIPTOR, prompts_grpc.add_PromptServiceServicer_to_server, lambda _: PromptServicer()),
    (versions.DESCRIPTOR, versions_grpc.add_VersionServiceServicer_to_server, lambda _: VersionServicer()),
    (releases.DESCRIPTOR, releases_grpc.add_ReleaseServiceServicer_to_server, lambda _: ReleaseServicer()),
    (audit_log.DESCRIPTOR, audit_log_grpc.add_AuditServiceServicer_to_server, lambda _: AuditServicer()),
)
"""Every file of services: its descriptor, how its service is registered, and how the servicer is made."""
SERVICES: tuple[ServiceDescriptor, ...] = tuple(
    service for file, _, _ in _SERVED for service in file.services_by_name.values()
)

LIVENESS = "liveness"
"""In the health service: the process answers. If it does not, restart it."""
READINESS = "readiness"
"""In the health service, like the empty name and each service's: calls can be served. If not, send them elsewhere."""
_MIB = 1024 * 1024
_OPTIONS: dict[str, int] = {
    "grpc.max_receive_message_length": _MIB,
    "grpc.max_send_message_length": 4 * _MIB,
    "grpc.max_metadata_size": 8 * 1024,
    "grpc.absolute_max_metadata_size": 8 * 1024,
    "grpc.max_concurrent_streams": 2000,  # a call counts for a while after its caller has the answer
    "grpc.server_handshake_timeout_ms": 10_000,
    "grpc.http2.settings_timeout": 10_000,  # until a caller acknowledges them, grpc applies no limit to its headers
    "grpc.http2.max_ping_strikes": 2,
    "grpc.http2.min_ping_interval_without_data_ms": 5_000,  # clients ask every ten whether a silent server is there
    "grpc.max_connection_age_ms": 60_000,  # spreads clients over the workers
    "grpc.max_connection_age_grace_ms": 11 * 60_000,  # longer than any call
    "grpc.http2.bdp_probe": 0,  # flow control would let more arrive of messages not received yet
    "grpc.server.max_pending_requests": 3_000,  # as many as grpc keeps at most: from 1,000 on, it would end some
    "grpc.enable_channelz": 0,
}


class Server:
    """A gRPC server over one database. It listens where `listen` says, and serves from `start` to `stop`."""

    def __init__(
        self,
        scopes: Scopes,
        searcher: Searcher,
        *,
        disk: Disk,
        limits: Limits,
        open_reflection: bool,
        logs_all_calls: bool = False,
        tracer: Tracer | None = None,
        credential: Credential | None = None,
        share_port: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """*logs_all_calls* writes a line for each, *tracer* traces them. *credential* reads those of callers.

        *clock* counts seconds, for agents' rates.
        """
        methods = policy.policies(SERVICES)
        self.gate = Gate()
        self._is_ready = True
        self._disk = disk
        self._health = health.HealthServicer()
        credentials = Credentials(scopes, credential or Credential())
        rates = Rates(clock)
        calls = CallLog(logs_all=logs_all_calls, tracer=tracer)
        self._admission = Admission(credentials, self.gate, limits, rates, calls, scopes.databases)
        self._admission.calls.expect(methods.values())
        order = interceptors.in_order(
            self.gate, credentials, _validator(), counts=CountCalls(rates), refuses_when_full=RefuseWhenFull(disk)
        )
        dispatcher = Dispatcher(
            methods,
            order,
            scopes,
            self._admission,
            _descriptions(),
            open_reflection=open_reflection,
        )
        self.grpc = grpc.server(
            dispatcher.arrivals,
            interceptors=[dispatcher],
            options=[*_OPTIONS.items(), ("grpc.so_reuseport", int(share_port))],
        )
        self._register(searcher)

    def listen(self, address: str, credentials: grpc.ServerCredentials | None) -> int:
        """Listen at *address*; return the port (0 for a unix socket). Raises RuntimeError if it is in use."""
        if credentials is None:
            return self.grpc.add_insecure_port(address)
        return self.grpc.add_secure_port(address, credentials)

    def start(self) -> None:
        """Start answering. Calls are refused until `check` opens the gate."""
        self._admission.start()
        self._health.set(LIVENESS, health_pb2.HealthCheckResponse.SERVING)
        self.grpc.start()

    def check(self, databases: Databases, *, connections: int) -> None:
        """Open or close the gate, as *databases* are found, and report it by the health service: see `Gate.check`."""
        self.gate.check(databases, connections=connections)
        self.report()

    def set_ready(self, ready: bool) -> None:
        """Report whether calls can be served now. The gate stays as it is: calls find out for themselves."""
        self._is_ready = ready
        self.report()

    @property
    def is_stuck(self) -> bool:
        """Whether calls wait, and none has been served for a while."""
        return self._admission.is_stuck

    def measure(self) -> None:
        """Bring the metrics up to date. To be called every second."""
        metrics.WORKERS.labels("gate_open").set(self.gate.open)
        metrics.WORKERS.labels("ready").set(self.gate.open and self._is_ready)
        metrics.WORKERS.labels("listening").set(1)  # last: one that just listens must not count as not ready
        metrics.DISK_FULL.set(self._disk.is_full)
        self._admission.measure()

    def report(self) -> None:
        """Report by the health service whether calls can be served: the gate is open, and `set_ready` said so."""
        ready = self.gate.open and self._is_ready
        state = health_pb2.HealthCheckResponse.SERVING if ready else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", READINESS, *(service.full_name for service in SERVICES)):
            self._health.set(service, state)

    def stop(self, grace: float) -> None:
        """Report NOT_SERVING, take no new calls, and let those in flight finish within *grace* seconds."""
        self._health.enter_graceful_shutdown()
        self.grpc.stop(grace).wait()
        self._admission.stop()

    def _register(self, searcher: Searcher) -> None:
        for _, register, make_servicer in _SERVED:
            register(make_servicer(searcher), self.grpc)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.grpc)


@cache
def _validator() -> Validator:
    """Shared by all servers of a process: compiling the rules takes longer than all else that makes a server."""
    return Validator(load_pool(), {method.input_type.full_name for service in SERVICES for method in service.methods})


@cache
def _descriptions() -> descriptions.Descriptions:
    return descriptions.of_everything(service.full_name for service in SERVICES)
