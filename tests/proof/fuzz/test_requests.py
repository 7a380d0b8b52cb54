"""No request makes the server fail: whatever it holds, the answer is a status of the contract, in time.

50,000 of them: `make test ARGS="tests/proof/fuzz --messages 50000"`. See the README of this folder.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from random import Random

import grpc
import pytest

from muniment_server.domain.classification import Label
from muniment_server.memories.servicer import MemoryServicer
from tests.proof.fuzz.calling import FAULTS, PATHS, REFUSED, Callers, Request
from tests.proof.fuzz.generator import Known
from tests.proof.fuzz.shrinking import shrunk
from tests.proof.fuzz.wire import Payload
from tests.support.erasing import erase_all
from tests.support.invariants import broken_invariants
from tests.support.services import Service, serving

_PARTS = 4
"""The requests are sent in so many parts, each to a server of its own."""
_ERASE = "/muniment.v1.AgentService/EraseItems"
"""Sent last: the invariants do not know what was erased, though the audit still has it."""
_ROUND = 300
"""After so many calls there are new agents and sessions."""
_SELDOM = 3
"""How many methods may fail to succeed in one part: some need what chance seldom makes."""
_MANY = 10_000
"""With so many requests in a part, nearly every method has had sound ones."""
_AT_MOST = 5
"""So many faults are reported."""


class Fuzzing:
    """One part: sends requests and keeps what the answers were."""

    def __init__(self, service: Service, seed: str) -> None:
        self._callers = Callers(service, Known())
        self._seed = seed
        self.answers: Counter[tuple[str, grpc.StatusCode]] = Counter()
        self.faults: list[str] = []

    def run(self, count: int, paths: list[str]) -> None:
        """Send *count* requests, to each path in turn."""
        for number, path in zip(range(count), itertools.cycle(paths), strict=False):
            if number % _ROUND == _ROUND - 1:
                self._callers.renew()
            request = self._callers.request(path, Random(f"{self._seed} {number}"))
            code = self._callers.answer(request)
            self.answers[path, code] += 1
            if code in FAULTS and len(self.faults) < _AT_MOST:
                self.faults.append(f"seed {self._seed}, request {number}: {code.name}: {self._smallest(request, code)}")

    def _smallest(self, request: Request, code: grpc.StatusCode) -> Request:
        def smaller(payloads: Sequence[Payload]) -> Request:
            return Request(request.path, request.principal, request.metadata, payloads)

        return smaller(shrunk(request.payloads, lambda payloads: self._callers.answer(smaller(payloads)) is code))


def still_serves(service: Service) -> bool:
    """Whether sessions of each label can write and read."""
    for label in Label:
        session = service.session(label, agent_id="afterwards")
        session.save_memory(key=label.name, content="text")
        memory = session.get_memory(key=label.name).memory
        if (memory.classification, memory.integrity) != (label.level, label.integrity):
            return False
    return True


@pytest.mark.parametrize("part", range(_PARTS))
def test_no_request_makes_the_server_fail(service, messages, seed, part):
    fuzzing = Fuzzing(service, f"{seed}.{part}")
    count = messages // _PARTS
    fuzzing.run(count, sorted(set(PATHS) - {_ERASE}))
    assert broken_invariants(service.database) == []
    fuzzing.run(count // len(PATHS), [_ERASE])
    erase_all(service.database)

    assert fuzzing.faults == []
    assert still_serves(service)
    if count >= _MANY:
        succeeded = {path for path, code in fuzzing.answers if code is grpc.StatusCode.OK}
        assert not succeeded & REFUSED
        assert len(set(PATHS) - REFUSED - succeeded) <= _SELDOM


def test_a_fault_is_found_and_made_small(database, monkeypatch):
    """A server that fails at a NUL in a memory: what is reported is hardly more than that."""
    save = MemoryServicer.SaveMemory

    def failing(self, request, context):
        if "\0" in request.content:
            raise RuntimeError
        return save(self, request, context)

    monkeypatch.setattr(MemoryServicer, "SaveMemory", failing)
    with serving(database) as service:
        fuzzing = Fuzzing(service, "0")
        fuzzing.run(500, ["/muniment.v1.MemoryService/SaveMemory"])

    assert fuzzing.faults != []
    for fault in fuzzing.faults:
        smallest = bytes.fromhex(fault.rpartition("hex ")[2])
        assert "INTERNAL: /muniment.v1.MemoryService/SaveMemory as a session" in fault
        assert b"\x12\x01\0" in smallest
        assert len(smallest) < 12
