"""Plays scenes against a server and writes down what is asked and answered."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2

from tests.proof.golden.contract import LEVELS, METHODS, RESTRICTED, STREAMS, path_of
from tests.proof.golden.internals import BEGINNING, Stand, without_request_id
from tests.proof.golden.rendering import digest, lines_of, lines_of_refusal

_STEP = timedelta(seconds=1, microseconds=250)
_STATUS = "grpc-status-details-bin"
ENTRY = "=== "
"""How the first line of an entry begins."""


class Actor:
    """One caller. Knows every RPC by its name in snake case, takes fields as keywords and returns the response.

    A refusal is written down as well, and returned as None.
    """

    def __init__(self, stage: Stage, kind: str, level: int, name: str, metadata: Sequence[tuple[str, str]]) -> None:
        self.stage = stage
        self.kind = kind
        self.level = level
        """A session's taint, or a host's ceiling; 0 without credentials."""
        self.name = name
        self.metadata = tuple(metadata)
        self.session: Any = None
        """What OpenSession returned."""

    def __str__(self) -> str:
        return f"{self.kind} {LEVELS[self.level]} {self.name}" if self.level else f"{self.kind} {self.name}"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        rpc = "".join(part.capitalize() for part in name.split("_"))
        if rpc not in METHODS:
            raise AttributeError(name)
        return lambda *messages, **fields: self.call(rpc, *messages, **fields)

    def call(self, rpc: str, *messages: dict[str, Any], **fields: Any) -> Any:
        """Call *rpc* with these fields, or with a stream of these messages."""
        request_class = GetMessageClass(METHODS[rpc].input_type)
        given = messages if rpc in STREAMS else (fields,)
        return self.stage.play(self, rpc, [request_class(**each) for each in given])

    def send(self, rpc: str, *requests: bytes) -> Any:
        """Call *rpc*, which may be any path, with what may be no message."""
        return self.stage.play(self, rpc, requests)

    def pages(self, rpc: str, **fields: Any) -> list[Any]:
        """Call *rpc* for all pages of a list."""
        found = [self.call(rpc, **fields)]
        while found[-1].next_page_token:
            found.append(self.call(rpc, page_token=found[-1].next_page_token, **fields))
        return found


class Stage:
    """One scene: a tenant of its own, a time that passes with each call, and the transcript."""

    def __init__(self, stand: Stand, scene: str) -> None:
        self.stand = stand
        self.scene = scene
        self.time = BEGINNING
        self._played = 0
        self._lines: list[str] = []
        self._hosts: dict[tuple[int, str, str], Actor] = {}
        self._names: dict[str, int] = {}
        self._incidents: dict[str, str] = {}

    @property
    def transcript(self) -> str:
        return "\n".join((*self._lines, ""))

    # Who is there.

    def host(self, ceiling: int = RESTRICTED, tenant: str = "acme", name: str = "") -> Actor:
        """A host: the same one each time it is asked for. One with a name may release; see `add_host`."""
        if (ceiling, tenant, name) not in self._hosts:
            key = self.stand.add_host(f"{self.scene} {tenant}", ceiling, name)
            self._hosts[ceiling, tenant, name] = self._bearer("host", ceiling, name or tenant, key)
        return self._hosts[ceiling, tenant, name]

    def open(self, level: int, agent: str = "alice", *, host: Actor | None = None, **fields: Any) -> Actor:
        """A new session."""
        response = (host or self.host()).open_session(agent_id=agent, taint=level, **fields)
        return self.session(response, agent)

    def session(self, response: Any, agent: str = "alice") -> Actor:
        """The session that OpenSession or ResetSession returned."""
        if response is None:
            pytest.fail(f"no session of {agent}: the last call of {self.scene} was refused\n{self._last_entry()}")
        self._names[agent] = self._names.get(agent, 0) + 1
        name = f"{agent}#{self._names[agent]}"
        opened = self._bearer("session", response.session.taint, name, response.token)
        opened.session = response.session
        return opened

    def levels(self, agent: str = "alice", **fields: Any) -> dict[int, Actor]:
        """A new session at each level."""
        return {level: self.open(level, agent, **fields) for level in LEVELS}

    def anonymous(self, name: str, *metadata: tuple[str, str]) -> Actor:
        """A caller without credentials, or with metadata of any kind."""
        return Actor(self, "nobody", 0, name, metadata)

    def _bearer(self, kind: str, level: int, name: str, token: str) -> Actor:
        return Actor(self, kind, level, name, [("authorization", f"Bearer {token}")])

    # What happens.

    def say(self, text: str) -> None:
        """A line in the transcript for its readers."""
        self._lines += [f"# {text}", ""]

    def wait(self, **ahead: float) -> None:
        """Let timedelta(**ahead) pass."""
        self.time += timedelta(**ahead)
        self.say(f"The time is {self.time.isoformat()}")

    def play(self, actor: Actor, rpc: str, requests: Sequence[Message | bytes]) -> Any:
        """Call *rpc* once, write it down, and return the response or None."""
        self._begin()
        sent = [each if isinstance(each, bytes) else each.SerializeToString(deterministic=True) for each in requests]
        code, message, metadata, response = _called(self.stand.channel, rpc, sent, actor.metadata)
        answer = GetMessageClass(METHODS[rpc].output_type).FromString(response) if rpc in METHODS else None
        self._write(actor, rpc, requests, (code, message, metadata, response), answer)
        return answer if code is grpc.StatusCode.OK else None

    def begin_beside(self, actor: Actor, rpc: str, **fields: Any) -> Callable[[], None]:
        """Begin a call that is not written down. What is returned waits for its end."""
        self._begin()
        request = GetMessageClass(METHODS[rpc].input_type)(**fields).SerializeToString()
        thread = threading.Thread(target=_called, args=(self.stand.channel, rpc, [request], actor.metadata))
        thread.start()
        return thread.join

    def _last_entry(self) -> str:
        """The last call, as it is written down."""
        begin = max(number for number, line in enumerate(self._lines) if line.startswith(ENTRY))
        return "\n".join(self._lines[begin:])

    def take(self, other: Stage) -> None:
        """Write down what was played on another stage."""
        self._lines += other._lines

    def _begin(self) -> None:
        self._played += 1
        self.time += _STEP
        self.stand.begin(f"{self.scene}/{self._played}", self.time)

    def _write(
        self, actor: Actor, rpc: str, requests: Sequence[Message | bytes], outcome: _Outcome, answer: Message | None
    ) -> None:
        code, message, metadata, response = outcome
        self._lines.append(f"{ENTRY}{rpc} | {actor}")
        for request in requests[:3]:
            self._lines += [f"> {line}" for line in _as_lines(request) or ["(empty)"]]
        if len(requests) > 3:
            self._lines.append(f"> ({len(requests)} messages in all)")
        output = [value for name, value in metadata if name == _STATUS]
        status = status_pb2.Status.FromString(output[0]) if output else None
        self._lines.append(" ".join(filter(None, (code.name, self._settle(status)))))
        if code is grpc.StatusCode.OK:
            self._lines.append(f"sha256 {digest(response)}")
            self._lines += [f"< {line}" for line in _as_lines(answer if answer is not None else response)]
        else:
            self._lines += lines_of_refusal(message, status)
        self._lines += [f"metadata {name}: {value!r}" for name, value in metadata if name != _STATUS]
        self._lines.append("")

    def _settle(self, status: status_pb2.Status | None) -> str:
        """The reason in a status. Its incident, which is random, becomes a number."""
        for packed in status.details if status else ():
            info = error_details_pb2.ErrorInfo()
            if packed.Unpack(info):
                if "incident" in info.metadata:
                    info.metadata["incident"] = self._numbered(info.metadata["incident"])
                    packed.Pack(info)
                return str(info.reason)
        return ""

    def _numbered(self, incident: str) -> str:
        assert re.fullmatch("[0-9a-f]{24}", incident)
        return self._incidents.setdefault(incident, f"incident {len(self._incidents) + 1}")


_Outcome = tuple[grpc.StatusCode, str, tuple[tuple[str, Any], ...], bytes]


def _called(channel: grpc.Channel, rpc: str, requests: Sequence[bytes], metadata: Any) -> _Outcome:
    stub: Any = channel.stream_unary(path_of(rpc)) if rpc in STREAMS else channel.unary_unary(path_of(rpc))
    try:
        response, call = stub.with_call(
            iter(requests) if rpc in STREAMS else requests[0], metadata=metadata, timeout=20.0
        )
    except grpc.RpcError as error:
        response, call = b"", error
    seen = (*(call.initial_metadata() or ()), *(call.trailing_metadata() or ()))
    return call.code(), call.details() or "", without_request_id(seen), response


def _as_lines(message: Message | bytes) -> list[str]:
    """A message, or what may be none, as lines."""
    if isinstance(message, Message):
        return [*lines_of(message)]
    return [f"the bytes {message[:40]!r}" + (f"… ({len(message)})" if len(message) > 40 else "")]
