"""Callers that go on across faults, and remember what they were promised."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import grpc

from muniment.v1.agent_service_pb2 import CreateAgentRequest
from muniment.v1.agent_service_pb2_grpc import AgentServiceStub
from muniment.v1.block_service_pb2 import AppendEdit, EditBlockRequest, UpdateBlockRequest
from muniment.v1.block_service_pb2_grpc import BlockServiceStub
from muniment.v1.memory_service_pb2 import SaveMemoryRequest
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment.v1.note_pb2 import Tier
from muniment.v1.note_service_pb2 import AddNoteRequest, DeleteNoteRequest
from muniment.v1.note_service_pb2_grpc import NoteServiceStub
from muniment.v1.passage_service_pb2 import ImportPassagesRequest, StorePassageRequest
from muniment.v1.passage_service_pb2_grpc import PassageServiceStub
from muniment.v1.session_service_pb2 import OpenSessionRequest, RaiseTaintRequest
from muniment.v1.session_service_pb2_grpc import SessionServiceStub
from muniment_server.domain.classification import Classification
from muniment_server.domain.items import ItemKind

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
TYPED = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "CANCELLED"}
"""The answers a caller may get while something is broken. CANCELLED is grpc's own word, for calls that a worker had not
picked up when it stopped.
"""
AGENT = "alice"
_LEVELS = (PUBLIC, PUBLIC, CONFIDENTIAL, CONFIDENTIAL)
_TIMEOUT = 2.0
_PACE = 0.003
"""Seconds between two saves of a writer, so that the ledger can be read through after each checkpoint."""
_OWN_KEYS = 5
_TIERS = {PUBLIC: Tier.TIER_MEMORY, CONFIDENTIAL: Tier.TIER_USER}
"""A tier for each level: the budget of one is not used up by the other."""
_NOTE = 300
"""Characters: seven fill the budget of PUBLIC."""
_LINES = 100
"""Appended to one block, about a quarter of them."""
_REFUSED = {"FAILED_PRECONDITION", "NOT_FOUND"}
"""The answers a writer may get while nothing is broken: the budget is full; the block or the note is not there."""


class Save(NamedTuple):
    """One thing that was sent to be kept: a version of a memory, a note or a block, or a passage."""

    level: Classification
    kind: ItemKind
    name: str
    content: str
    """Of an append to a block, the line."""


class Writer:
    """One client thread with a session, on a connection of its own.

    By turns it saves a key that only it writes, and a key that others of its level write too. The first is sent again
    until it is acknowledged, which is safe: the same content over itself is no new version. The second is sent once.
    Then it does the like with the other kinds: notes and passages with ids, again until acknowledged; a line at the
    end of a block, once.
    """

    def __init__(self, load: Load, number: int, level: Classification) -> None:
        self._load = load
        self._number = number
        self._level = level
        self._channel = channel_to(load.address)
        self._memories = MemoryServiceStub(self._channel)
        self._notes = NoteServiceStub(self._channel)
        self._blocks = BlockServiceStub(self._channel)
        self._passages = PassageServiceStub(self._channel)
        self._metadata = bearer(load.open_session(level)[1])
        self._noted: list[str] = []
        self._tier = _TIERS[level]
        self.acknowledged: list[Save] = []
        self.unknown: list[Save] = []
        self.deleted: list[str] = []
        """Notes that were acknowledged as deleted."""
        self.over_budget = 0
        self.codes: Counter[str] = Counter()
        self.surprises: list[str] = []
        """What the caller was answered that it should not have been."""
        self.last_success_begun = 0.0
        """When the call began that was acknowledged last."""

    def run(self) -> None:
        """Write until the load is over, pausing when it pauses."""
        number = 0
        acts = itertools.cycle([self._note, self._line, self._passage, self._import])
        while self._load.goes_on():
            number += 1
            self._memory(f"own {self._number} {number % _OWN_KEYS}", f"{self._number}.{number} own", again=True)
            self._memory("shared", f"{self._number}.{number} shared", again=False)
            next(acts)(number)
            time.sleep(_PACE)
        self._channel.close()

    def _memory(self, key: str, content: str, *, again: bool) -> None:
        request = SaveMemoryRequest(key=key, content=content)
        self._send([self._save(ItemKind.MEMORY, key, content)], self._memories.SaveMemory, request, again=again)

    def _note(self, number: int) -> None:
        """Add a note. When the budget is full, delete the oldest ones."""
        note_id, content = str(uuid.uuid4()), f"{self._number}.{number} ".ljust(_NOTE, "x")
        request = AddNoteRequest(note_id=note_id, content=content, tier=self._tier)
        answer = self._send([self._save(ItemKind.NOTE, note_id, content)], self._notes.AddNote, request, again=True)
        if answer == "OK":
            self._noted.append(note_id)
        elif answer == "FAILED_PRECONDITION":
            self.over_budget += 1
            for oldest in self._noted[:2]:
                self._forget(oldest)

    def _forget(self, note_id: str) -> None:
        """Delete a note. That it is not there says that it was deleted before, unheard."""
        request = DeleteNoteRequest(note_id=note_id, tier=self._tier)
        if self._send([], self._notes.DeleteNote, request, again=True) in ("OK", "NOT_FOUND"):
            self._noted.remove(note_id)
            self.deleted.append(note_id)

    def _line(self, number: int) -> None:
        """Append to a block of its own; to a new one when it is long."""
        label, content = f"log.{self._number}.{number // _LINES}", f"{self._number}.{number} line"
        request = EditBlockRequest(label=label, append=AppendEdit(content=content))
        save = self._save(ItemKind.BLOCK, label, content)
        if self._send([save], self._blocks.EditBlock, request, again=False) == "NOT_FOUND":
            first = UpdateBlockRequest(label=label, content=f"{self._number}.{number} first")
            self._send([self._save(ItemKind.BLOCK, label, first.content)], self._blocks.UpdateBlock, first, again=True)

    def _passage(self, number: int) -> None:
        request = self._new_passage(f"{self._number}.{number} passage")
        self._send([self._kept(request)], self._passages.StorePassage, request, again=True)

    def _import(self, number: int) -> None:
        """Two batches: an id that comes again begins another one."""
        passages = [self._new_passage(f"{self._number}.{number} import {i}") for i in range(4)]
        stream = [ImportPassagesRequest(passage=passage) for passage in (*passages[:3], passages[0], passages[3])]
        self._send(list(map(self._kept, passages)), self._passages.ImportPassages, stream, again=True)

    def _new_passage(self, content: str) -> StorePassageRequest:
        return StorePassageRequest(passage_id=str(uuid.uuid4()), content=content)

    def _kept(self, passage: StorePassageRequest) -> Save:
        return self._save(ItemKind.PASSAGE, passage.passage_id, passage.content)

    def _save(self, kind: ItemKind, name: str, content: str) -> Save:
        return Save(self._level, kind, name, content)

    def _send(self, saves: list[Save], call: Any, request: Any, *, again: bool) -> str:
        """The status of a call, of its last run if it is sent *again*; empty when nothing was ever heard of it."""
        while (answer := self._answer(call, request)) in TYPED:
            if not again or self._load.over:
                self.unknown += saves
                return ""
            time.sleep(_PACE)
        if answer == "OK":
            self.acknowledged += saves
        return answer

    def _answer(self, call: Any, request: Any) -> str:
        begun = time.monotonic()
        try:
            call(iter(request) if isinstance(request, list) else request, metadata=self._metadata, timeout=_TIMEOUT)
        except grpc.RpcError as error:
            answer = str(error.code().name)
            self.codes[answer] += 1
            if answer not in TYPED | _REFUSED:
                self.surprises.append(f"{answer}: {error.details()} after {time.monotonic() - begun:.3f} s")
            return answer
        self.codes["OK"] += 1
        self.last_success_begun = begun
        return "OK"


class Raiser:
    """A host that raises the conversations of a group in turn, a level at a time, and then those of another group."""

    def __init__(self, load: Load, conversations: int) -> None:
        self._load = load
        self._conversations = conversations
        self.acknowledged: dict[str, int] = {}
        self.attempted: dict[str, int] = {}
        self.codes: Counter[str] = Counter()
        self.surprises: list[str] = []
        self._rising = [self._open() for _ in range(conversations)]

    def run(self) -> None:
        """Raise until the load is over."""
        stub = SessionServiceStub(self._load.channel)
        while not self._load.over:  # its end may leave no group to raise
            for level in (INTERNAL, CONFIDENTIAL, RESTRICTED):
                for session_id in self._rising:
                    if not self._load.goes_on():
                        return
                    self._raise(stub, session_id, level)
                    time.sleep(0.1)
            self._rising = self._next_group()

    def _next_group(self) -> list[str]:
        """New conversations: those of as many calls as succeed."""
        opened = []
        for _ in range(self._conversations):
            if not self._load.goes_on():
                break
            try:
                opened.append(self._open())
            except grpc.RpcError as error:
                self._failed(error)
        return opened

    def _open(self) -> str:
        session_id, _ = self._load.open_session(PUBLIC, f"rising{uuid.uuid4()}")
        self.acknowledged[session_id] = self.attempted[session_id] = int(PUBLIC)
        return session_id

    def _raise(self, stub: SessionServiceStub, session_id: str, level: Classification) -> None:
        self.attempted[session_id] = int(level)
        request = RaiseTaintRequest(session_id=session_id, taint=int(level))  # type: ignore[arg-type]  # the same number
        try:
            stub.RaiseTaint(request, metadata=self._load.metadata, timeout=_TIMEOUT)
        except grpc.RpcError as error:
            self._failed(error)
            return
        self.codes["OK"] += 1
        self.acknowledged[session_id] = int(level)

    def _failed(self, error: grpc.RpcError) -> None:
        self.codes[error.code().name] += 1
        if error.code().name not in TYPED:
            self.surprises.append(f"{error.code().name}: {error.details()}")


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
        opened = SessionServiceStub(self.channel).OpenSession(request, metadata=self.metadata, timeout=_TIMEOUT)
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
    def deleted(self) -> list[str]:
        """Every note that was acknowledged as deleted."""
        return [note_id for writer in self.writers for note_id in writer.deleted]

    @property
    def codes(self) -> Counter[str]:
        """How often each status came."""
        return sum((caller.codes for caller in self._callers), Counter())

    @property
    def surprises(self) -> list[str]:
        """All that anyone was answered that is not of the documented statuses of a fault."""
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
    """A connection that is no one else's, and is tried again soon when it breaks."""
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
