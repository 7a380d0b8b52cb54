"""One gRPC server: the services of the contract behind the walls, health and reflection beside them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

from muniment.v1 import (
    agent_service_pb2,
    agent_service_pb2_grpc,
    audit_service_pb2,
    audit_service_pb2_grpc,
    block_service_pb2,
    block_service_pb2_grpc,
    memory_service_pb2,
    memory_service_pb2_grpc,
    note_service_pb2,
    note_service_pb2_grpc,
    passage_service_pb2,
    passage_service_pb2_grpc,
    prompt_service_pb2,
    prompt_service_pb2_grpc,
    session_service_pb2,
    session_service_pb2_grpc,
)
from muniment_server.agents.servicer import AgentServicer
from muniment_server.audit_log.servicer import AuditServicer
from muniment_server.blocks.servicer import BlockServicer
from muniment_server.memories.servicer import MemoryServicer
from muniment_server.monitor import policy
from muniment_server.monitor.authentication import Credentials
from muniment_server.monitor.call import Wall
from muniment_server.monitor.interceptors import (
    Authenticate,
    Authorize,
    FollowTaint,
    Gate,
    GuardEgress,
    TellErrors,
    Validate,
)
from muniment_server.monitor.store import Store
from muniment_server.monitor.validation import Rules, load_pool
from muniment_server.notes.servicer import NoteServicer
from muniment_server.passages.servicer import PassageServicer
from muniment_server.prompts.servicer import PromptServicer
from muniment_server.sessions.servicer import SessionServicer
from muniment_server.transport.dispatch import CallPool, PutBehindWalls
from muniment_server.transport.receive_timeout import Patience

_SERVED: tuple[tuple[ServiceDescriptor, Callable[[Any, grpc.Server], None], type[Any]], ...] = (
    (
        agent_service_pb2.DESCRIPTOR.services_by_name["AgentService"],
        agent_service_pb2_grpc.add_AgentServiceServicer_to_server,
        AgentServicer,
    ),
    (
        session_service_pb2.DESCRIPTOR.services_by_name["SessionService"],
        session_service_pb2_grpc.add_SessionServiceServicer_to_server,
        SessionServicer,
    ),
    (
        memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"],
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server,
        MemoryServicer,
    ),
    (
        block_service_pb2.DESCRIPTOR.services_by_name["BlockService"],
        block_service_pb2_grpc.add_BlockServiceServicer_to_server,
        BlockServicer,
    ),
    (
        note_service_pb2.DESCRIPTOR.services_by_name["NoteService"],
        note_service_pb2_grpc.add_NoteServiceServicer_to_server,
        NoteServicer,
    ),
    (
        passage_service_pb2.DESCRIPTOR.services_by_name["PassageService"],
        passage_service_pb2_grpc.add_PassageServiceServicer_to_server,
        PassageServicer,
    ),
    (
        prompt_service_pb2.DESCRIPTOR.services_by_name["PromptService"],
        prompt_service_pb2_grpc.add_PromptServiceServicer_to_server,
        PromptServicer,
    ),
    (
        audit_service_pb2.DESCRIPTOR.services_by_name["AuditService"],
        audit_service_pb2_grpc.add_AuditServiceServicer_to_server,
        AuditServicer,
    ),
)
"""Every service of the contract: what it declares, how it is registered, and who serves it."""
SERVICES = tuple(declared for declared, _, _ in _SERVED)

_MIB = 1024 * 1024
_LONG_CALLS_A_THREAD = 32
_STREAMS_A_THREAD = 16
"""Run or queued. More are refused at once."""
_MOST_REFUSALS = 1000
"""Refusals under way at once. Beyond them grpc itself refuses, and does not say when to come again."""
_OPTIONS: dict[str, int] = {
    "grpc.max_receive_message_length": _MIB,
    "grpc.max_send_message_length": 4 * _MIB,
    "grpc.max_metadata_size": 8 * 1024,
    "grpc.absolute_max_metadata_size": 8 * 1024,
    "grpc.max_concurrent_streams": 100,
    "grpc.server_handshake_timeout_ms": 10_000,
    "grpc.http2.max_ping_strikes": 2,
    "grpc.max_connection_age_ms": 10 * 60_000,  # spreads clients over the workers
    "grpc.max_connection_age_grace_ms": 2 * 60_000,  # longer than calls take: who reads no answers is let go
    "grpc.enable_channelz": 0,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one server takes on at once."""

    threads: int = 4
    """Calls run at once. More contend for the interpreter lock."""
    long_threads: int = 2
    """Searches and renderings run at once, on threads of their own: long calls may not hold every thread."""
    stream_threads: int = 1
    """Streams taken at once, on threads of their own: each waits for its caller."""
    most_in_flight: int = 256
    """Calls run or queued, beside long ones and streams. More are refused at once."""

    @property
    def connections(self) -> int:
        """The most connections that one role needs at once."""
        return self.threads + self.long_threads + self.stream_threads


