"""The egress filter: the last guard, which can only fire if one below it is broken."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

import grpc
import pytest

from muniment.v1 import (
    classification_pb2,
    memory_pb2,
    memory_service_pb2,
    note_pb2,
    session_pb2,
    session_service_pb2,
)
from muniment_server.domain.budgets import BudgetEntry, Tier, Usage
from muniment_server.domain.classification import Classification, Integrity, Label
from muniment_server.domain.errors import BudgetExceeded, EgressViolation
from muniment_server.domain.ids import AgentNumber, HostKeyId, RandomIds, SessionId, TenantNumber
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.monitor import egress, policy
from muniment_server.monitor.call import Call
from muniment_server.monitor.interceptors import EgressFilter, MapErrors, StateIntegrity
from muniment_server.monitor.scopes import Scopes
from muniment_server.notes.wire import budget_exceeded_to_proto
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE, Database
from muniment_server.transport.incoming import in_its_turn
from muniment_server.transport.server import SERVICES
from tests.rpcs import RPCS
from tests.support.labels import untrusted
from tests.support.statuses import details_of

PUBLIC = classification_pb2.CLASSIFICATION_PUBLIC
CONFIDENTIAL = classification_pb2.CLASSIFICATION_CONFIDENTIAL
PAIRS = [(label, limit) for label in Label for limit in Label]
GET = policy.policies(SERVICES)["/muniment.v1.MemoryService/GetMemory"]
METHODS = [method for service in SERVICES for method in service.methods]


def memory(level):
    return memory_pb2.Memory(key="k", content="CANARY", classification=level)


LABELED = {method.output_type: RPCS[method.name].answer for method in METHODS if policy.names_label(method.output_type)}
"""The types of answers that have a label, with an answer of each."""


def answers(label):
    """Every answer that has a label, once with a part of *label* in each place that can have one.

    All other places are PUBLIC and TRUSTED. With each answer, that part: the level or the integrity.
    """
    for answer in LABELED.values():
        places = list(places_of(whole(answer)))
        for place in range(len(places)):
            relabeled, part = whole(answer), None
            for number, (message, field) in enumerate(places_of(relabeled)):
                has_level = policy.is_level(message.DESCRIPTOR.fields_by_name[field])
                if number == place:
                    part = label.level if has_level else label.integrity
                    setattr(message, field, part)
                else:
                    setattr(message, field, PUBLIC if has_level else Integrity.TRUSTED)
            yield relabeled, part


def whole(answer):
    """A copy of *answer* in which each part that can have a label is there, and each list has two."""
    copy = type(answer)()
    copy.CopyFrom(answer)
    for _ in places_of(copy, add=True):
        pass
    return copy


def places_of(message, *, add=False):
    """The labels in *message*: what has each, and the name of its field. *add* adds the parts that are missing."""
    for field in message.DESCRIPTOR.fields:
        part = getattr(message, field.name)
        if policy.is_level(field) or policy.is_integrity(field):
            yield message, field.name
        elif field.message_type is not None and policy.names_label(field.message_type):
            while add and field.is_repeated and len(part) < 2:
                part.add()
            if add and not field.is_repeated:
                part.SetInParent()
            for each in part if field.is_repeated else [part]:
                yield from places_of(each, add=add)


@pytest.mark.parametrize(("label", "limit"), PAIRS)
def test_an_answer_leaves_only_upward(label, limit):
    for answer, part in answers(label):
        bound = limit.level if isinstance(part, Classification) else limit.integrity
        assert egress.may_leave(answer, limit) is part.can_flow_to(bound), (type(answer), part)


@pytest.mark.parametrize("level", [0, 5, -1, 99])
def test_an_item_without_a_known_level_is_withheld_and_raises_an_alarm(level, caplog):
    call = _call(session(Label.RESTRICTED))

    with caplog.at_level(logging.CRITICAL), pytest.raises(EgressViolation):
        EgressFilter()(call, lambda _: memory_service_pb2.GetMemoryResponse(memory=memory(level)))

    assert [record.levelname for record in caplog.records] == ["CRITICAL"]


def test_a_level_that_is_absent_by_right_may_leave():
    """`revealed` is UNSPECIFIED when nothing is revealed."""
    assert egress.may_leave(memory_service_pb2.DeleteMemoryResponse(), Label.PUBLIC)


def test_an_empty_answer_must_be_labeled_too():
    assert not egress.may_leave(memory_service_pb2.ListMemoriesResponse(), Label.RESTRICTED)


@pytest.mark.parametrize("limit", list(Classification)[:3])
def test_what_is_above_a_session_is_withheld_and_raises_an_alarm(limit, caplog):
    call = _call(session(untrusted(limit)))
    too_high = memory_service_pb2.GetMemoryResponse(memory=memory(limit + 1))

    with caplog.at_level(logging.CRITICAL), pytest.raises(EgressViolation):
        EgressFilter()(call, lambda _: too_high)

    assert [record.levelname for record in caplog.records] == ["CRITICAL"]
    assert "CANARY" not in caplog.text


def test_what_is_untrusted_is_withheld_from_a_trusted_session():
    """Also if its level is lower, and if the answer does not say what it is."""
    call = _call(session(Label.RESTRICTED_TRUSTED))

    with pytest.raises(EgressViolation):
        EgressFilter()(call, lambda _: memory_service_pb2.GetMemoryResponse(memory=memory(PUBLIC)))


def test_the_answer_to_a_session_has_its_integrity_whatever_its_entries_have():
    """What a session is shown depends on all that it can see."""
    trusted = memory_pb2.Memory(classification=PUBLIC, integrity=classification_pb2.INTEGRITY_TRUSTED)

    for label in Label:
        answer: Any = StateIntegrity()(
            _call(session(label)), lambda _: memory_service_pb2.GetMemoryResponse(memory=trusted)
        )
        assert answer.integrity == label.integrity


def test_what_is_above_the_ceiling_of_a_host_is_withheld():
    call = _call(HostIdentity(TenantNumber(1), HostKeyId(UUID(int=1)), Classification.INTERNAL))
    too_high = session_service_pb2.GetSessionResponse(session=session_pb2.Session(taint=CONFIDENTIAL))

    with pytest.raises(EgressViolation):
        EgressFilter()(call, lambda _: too_high)


def test_every_answer_with_a_label_is_among_the_shapes():
    """Beside the label of the whole answer, that of each item, block, note, section, agent and session in it."""
    assert {type(answer).DESCRIPTOR for answer, _ in answers(Label.PUBLIC)} == {
        method.output_type for method in METHODS if policy.names_label(method.output_type)
    }
    assert len(list(answers(Label.PUBLIC))) > 120


def over_budget(label):
    """A refusal that quotes a note of *label*."""
    entry = BudgetEntry(note_id=str(UUID(int=7)), length_chars=9, preview="CANARY", own_level=True, label=label)
    error = BudgetExceeded(Usage(Tier.MEMORY, 9, 9), would_be_chars=10, entries=(entry,))
    error.detail = budget_exceeded_to_proto(error)
    return error


class Ended(Exception):
    """grpc ends a call that is aborted by an exception of its own."""


class Connection:
    """What the interceptors say to the caller."""

    def __init__(self):
        self.sent = None

    def abort_with_status(self, status):
        self.sent = status
        raise Ended


class Quoting:
    """A servicer whose refusals quote a note of a level, whoever asks."""

    def __init__(self, level):
        self._level = level

    def __call__(self, call):
        raise over_budget(self._level)


def sent_by(servicer, limit):
    """What a session at *limit* is sent by *servicer* behind the outermost and the innermost interceptor."""
    connection = Connection()
    call = _call(session(limit), connection)
    with pytest.raises(Ended):
        MapErrors()(call, lambda call: EgressFilter()(call, servicer))
    return connection.sent


@pytest.mark.parametrize(("label", "limit"), PAIRS)
def test_a_refusal_quotes_only_what_the_caller_may_read(label, limit, caplog):
    """Above it the refusal is held back whole, as INTERNAL, with an alarm and without the quotation."""
    with caplog.at_level(logging.INFO):
        sent = sent_by(Quoting(label), limit)

    may_be_read = label.can_flow_to(limit)
    expected = grpc.StatusCode.FAILED_PRECONDITION if may_be_read else grpc.StatusCode.INTERNAL
    alarms = [record for record in caplog.records if record.levelno == logging.CRITICAL]
    assert sent.code is expected
    assert ("CANARY" in str(sent.trailing_metadata)) is may_be_read
    assert bool(alarms) is not may_be_read
    assert "CANARY" not in caplog.text


@pytest.mark.parametrize("level", [0, 5, -1, 99])
def test_a_quotation_without_a_known_level_is_withheld(level):
    def quote(_):
        refusal = over_budget(Label.PUBLIC)
        refusal.detail.entries[0].classification = level
        raise refusal

    sent = sent_by(quote, Label.RESTRICTED)

    assert sent.code is grpc.StatusCode.INTERNAL
    assert "CANARY" not in str(sent.trailing_metadata)


def test_what_may_be_quoted_is_sent_whole():
    sent = details_of(over_budget(Label.PUBLIC))

    assert [entry.preview for entry in sent[note_pb2.BudgetExceeded].entries] == ["CANARY"]


def _call(principal, connection=None):
    database = Database(lambda _: "", pool_sizes=SINGLE)  # nothing is asked of it
    return Call(
        method=GET,
        grpc_context=connection,
        receive=bytes,
        in_turn=in_its_turn,
        token=None,
        deadline=Deadline(),
        scopes=Scopes(Databases.of_one(database), RandomIds(), audit_reads_from=Classification.CONFIDENTIAL),
        principal=principal,
    )


def session(taint):
    return SessionIdentity(TenantNumber(1), SessionId(UUID(int=1)), taint, AgentNumber(0), 1)
