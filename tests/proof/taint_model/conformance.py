"""Compares the real server with the machine, which must allow the answer of each call, and those of calls made at once.

Calls made at once may take their steps in any order. So what is known of the server's state is a set of states: all
those that some order leads to, of those with the observed answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import grpc

from muniment.v1 import memory_service_pb2, session_service_pb2
from muniment_server.domain.classification import Classification
from tests.proof.taint_model.guards import Guards
from tests.proof.taint_model.machine import WRITES, steps
from tests.proof.taint_model.state import (
    UNKNOWN,
    Agent,
    State,
    Step,
    beginning,
    is_trusted,
    label_of,
    level_of,
)
from tests.support.services import Caller, Service, failure, reason_of

PLACES = 6
CONVERSATIONS = 2
LABELS = (1, 2, 3, 4, 5, 6)
_GUARDS = Guards()
_KEY = "the one name"
_OF_SESSIONS = ("GetMemory", *WRITES)


@dataclass(frozen=True, slots=True)
class Act:
    """One call."""

    rpc: str
    session: int | None = None
    """Which of the sessions opened so far."""
    conversation: int | None = None
    label: int = UNKNOWN


class Answered(NamedTuple):
    """A call, its answer as the machine writes it, and the number of the session that it opened."""

    act: Act
    answer: str
    opened: int | None


class Hypothesis(NamedTuple):
    """A state that the server may be in, and which session is at each of its places."""

    state: State
    sessions: tuple[int | None, ...]


class _Node(NamedTuple):
    """Calls made at once, on the way: how far each is: 0, begun, ended."""

    hypothesis: Hypothesis
    progress: tuple[int, ...]


class Subject:
    """An agent of a real server."""

    def __init__(self, service: Service, agent_id: str, ceiling: Classification) -> None:
        self._service = service
        self._host = service.host()
        self._agent_id = agent_id
        self._host.create_agent(agent_id=agent_id, ceiling=int(ceiling))
        self._sessions: list[Caller] = []

    def do(self, act: Act) -> Answered:
        """Make one call."""
        try:
            answer, token = self._call(act)
        except grpc.RpcError as error:
            return Answered(act, reason_of(failure(error)), None)
        if token is None:
            return Answered(act, answer, None)
        self._sessions.append(Caller(self._service.channel, token.token, token.session.session_id))
        return Answered(act, answer, len(self._sessions) - 1)

    def _call(self, act: Act) -> tuple[str, Any]:
        if act.rpc == "OpenSession":
            opened = self._host.open_session(
                agent_id=self._agent_id, conversation_id=f"conversation{act.conversation}", **_asking(act.label)
            )
            return _tainted(opened), opened
        if act.rpc == "DeleteAgent":
            self._host.delete_agent(agent_id=self._agent_id)
            return "OK", None
        assert act.session is not None
        session = self._sessions[act.session]
        if act.rpc in _OF_SESSIONS:
            return _written(_memory_call(session, act.rpc)), None
        return self._control(session.session_id, act)

    def _control(self, session_id: str, act: Act) -> tuple[str, Any]:
        if act.rpc == "RaiseTaint":
            return _tainted(self._host.raise_taint(session_id=session_id, **_asking(act.label))), None
        if act.rpc == "ResetSession":
            opened: session_service_pb2.ResetSessionResponse = self._host.reset_session(
                session_id=session_id, integrity=int(is_trusted(act.label))
            )
            return _tainted(opened), opened
        self._host.close_session(session_id=session_id)
        return "OK", None


def _memory_call(session: Caller, rpc: str) -> Any:
    return session.save_memory(key=_KEY, content="a text") if rpc == "SaveMemory" else session.call(rpc, key=_KEY)


def _written(response: Any) -> str:
    if isinstance(response, memory_service_pb2.DeleteMemoryResponse):
        return f"OK reveals {label_of(response.revealed, trusted=bool(response.revealed_integrity))}"
    return f"OK {label_of(response.memory.classification, trusted=bool(response.memory.integrity))}"


def _asking(label: int) -> dict[str, int]:
    """The fields of a host's request that name a label."""
    return {"taint": level_of(label), "integrity": int(is_trusted(label))}


