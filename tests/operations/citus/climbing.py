"""The callers of tests/proof/faults, and one that saves in conversations while it raises them: for failing nodes."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from typing import Any

import grpc
import psycopg

from muniment.v1.memory_service_pb2 import SaveMemoryRequest
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment.v1.session_service_pb2 import GetSessionRequest, RaiseTaintRequest
from muniment.v1.session_service_pb2_grpc import SessionServiceStub
from muniment_server.domain.classification import Classification
from muniment_server.domain.items import ItemKind
from tests.operations.citus.served import ServedCluster
from tests.proof.faults import promises
from tests.proof.faults.load import TYPED, Load, Raiser, Save, Writer, bearer

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_CONVERSATIONS = 10
_AT_ONCE = 3
_TIMEOUT = 4.0
_OLD_ROWS = "SELECT count(*) FROM muniment_public.item WHERE kind = 1 AND starts_with(name, %s)"


class Climber:
    """Saves in a new conversation while it is raised, time after time. Afterwards nothing more may come at PUBLIC."""

    def __init__(self, load: ClimbingLoad) -> None:
        self._load = load
        self._memories = MemoryServiceStub(load.channel)
        self._sessions = SessionServiceStub(load.channel)
        self.acknowledged: list[str] = []
        """The keys of the saves that were acknowledged."""
        self.unknown: list[Save] = []
        """Every save, at each level at which it may have arrived."""
        self.at_public: dict[str, int] = {}
        """By conversation, how many rows there were at PUBLIC after its raise was acknowledged."""
        self.codes: Counter[str] = Counter()
        self.surprises: list[str] = []

    def run(self) -> None:
        """Climb until the load is over."""
        while self._load.goes_on():
            name = f"climbing{uuid.uuid4()}"
            try:
                session_id, token = self._load.open_session(PUBLIC, name)
            except grpc.RpcError as error:
                self._note(error)
                continue
            before = self._begin_saves(name, 0, token)
            if self._raise(session_id):
                self._look(session_id)
                self.at_public[name] = self._rows(name)
                self._end_saves(self._begin_saves(name, _AT_ONCE, token))
            self._end_saves(before)

    def broken(self, owner: psycopg.Connection[Any]) -> list[str]:
        """What was acknowledged and is lost, and what came at PUBLIC after an acknowledged raise."""
        keys = {
            key
            for (key,) in owner.execute(
                "SELECT name FROM muniment_public.item UNION ALL SELECT name FROM muniment_confidential.item"
            ).fetchall()
        }
        late = {name: (seen, _count(owner, name)) for name, seen in self.at_public.items()}
        return [
            *(f"acknowledged and lost: {key}" for key in self.acknowledged if key not in keys),
            *(
                f"{found} rows at PUBLIC, {seen} after the raise: {name}"
                for name, (seen, found) in late.items()
                if found != seen
            ),
        ]

    def _begin_saves(self, name: str, first: int, token: str) -> dict[str, Any]:
        calls = {}
        for number in range(first, first + _AT_ONCE):
            key = f"{name} {number}"
            self.unknown += [Save(level, ItemKind.MEMORY, key, key) for level in (PUBLIC, CONFIDENTIAL)]
            request = SaveMemoryRequest(key=key, content=key)
            calls[key] = self._memories.SaveMemory.future(request, metadata=bearer(token), timeout=_TIMEOUT)
        return calls

    def _end_saves(self, calls: dict[str, Any]) -> None:
        for key, call in calls.items():
            try:
                call.result()
            except grpc.RpcError as error:
                self._note(error)
            else:
                self.codes["OK"] += 1
                self.acknowledged.append(key)

    def _raise(self, session_id: str) -> bool:
        """Raise until it is acknowledged; False if the load is over before."""
        request = RaiseTaintRequest(session_id=session_id, taint=int(CONFIDENTIAL))  # type: ignore[arg-type]
        while not self._load.over:
            try:
                self._sessions.RaiseTaint(request, metadata=self._load.metadata, timeout=_TIMEOUT)
            except grpc.RpcError as error:
                self._note(error)
            else:
                self.codes["OK"] += 1
                return True
        return False

    def _look(self, session_id: str) -> None:
        """What a host sees right after the raise was acknowledged."""
        request = GetSessionRequest(session_id=session_id)
        try:
            answer = self._sessions.GetSession(request, metadata=self._load.metadata, timeout=_TIMEOUT)
        except grpc.RpcError as error:
            self._note(error)
        else:
            if int(answer.session.taint) != CONFIDENTIAL:
                self.surprises.append(f"a taint of {answer.session.taint} after its raise: {session_id}")

    def _rows(self, name: str) -> int:
        """How many rows of a conversation there are at PUBLIC now, or when the nodes answer again."""
        while True:
            try:
                with self._load.served.as_owner() as owner:
                    return _count(owner, name)
            except psycopg.Error:  # some lost nodes are reported as a bug
                time.sleep(0.1)

    def _note(self, error: grpc.RpcError) -> None:
        code = error.code().name
        self.codes[code] += 1
        if code not in TYPED:
            self.surprises.append(f"{code}: {error.details()}")


def _count(owner: psycopg.Connection[Any], name: str) -> int:
    row: Any = owner.execute(_OLD_ROWS, [name]).fetchone()
    return int(row[0])


class ClimbingLoad(Load):
    """The callers of tests/proof/faults, and a climber."""

    def __init__(self, served: ServedCluster) -> None:
        super().__init__(served.address, served.host_key, conversations=_CONVERSATIONS)
        self.served = served
        self.climber = Climber(self)

    @property
    def _callers(self) -> list[Writer | Raiser]:
        climber: Any = self.climber
        return [*super()._callers, climber]

    @property
    def unknown(self) -> list[Save]:
        return [*super().unknown, *self.climber.unknown]


def broken(owner: psycopg.Connection[Any], load: ClimbingLoad) -> list[str]:
    """What was promised to the callers and does not hold."""
    return [*promises.broken(owner, load), *load.climber.broken(owner)]


def summary(load: ClimbingLoad) -> str:
    """What was acknowledged."""
    each = dict(Counter(save.kind.name.lower() for save in load.acknowledged))
    return (
        f"{each} acknowledged, {len(load.deleted)} notes deleted, {load.raiser.codes['OK']} raises, "
        f"{len(load.climber.at_public)} climbs with {len(load.climber.acknowledged)} saves"
    )
