"""Callers that go on across faults, and remember what they were promised."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import grpc

from muniment.v1.agent_service_pb2 import CreateAgentRequest
from muniment.v1.agent_service_pb2_grpc import AgentServiceStub
from muniment.v1.memory_service_pb2 import SaveMemoryRequest
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment.v1.session_service_pb2 import OpenSessionRequest, RaiseTaintRequest
from muniment.v1.session_service_pb2_grpc import SessionServiceStub
from muniment_server.domain.classification import Classification

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
TYPED = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "CANCELLED"}
"""What a caller may be told while something is broken. CANCELLED is grpc's own word, for calls that a worker had not
picked up when it stopped.
"""
AGENT = "alice"
_LEVELS = (PUBLIC, PUBLIC, CONFIDENTIAL, CONFIDENTIAL)
_TIMEOUT = 2.0
_PACE = 0.003
"""Seconds between two saves of a writer, so that the ledger can be read through after each checkpoint."""
_OWN_KEYS = 5


class Save(NamedTuple):
    """One save that was sent."""

    level: Classification
    key: str
    content: str


class Writer:
    """One client thread with a session, on a connection of its own.

    By turns it saves a key that only it writes, and a key that others of its level write too. The first is sent again
    until it is acknowledged, which is safe: the same content over itself is no new version. The second is sent once.
    """

    def __init__(self, load: Load, number: int, level: Classification) -> None:
        self._load = load
        self._number = number
        self._level = level
        self._channel = channel_to(load.address)
        self._stub = MemoryServiceStub(self._channel)
        self._metadata = bearer(load.open_session(level)[1])
        self.acknowledged: list[Save] = []
        self.unknown: list[Save] = []
        self.codes: Counter[str] = Counter()
        self.surprises: list[str] = []
        """What the caller was told that it should not have been."""
        self.last_success_begun = 0.0
        """When the call began that was acknowledged last."""

    def run(self) -> None:
        """Save until the load is over, pausing when it pauses."""
        number = 0
        while self._load.goes_on():
            number += 1
            self._save(f"own {self._number} {number % _OWN_KEYS}", f"{self._number}.{number} own", again=True)
            self._save("shared", f"{self._number}.{number} shared", again=False)
            time.sleep(_PACE)
        self._channel.close()

    def _save(self, key: str, content: str, *, again: bool) -> None:
        save = Save(self._level, key, content)
        while not self._acknowledged(save):
            if not again or self._load.over:
                self.unknown.append(save)
                return
            time.sleep(_PACE)

    def _acknowledged(self, save: Save) -> bool:
        begun = time.monotonic()
        request = SaveMemoryRequest(key=save.key, content=save.content)
        try:
            self._stub.SaveMemory(request, metadata=self._metadata, timeout=_TIMEOUT)
        except grpc.RpcError as error:
            self.codes[error.code().name] += 1
            if error.code().name not in TYPED:
                self.surprises.append(f"{error.code().name}: {error.details()} after {time.monotonic() - begun:.3f} s")
            return False
        self.codes["OK"] += 1
        self.acknowledged.append(save)
        self.last_success_begun = begun
        return True


class Raiser:
    """A host that raises one conversation after the other, a level at a time."""

    def __init__(self, load: Load, conversations: int) -> None:
        self._load = load
        self.sessions = [load.open_session(PUBLIC, f"rising{i}")[0] for i in range(conversations)]
        self.acknowledged = dict.fromkeys(self.sessions, int(PUBLIC))
        self.attempted = dict(self.acknowledged)
        self.codes: Counter[str] = Counter()
        self.surprises: list[str] = []

    def run(self) -> None:
        """Raise until the load is over, or nothing is left to raise."""
        stub = SessionServiceStub(self._load.channel)
        for level in (INTERNAL, CONFIDENTIAL, RESTRICTED):
            for session_id in self.sessions:
                if not self._load.goes_on():
                    return
                self._raise(stub, session_id, level)
                time.sleep(0.1)

    def _raise(self, stub: SessionServiceStub, session_id: str, level: Classification) -> None:
        self.attempted[session_id] = int(level)
        request = RaiseTaintRequest(session_id=session_id, taint=int(level))  # type: ignore[arg-type]  # the same number
        try:
            stub.RaiseTaint(request, metadata=self._load.metadata, timeout=_TIMEOUT)
        except grpc.RpcError as error:
            self.codes[error.code().name] += 1
            if error.code().name not in TYPED:
                self.surprises.append(f"{error.code().name}: {error.details()}")
            return
        self.codes["OK"] += 1
        self.acknowledged[session_id] = int(level)


class Load:
    """Four writers and a raiser."""

    def __init__(self, address: str, host_key: str, *, conversations: int = 100) -> None:
        self.address = address
        self.channel = channel_to(address)
        self.metadata = bearer(host_key)
        self.over = False
        self._paused = False
        self._calling = 0
        """How many are not standing still."""
        self._change = threading.Condition()
        AgentServiceStub(self.channel).CreateAgent(CreateAgentRequest(agent_id=AGENT), metadata=self.metadata)
        self.writers = [Writer(self, number, level) for number, level in enumerate(_LEVELS)]
        self.raiser = Raiser(self, conversations)

    def open_session(self, level: Classification, conversation_id: str = "") -> tuple[str, str]:
        """A new session of the agent: its id and its token."""
        request = OpenSessionRequest(agent_id=AGENT, taint=int(level), conversation_id=conversation_id)  # type: ignore[arg-type]
        opened = SessionServiceStub(self.channel).OpenSession(request, metadata=self.metadata)
        return opened.session.session_id, opened.token

    @property
    def _callers(self) -> list[Writer | Raiser]:
        return [*self.writers, self.raiser]

    @property
    def acknowledged(self) -> list[Save]:
        """Every save that was acknowledged."""
        return [save for writer in self.writers for save in writer.acknowledged]

    @property
    def unknown(self) -> list[Save]:
        """Every save that was sent and not acknowledged."""
        return [save for writer in self.writers for save in writer.unknown]

    @property
    def codes(self) -> Counter[str]:
        """How often each status came."""
        return sum((caller.codes for caller in self._callers), Counter())

    @property
    def surprises(self) -> list[str]:
        """All that anybody was told that is not of the documented statuses of a fault."""
        return [surprise for caller in self._callers for surprise in caller.surprises]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Everybody calls, for as long as the block lasts."""
        threads = [threading.Thread(target=self._run, args=[caller]) for caller in self._callers]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.over = True
            with self._change:
                self._change.notify_all()
            for thread in threads:
                thread.join()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Everybody stands still, with no call under way."""
        with self._change:
            self._paused = True
            self._change.wait_for(lambda: self._calling == 0)
        yield
        with self._change:
            self._paused = False
            self._change.notify_all()

    def goes_on(self) -> bool:
        """Whether to go on calling. Waits while the load is paused."""
        with self._change:
            self._calling -= 1
            self._change.notify_all()
            self._change.wait_for(lambda: self.over or not self._paused)
            self._calling += 1
        return not self.over

    def _run(self, caller: Writer | Raiser) -> None:
        with self._change:
            self._calling += 1
        caller.run()
        with self._change:
            self._calling -= 1
            self._change.notify_all()

    def recovered_since(self, time: float) -> bool:
        """Whether every writer has had a call acknowledged that it began after *time*."""
        return all(writer.last_success_begun > time for writer in self.writers)


def channel_to(address: str) -> grpc.Channel:
    """A connection that is nobody else's, and is tried again soon when it breaks."""
    return grpc.insecure_channel(
        address,
        options=[
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.min_reconnect_backoff_ms", 2000),  # how long an attempt may take, too
            ("grpc.max_reconnect_backoff_ms", 200),
        ],
    )


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    """The metadata of a caller."""
    return (("authorization", f"Bearer {token}"),)