def _tainted(response: Any) -> str:
    return f"OK {label_of(response.session.taint, trusted=bool(response.session.integrity))}"


def at_first(ceiling: Classification) -> set[Hypothesis]:
    """What is known of an agent that was just created."""
    state = beginning(ceiling=int(ceiling), conversations=CONVERSATIONS, sessions=PLACES, labels=LABELS)
    return {Hypothesis(state, (None,) * PLACES)}


def after(known: Iterable[Hypothesis], calls: Sequence[Answered]) -> set[Hypothesis]:
    """What is known after *calls* were made at once. Empty if the machine does not allow the answers."""
    waiting = [_Node(hypothesis, (0,) * len(calls)) for hypothesis in known]
    visited = set(waiting)
    found: set[Hypothesis] = set()
    while waiting:
        node = waiting.pop()
        if all(progress == 2 for progress in node.progress):
            found.add(node.hypothesis)
        for number, call in enumerate(calls):
            for following in _steps_of(node, number, call):
                if following not in visited:
                    visited.add(following)
                    waiting.append(following)
    return found


def _steps_of(node: _Node, number: int, call: Answered) -> Iterator[_Node]:
    """The next steps of one of the calls that fit its answer."""
    progress = node.progress[number]
    if progress == 2:
        return
    if progress == 0 and _has_ended(node.hypothesis, call.act):
        if call.answer == _refusal_of_ended(call.act):
            yield _moved(node, number, 2, node.hypothesis)
        return
    for step, state in steps(node.hypothesis.state, _GUARDS):
        if not _is_of(step, call.act, node.hypothesis, progress):
            continue
        if not step.answer:
            yield _moved(node, number, 1, _at(state, node.hypothesis.sessions))
        elif step.answer == call.answer:
            yield _moved(node, number, 2, _at(state, node.hypothesis.sessions, step.opened, call.opened))


def _has_ended(hypothesis: Hypothesis, act: Act) -> bool:
    if act.session is None:
        return False
    if act.session not in hypothesis.sessions:
        return True
    session = hypothesis.state.sessions[hypothesis.sessions.index(act.session)]
    return session is None or not session.is_open


def _refusal_of_ended(act: Act) -> str:
    if act.rpc in _OF_SESSIONS:
        return "CREDENTIAL_INVALID"
    return "FIELD_INVALID" if act.rpc == "RaiseTaint" and not level_of(act.label) else "SESSION_NOT_FOUND"


def _is_of(step: Step, act: Act, hypothesis: Hypothesis, progress: int) -> bool:
    if step.rpc != act.rpc or (step.part == "ends") != (progress == 1):
        return False
    if act.session is not None:
        session = None if step.session is None else hypothesis.sessions[step.session]
        return session == act.session and (act.rpc not in ("RaiseTaint", "ResetSession") or step.label == act.label)
    return (step.conversation, step.label) == (act.conversation, act.label)


def _at(
    state: State, sessions: tuple[int | None, ...], place: int | None = None, opened: int | None = None
) -> Hypothesis:
    there = tuple(opened if number == place else session for number, session in enumerate(sessions))
    kept = zip(there, state.sessions, strict=True)
    return Hypothesis(state, tuple(session if held else None for session, held in kept))


def _moved(node: _Node, number: int, progress: int, hypothesis: Hypothesis) -> _Node:
    return _Node(hypothesis, (*node.progress[:number], progress, *node.progress[number + 1 :]))


def open_sessions(known: Iterable[Hypothesis]) -> int:
    """At most how many sessions are open."""
    return max(sum(1 for session in hypothesis.state.sessions if session) for hypothesis in known)


def conversations(known: Iterable[Hypothesis]) -> int:
    """At least how many conversations there are."""
    return min(sum(map(bool, hypothesis.state.taints)) for hypothesis in known)


def is_live(known: Iterable[Hypothesis]) -> bool:
    """Whether the agent may be there."""
    return any(hypothesis.state.agent is Agent.LIVE for hypothesis in known)
