"""Random walks through the real server, call by call and with two calls at once: the machine allows each answer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from muniment_server.domain.classification import Classification
from muniment_server.monitor.queries import HOST_QUERIES, SESSION_QUERIES
from tests.proof.races.mutants import spoiled
from tests.proof.taint_model.conformance import (
    CONVERSATIONS,
    LABELS,
    PLACES,
    Act,
    Answered,
    Hypothesis,
    Subject,
    after,
    at_first,
    conversations,
    is_live,
    open_sessions,
)
from tests.proof.taint_model.machine import WRITES
from tests.proof.taint_model.state import PUBLIC, PUBLIC_TRUSTED, UNKNOWN, UNKNOWN_TRUSTED
from tests.support.services import Service

_LENGTH = 40
_OF_SESSIONS = ("GetMemory", "CloseSession", "ResetSession", *WRITES * 3, *["RaiseTaint"] * 2)
_EXPECTED = {
    "OpenSession OK", "OpenSession CONVERSATION_TAINTED",
    "OpenSession AGENT_CEILING_EXCEEDED", "OpenSession AGENT_NOT_FOUND",
    "RaiseTaint OK", "RaiseTaint FIELD_INVALID", "RaiseTaint AGENT_CEILING_EXCEEDED", "RaiseTaint SESSION_NOT_FOUND",
    "ResetSession OK", "ResetSession SESSION_NOT_FOUND", "CloseSession OK", "CloseSession SESSION_NOT_FOUND",
    "DeleteAgent OK", "DeleteAgent AGENT_NOT_FOUND",
    "SaveMemory OK", "SaveMemory CREDENTIAL_INVALID", "GetMemory OK", "GetMemory MEMORY_NOT_FOUND",
    "GetMemory CREDENTIAL_INVALID", "DeleteMemory OK", "DeleteMemory WRITE_LEVEL_MISMATCH",
    "DeleteMemory MEMORY_NOT_FOUND", "DeleteMemory CREDENTIAL_INVALID",
}  # fmt: skip
"""All that the machine answers, except that an audit row could not be written."""


class Disagreement(AssertionError):
    """The server has answered what the machine does not allow."""


class Walk:
    """One agent, and what is known of it."""

    def __init__(self, service: Service, threads: ThreadPoolExecutor, number: int) -> None:
        self._dice = random.Random(number)
        ceiling = Classification(self._dice.choice((2, 3)))
        self._subject = Subject(service, f"walker{number}", ceiling)
        self._threads = threads
        self._known: set[Hypothesis] = at_first(ceiling)
        self._opened = 0
        self.calls: list[Answered] = []

    def go(self) -> None:
        """Walk, and end with DeleteAgent beside one more call, and calls after it."""
        for _ in range(_LENGTH):
            self._make(*(self._act() for _ in range(self._dice.choice((1, 1, 2)))))
        self._make(Act("DeleteAgent"), self._act())
        self._make(self._act())
        self._make(Act("OpenSession", None, 0, PUBLIC))
        self._make(Act("DeleteAgent"))

    def _make(self, *acts: Act) -> None:
        answered = list(self._threads.map(self._subject.do, acts))
        self._known = after(self._known, answered)
        self._opened += sum(call.opened is not None for call in answered)
        self.calls += answered
        if not self._known:
            raise Disagreement("\n".join(map(str, self.calls[-12:])))

    def _act(self) -> Act:
        """A call at random. Two calls made at once may each open a session, and there is a place for both."""
        places_left = is_live(self._known) and open_sessions(self._known) <= PLACES - 3
        if not self._opened or (places_left and self._dice.random() < 0.2):
            conversation = self._dice.randrange(min(conversations(self._known) + 1, CONVERSATIONS))
            return Act("OpenSession", None, conversation, self._label())
        rpc = self._dice.choice(_OF_SESSIONS)
        if rpc == "ResetSession" and not places_left:
            rpc = "CloseSession"
        session = max(0, self._opened - 1 - int(self._dice.expovariate(0.7)))
        label = {
            "RaiseTaint": self._label(),
            "ResetSession": self._dice.choice((PUBLIC_TRUSTED, PUBLIC)),
        }.get(rpc, UNKNOWN)
        return Act(rpc, session, None, label)

    def _label(self) -> int:
        """What a host asks for, seldom without a level."""
        return self._dice.choice((UNKNOWN_TRUSTED, UNKNOWN, *LABELS))


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as two:
        yield two


def _walk(walks: int, service: Service, threads: ThreadPoolExecutor) -> Counter[str]:
    """How often there was each answer. Raises Disagreement."""
    answers: Counter[str] = Counter()
    for number in range(walks):
        walk = Walk(service, threads, number)
        walk.go()
        answers.update(f"{call.act.rpc} {call.answer.split()[0]}" for call in walk.calls)
    return answers


def test_the_machine_allows_every_answer_of_the_server(
    runs: int, service: Service, threads: ThreadPoolExecutor
) -> None:
    answers = _walk(runs, service, threads)

    assert set(answers) == _EXPECTED
    print(f"{runs} walks, {answers.total()} calls: {dict(sorted(answers.items()))}")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        ("open_session", "greatest(marked.taint, excluded.taint)", "excluded.taint"),
        ("open_session", "WHERE wanted.ceiling >= wanted.taint", ""),
        ("raise_taint", "AND (found.taint < %(taint)s OR found.trusted AND NOT %(trusted)s)", "AND FALSE"),
        ("raise_taint", "AND found.ceiling >= %(taint)s", ""),
        ("raise_taint", "found.trusted AND %(trusted)s", "found.trusted"),
        ("reset_session", "SET taint = 1", "SET taint = lowered.taint"),
        ("save_item", "JOIN expiry ON NOT expiry.past", "JOIN expiry ON FALSE"),
    ],
)
def test_a_server_without_a_guard_disagrees(
    query: str, right: str, wrong: str, service: Service, threads: ThreadPoolExecutor
) -> None:
    queries = HOST_QUERIES if query in HOST_QUERIES else SESSION_QUERIES
    with spoiled(queries, query, right, wrong), pytest.raises(Disagreement):
        _walk(20, service, threads)
