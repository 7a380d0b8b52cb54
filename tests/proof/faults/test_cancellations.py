"""Calls that their callers cancel, at any moment: nothing acknowledged is lost, and a call again doubles nothing."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import grpc
import psycopg
import pytest

from muniment.v1.memory_service_pb2 import SaveMemoryRequest
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment.v1.passage_service_pb2 import StorePassageRequest
from muniment.v1.passage_service_pb2_grpc import PassageServiceStub
from muniment.v1.session_service_pb2 import RaiseTaintRequest
from muniment.v1.session_service_pb2_grpc import SessionServiceStub
from muniment_server.domain.classification import Classification
from muniment_server.domain.items import ItemKind
from tests.proof.faults import promises
from tests.proof.faults.load import bearer
from tests.proof.faults.processes import wait_until
from tests.proof.races import ledgers
from tests.support import invariants
from tests.support.services import Caller, Service

PUBLIC, INTERNAL, CONFIDENTIAL, _ = Classification
_CALLS = 1_000
_LATEST = 0.012
"""Seconds after which a call is canceled at the latest. Adjusted after each round, so that about half end by then."""
_ADJUSTED = 1.2
_AT_ONCE = 8
_OPEN = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'
"""


@pytest.mark.proof
def test_a_thousand_cancellations_lose_and_double_nothing(service: Service) -> None:
    dice = random.Random(13)
    sessions = [service.session(level) for level in (PUBLIC, CONFIDENTIAL)]
    raised = [service.session(PUBLIC, conversation_id=f"raised{number}") for number in range(_CALLS // 10)]
    outcomes = Counter[str]()
    acknowledged: list[int] = []
    latest = _LATEST
    for first in range(0, _CALLS, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, _CALLS))
        calls = [(number, _begin(service, number, sessions, raised)) for number in numbers]
        ends = {number: time.monotonic() + dice.uniform(0, latest) for number in numbers}
        for number, call in sorted(calls, key=lambda each: ends[each[0]]):
            time.sleep(max(0.0, ends[number] - time.monotonic()))
            call.cancel()
        before = len(acknowledged)
        for number, call in calls:
            code = _code(call)
            outcomes[code] += 1
            if code == "OK":
                acknowledged.append(number)
        latest *= _ADJUSTED if len(acknowledged) - before < len(calls) / 2 else 1 / _ADJUSTED
    saves = [number for number in range(_CALLS) if number % 10 < 9]
    saved, raises_done = (
        set(acknowledged) & set(saves),
        {raised[n // 10].session_id for n in acknowledged if n not in saves},
    )

    with service.database.as_owner() as owner:
        wait_until(lambda: _left_open(owner) == 0, "no connection is left in a transaction")
        kept, taints = _kept(owner), promises.taints(owner)
        canceled, done = len(saves) - len(saved), len(kept) - len(saved)
        print(f"{dict(outcomes)}; of {canceled} saves that were canceled, {done} were done")
        assert saved <= set(kept) <= set(saves)
        assert set(kept.values()) == {1}
        assert {taints[session_id] for session_id in raises_done} == {int(INTERNAL)}
        for number in saves:
            _begin(service, number, sessions, raised).result()
        assert _kept(owner) == Counter(saves)
        assert list(invariants.broken(owner)) == []
    assert min(outcomes["OK"], outcomes["CANCELLED"]) > _CALLS / 20


def _begin(service: Service, number: int, sessions: Sequence[Caller], raised: Sequence[Caller]) -> Any:
    """One call: a memory or a passage, by turns, at two levels; or one raise in ten. Its number is its content."""
    session = sessions[number // 10 % 2]
    if number % 10 == 9:
        request = RaiseTaintRequest(session_id=raised[number // 10].session_id, taint=int(INTERNAL))  # type: ignore[arg-type]
        stub: Any = SessionServiceStub(service.channel).RaiseTaint
        return stub.future(request, metadata=bearer(service.host().token), timeout=20)
    if number % 2:
        stub = PassageServiceStub(service.channel).StorePassage
        store = StorePassageRequest(passage_id=f"00000000-0000-4000-8000-{number:012d}", content=str(number))
        return stub.future(store, metadata=bearer(session.token), timeout=20)
    stub = MemoryServiceStub(service.channel).SaveMemory
    return stub.future(
        SaveMemoryRequest(key=f"k{number}", content=str(number)), metadata=bearer(session.token), timeout=20
    )


def _code(call: Any) -> str:
    """The status of a call that has ended, or was canceled."""
    try:
        call.result()
    except grpc.FutureCancelledError:
        return "CANCELLED"
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


def _kept(owner: psycopg.Connection[Any]) -> Counter[int]:
    """How many versions each number has."""
    return Counter(
        int(version.content)
        for kind in (ItemKind.MEMORY, ItemKind.PASSAGE)
        for version in ledgers.versions(owner, kind=kind)
    )


def _left_open(owner: psycopg.Connection[Any]) -> int:
    row: Any = owner.execute(_OPEN).fetchone()
    return int(row[0])
