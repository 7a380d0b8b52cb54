"""Sends what was generated to a real server, as callers of every kind, and says which answers are faults."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from muniment_server.domain.classification import Classification, Label
from tests.proof.fuzz.generator import Known, Pen
from tests.proof.fuzz.rules import METHODS, request_of
from tests.proof.fuzz.wire import Payload, encode
from tests.support.methods import FOR_HOSTS
from tests.support.services import Caller, Service, failure

DEADLINE = 10.0
"""Seconds within which every call must be answered."""
FAULTS = {
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DATA_LOSS,
}
"""What no request may cause. Nothing here is away, overloaded or slow."""
_REFLECT = {f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo" for version in ("v1", "v1alpha")}
PATHS: dict[str, Any] = {
    **{f"/{method.containing_service.full_name}/{name}": request_of(name) for name, method in METHODS.items()},
    "/grpc.health.v1.Health/Check": health_pb2.HealthCheckRequest.DESCRIPTOR,
    "/grpc.health.v1.Health/Watch": health_pb2.HealthCheckRequest.DESCRIPTOR,
    **dict.fromkeys(sorted(_REFLECT), reflection_pb2.ServerReflectionRequest.DESCRIPTOR),
    "/muniment.v1.MemoryService/Nothing": request_of("GetMemory"),
    "/nothing": request_of("GetMemory"),
}
"""Every method of the server, of health and of reflection, and two that do not exist."""
REFUSED = {"/muniment.v1.MemoryService/Nothing", "/nothing", "/grpc.health.v1.Health/Watch"}
"""Those that the server does not serve to anybody."""
_STREAMS = {"/muniment.v1.PassageService/ImportPassages", *_REFLECT}
_HOSTILE_METADATA: list[tuple[str, str | bytes]] = [
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ("traceparent", "00-00000000000000000000000000000000-0000000000000000-00"),
    ("traceparent", "ff-"), ("traceparent", "-" * 3000), ("tracestate", "a=" + "b" * 600), ("baggage", "a=b,,;=%"),
    ("taint", "4"), ("x-tenant", "1"), ("x-bin", b"\x00\xff"), ("grpc-trace-bin", b"\x00"), ("x" * 300, "y"),
    ("grpc-tags-bin", b"\xff" * 40), ("x-long", "z" * 7000),
]  # fmt: skip
_CREDENTIALS = [
    "", "Bearer", "Bearer ", "bearer x", "Basic YTpi", "Bearer mun_s_1_", "Bearer mun_h_0_" + "A" * 43,
    "Bearer mun_s_9999999999999999999_" + "A" * 43, "Bearer mun_x_1_" + "A" * 43, "Bearer mun_s_1_" + "A" * 43 + "_0",
    "Bearer mun_s_9223372036854775807_" + "A" * 43, "Bearer mun_s_01_" + "A" * 43, "Bearer a b",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request:
    """One call."""

    path: str
    principal: str
    metadata: tuple[tuple[str, str | bytes], ...]
    payloads: Sequence[Payload]

    def __str__(self) -> str:
        shown = " | ".join(_shown(PATHS[self.path], payload) for payload in self.payloads)
        return f"{self.path} as {self.principal}: {shown or 'no message'}"


def _session_at(label: Label) -> str:
    return f"a session at {label.name}"


def _shown(descriptor: Any, payload: Payload) -> str:
    """The message as text if it is one, and its first bytes."""
    content = encode(payload)
    try:
        text = str(GetMessageClass(descriptor).FromString(content)).replace("\n", " ")
    except DecodeError:
        text = "(not a message) "
    return f"{text[:400]}hex {content[:200].hex()}" + f"… of {len(content)} bytes" * (len(content) > 200)


class Callers:
    """Hosts and sessions of one agent, which callers may raise, close or delete: new ones for each round."""

    def __init__(self, service: Service, known: Known) -> None:
        self._service = service
        self._known = known
        self._round = 0
        self._tokens: dict[str, str] = {}
        self.renew()

    def renew(self) -> None:
        """Take a new agent, with a session of each label and an item of each kind, and a reader of its shared block."""
        self._round += 1
        host, agent, reader = self._service.host(), f"agent{self._round}", f"reader{self._round}"
        hosts = {
            "a host": host,
            "a host up to PUBLIC": self._service.host(ceiling=Classification.PUBLIC),
            "a host of another tenant": self._service.host("other"),
        }
        self._tokens = {name: each.token for name, each in hosts.items()}
        sessions = [self._open(label) for label in Label]
        self._service.agent(reader)
        host.create_shared_block(owner_agent_id=agent, label="plan", content="whale")
        host.attach_block(owner_agent_id=agent, label="plan", agent_id=reader)
        ids = [str(uuid.UUID(int=self._round * 100 + number, version=4)) for number in range(8)]
        for session, item_id in zip(sessions, ids, strict=True):
            session.save_memory(key="plan", content="whale", tags=["urgent"])
            session.save_memory(key="gone", content="whale")
            session.delete_memory(key="gone")
            session.update_block(label="personality", content="whale")
            session.add_note(note_id=item_id, content=f"whale {item_id}")
            session.store_passage(passage_id=item_id, content="whale", tags=["urgent"])
        self._known.begin(
            agent_id=[agent, reader], owner_agent_id=[agent], session_id=[each.session_id for each in sessions],
            key=["plan", "gone"], label=["plan", "personality"], note_id=ids, passage_id=ids, tags=["urgent"],
            etag=[""], conversation_id=[sessions[0].conversation_id],
        )  # fmt: skip

    def _open(self, label: Label) -> Caller:
        opened = self._service.session(label, agent_id=f"agent{self._round}")
        self._tokens[_session_at(label)] = opened.token
        self._known.add("session_id", opened.session_id)
        return opened

    def request(self, path: str, dice: Random) -> Request:
        """A call of *path*, mostly by one who may call it."""
        name = path.rpartition("/")[2]
        wanted = "a host" if name in FOR_HOSTS or dice.random() < 0.1 else "a session"
        principal = dice.choice([each for each in self._tokens if each.startswith(wanted)])
        credential = f"Bearer {self._tokens[principal]}"
        if dice.random() < 0.03:
            principal = "a caller with a wrong credential"
            credential = dice.choice([*_CREDENTIALS, credential[:-1], credential + "0"])
        metadata: list[tuple[str, str | bytes]] = [("authorization", credential)] if credential else []
        if dice.random() < 0.05:
            metadata += dice.choices([*_HOSTILE_METADATA, ("authorization", "Bearer x")], k=dice.randrange(1, 3))
        count = dice.choice((0, 1, 1, 2, 4)) if path in _STREAMS or dice.random() < 0.02 else 1
        pen = Pen(dice, self._known)
        return Request(path, principal, tuple(metadata), [pen.payload(PATHS[path]) for _ in range(count)])

    def answer(self, request: Request) -> grpc.StatusCode:
        """Send a call; return the status with which it is answered. What it tells is known from now on."""
        code, responses = _answer(self._service.channel, request)
        if (
            code is grpc.StatusCode.UNAVAILABLE
        ):  # connections end after a minute, and with them a call that is too large
            code, responses = _answer(self._service.channel, request)
        if code is grpc.StatusCode.OK and request.path.endswith("/DeleteAgent"):
            self.renew()
        elif code is grpc.StatusCode.UNAUTHENTICATED:
            for label in Label:
                if request.principal == _session_at(label):
                    self._open(label)  # it has been closed
        if (method := METHODS.get(request.path.rpartition("/")[2])) is not None:
            for response in responses:
                self._known.read(GetMessageClass(method.output_type).FromString(response))
        return code


def _answer(channel: Any, request: Request) -> tuple[grpc.StatusCode, list[bytes]]:
    messages = [encode(payload) for payload in request.payloads]
    how = {"metadata": request.metadata, "timeout": DEADLINE}
    try:
        if len(messages) == 1 and request.path not in _STREAMS:
            return grpc.StatusCode.OK, [channel.unary_unary(request.path)(messages[0], **how)]
        return grpc.StatusCode.OK, list(channel.stream_stream(request.path)(iter(messages), **how))
    except grpc.RpcError as error:
        return failure(error).code, []
