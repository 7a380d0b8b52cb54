"""The egress guard: the last wall, which can only fire when another is broken."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest

from muniment.v1 import classification_pb2, memory_pb2, memory_service_pb2, session_pb2, session_service_pb2
from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import EgressViolation
from muniment_server.domain.records import HostIdentity, SessionIdentity
from muniment_server.rpc import labels, policy
from muniment_server.rpc.context import CallContext
from muniment_server.rpc.server import SERVICES
from muniment_server.rpc.walls import GuardEgress

PUBLIC = classification_pb2.CLASSIFICATION_PUBLIC
CONFIDENTIAL = classification_pb2.CLASSIFICATION_CONFIDENTIAL
PAIRS = [(label, limit) for label in Classification for limit in Classification]
GET = policy.policies(SERVICES)["/muniment.v1.MemoryService/GetMemory"]


def memory(level):
    return memory_pb2.Memory(key="k", content="CANARY", classification=level)


def answers(level):
    """Answers of every shape that hold one memory of *level*."""
    yield memory_service_pb2.GetMemoryResponse(memory=memory(level))
    yield memory_service_pb2.ListMemoriesResponse(memories=[memory(1), memory(level)], classification=PUBLIC)
    yield memory_service_pb2.SearchMemoriesResponse(
        results=[memory_service_pb2.MemoryResult(memory=memory(level))], classification=PUBLIC
    )
    yield memory_service_pb2.ListMemoriesResponse(classification=level)
    yield memory_service_pb2.DeleteMemoryResponse(revealed=level)
    yield session_service_pb2.GetSessionResponse(session=session_pb2.Session(taint=level))


@pytest.mark.parametrize(("label", "limit"), PAIRS)
def test_an_answer_leaves_only_upward(label, limit):
    verdicts = {labels.may_leave(answer, limit) for answer in answers(label)}

    assert verdicts == {label <= limit}


@pytest.mark.parametrize("label", [0, 5, -1, 99])
def test_an_item_without_a_known_label_is_held_back_and_raises_an_alarm(label, caplog):
    call = _call(SessionIdentity(1, UUID(int=1), Classification.RESTRICTED))

    with caplog.at_level(logging.CRITICAL), pytest.raises(EgressViolation):
        GuardEgress()(call, lambda _: memory_service_pb2.GetMemoryResponse(memory=memory(label)))

    assert [record.levelname for record in caplog.records] == ["CRITICAL"]


def test_a_level_that_is_absent_by_right_may_leave():
    """`revealed` is UNSPECIFIED when nothing is revealed."""
    assert labels.may_leave(memory_service_pb2.DeleteMemoryResponse(), Classification.PUBLIC)


def test_an_empty_answer_must_be_labelled_too():
    assert not labels.may_leave(memory_service_pb2.ListMemoriesResponse(), Classification.RESTRICTED)


@pytest.mark.parametrize("limit", list(Classification)[:3])
def test_what_is_above_a_session_is_held_back_and_raises_an_alarm(limit, caplog):
    call = _call(SessionIdentity(1, UUID(int=1), limit))
    too_high = memory_service_pb2.GetMemoryResponse(memory=memory(limit + 1))

    with caplog.at_level(logging.CRITICAL), pytest.raises(EgressViolation):
        GuardEgress()(call, lambda _: too_high)

    assert [record.levelname for record in caplog.records] == ["CRITICAL"]
    assert "CANARY" not in caplog.text


def test_what_is_above_the_ceiling_of_a_host_is_held_back():
    call = _call(HostIdentity(1, UUID(int=1), Classification.INTERNAL))
    too_high = session_service_pb2.GetSessionResponse(session=session_pb2.Session(taint=CONFIDENTIAL))

    with pytest.raises(EgressViolation):
        GuardEgress()(call, lambda _: too_high)


def _call(principal):
    return CallContext(method=GET, grpc_context=None, receive=bytes, principal=principal)  # type: ignore[arg-type]  # never asked