class Server:
    """A gRPC server over one store. It listens where `listen` says, and serves from `start` to `stop`."""

    def __init__(self, store: Store, *, limits: Limits, open_reflection: bool, share_port: bool = False) -> None:
        methods = policy.policies(SERVICES)
        pool = load_pool()
        credentials = Credentials(store)
        self.gate = Gate()
        self._health = health.HealthServicer(experimental_thread_pool=ThreadPoolExecutor(4, "watch"))
        self._patience = Patience()
        calls = CallPool(limits.threads, most=limits.most_in_flight)
        walls: list[Wall] = [
            TellErrors(),
            self.gate,
            Authenticate(credentials),
            FollowTaint(credentials),
            Authorize(store),
            Validate(Rules(pool, {method.request_type for method in methods.values()})),
            GuardEgress(),
        ]
        interceptor = PutBehindWalls(
            methods,
            walls,
            pool=calls,
            long_pool=CallPool(limits.long_threads, most=_LONG_CALLS_A_THREAD * limits.long_threads),
            stream_pool=CallPool(limits.stream_threads, most=_STREAMS_A_THREAD * limits.stream_threads),
            open_reflection=open_reflection,
            patience=self._patience,
        )
        self.grpc = grpc.server(
            calls,
            interceptors=[interceptor],
            options=[*_OPTIONS.items(), ("grpc.so_reuseport", int(share_port))],
            maximum_concurrent_rpcs=limits.most_in_flight + _MOST_REFUSALS,
        )
        self._register(store, pool)

    def listen(self, address: str, credentials: grpc.ServerCredentials | None) -> int:
        """Listen at *address*; return the port (0 for a unix socket). Raises RuntimeError when it is taken."""
        if credentials is None:
            return self.grpc.add_insecure_port(address)
        return self.grpc.add_secure_port(address, credentials)

    def start(self) -> None:
        """Begin to answer. Calls are refused until `set_serving` opens the gate."""
        self._patience.start()
        self.grpc.start()

    def set_serving(self, serving: bool) -> None:
        """Open or close the gate, and say so to those who ask for health."""
        self.gate.open = serving
        state = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", *(service.full_name for service in SERVICES)):
            self._health.set(service, state)

    def stop(self, grace: float) -> None:
        """Say NOT_SERVING, take no new calls, let those in flight finish within *grace* seconds."""
        self._health.enter_graceful_shutdown()
        self.grpc.stop(grace).wait()
        self._patience.end()

    def _register(self, store: Store, pool: DescriptorPool) -> None:
        for _, register, servicer in _SERVED:
            register(servicer(store), self.grpc)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.grpc)
        for file in (health_pb2, reflection_pb2):
            pool.AddSerializedFile(file.DESCRIPTOR.serialized_pb)
        names = [*(service.full_name for service in SERVICES), health.SERVICE_NAME, reflection.SERVICE_NAME]
        reflection.enable_server_reflection(names, self.grpc, pool=pool)
