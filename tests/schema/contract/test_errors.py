"""Errors: each has a status, every reason of the contract is used, and nothing else is ever sent."""

from __future__ import annotations

import ast
import inspect
import uuid

import grpc
import pytest
from google.rpc import code_pb2, error_details_pb2, status_pb2

from muniment.v1 import classification_pb2, error_pb2, note_pb2, passage_pb2
from muniment_server.domain import errors
from muniment_server.domain.budgets import BudgetEntry, Tier, Usage
from muniment_server.domain.classification import Label
from muniment_server.monitor import status
from muniment_server.notes.wire import budget_exceeded_to_proto
from muniment_server.passages.repository import ImportProgress
from muniment_server.passages.wire import progress_to_proto
from tests.support.each import for_each
from tests.support.statuses import CODES, details_of

REASONS = {
    name.removeprefix("ERROR_REASON_")
    for name, number in error_pb2.ErrorReason.items()
    if number  # UNSPECIFIED is never sent
} - {"PROMPT_TOO_LARGE"}  # no longer sent
OURS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.MunimentError)]
ABSTRACT = {errors.MunimentError, errors.Refusal}
NEVER_LEAVES = {errors.StaleSession}
"""Becomes a new run of the call, or another error."""


def example(kind):
    """An error of this kind."""
    if kind is errors.BudgetExceeded:
        return over_budget("text", entries=1)
    if kind is errors.ConversationTainted:
        return kind(Label.RESTRICTED)
    return kind()


def over_budget(preview, *, entries):
    """A refusal whose entries all have this preview."""
    error = errors.BudgetExceeded(
        Usage(Tier.USER, 1_000_000, 1_000_000),
        would_be_chars=7_000_000,
        entries=(
            BudgetEntry(
                note_id=str(uuid.UUID(int=2**128 - 1)),
                length_chars=65_536,
                preview=preview,
                own_level=True,
                label=Label.RESTRICTED,
            ),
        )
        * entries,
    )
    error.detail = budget_exceeded_to_proto(error)
    return error


def _is_refusal(kind):
    return issubclass(kind, (errors.Refusal, errors.Unavailable)) and kind not in ABSTRACT


@for_each("kind", [kind for kind in OURS if kind not in ABSTRACT])
def test_every_error_has_a_code_and_a_reason_of_the_contract(kind):
    code, reason = status.code_of(example(kind))

    assert reason in REASONS
    assert code is not grpc.StatusCode.UNKNOWN


@for_each("kind", [*filter(_is_refusal, OURS)])
def test_no_refusal_looks_like_a_fault_of_the_server(kind):
    assert status.code_of(example(kind))[0] is not grpc.StatusCode.INTERNAL


def test_every_reason_of_the_contract_is_sent():
    sent = {kind.status.reason for kind in OURS}

    assert sorted(REASONS - sent) == [], "give an error of domain/errors.py this reason"
    assert sent <= REASONS


def test_the_code_of_each_reason_is_that_of_its_example():
    """The comment of each reason begins its example with the code."""
    sent = {kind.status.reason: kind.status.code for kind in OURS}

    assert sent == CODES, "domain/errors.py and the examples in error.proto differ"


@for_each("kind", [kind for kind in OURS if kind not in ABSTRACT])
def test_the_arguments_of_an_error_are_never_sent(kind):
    """Fields of an error are sent, such as the previews of BudgetExceeded; its words, or a text of its own, never."""
    error = example(kind)
    error.args = ("CANARY key 'plan'",)
    error.status = errors.Status("INTERNAL", "CANARY", "CANARY key 'plan'")

    assert "CANARY" not in str(status.status_of(error))


@pytest.mark.parametrize("error", [ValueError("CANARY"), KeyError("CANARY"), AssertionError(), SystemError("CANARY")])
def test_c50_an_unforeseen_error_is_internal_with_a_fixed_text(error):
    sent = status.status_of(error, incident="a1b2")

    assert sent.code is grpc.StatusCode.INTERNAL
    assert sent.details == "internal error: the server's log describes it under the request id"
    assert details_of(error, incident="a1b2") == {
        error_details_pb2.ErrorInfo: error_details_pb2.ErrorInfo(
            reason="INTERNAL", domain="muniment.v1", metadata={"incident": "a1b2"}
        )
    }


def test_error_info_names_reason_and_domain():
    assert details_of(errors.MemoryNotFound()) == {
        error_details_pb2.ErrorInfo: error_details_pb2.ErrorInfo(reason="MEMORY_NOT_FOUND", domain="muniment.v1")
    }


def test_the_packed_status_says_the_same_as_the_headers():
    sent = status.status_of(errors.EtagStale())
    packed = status_pb2.Status.FromString(dict(sent.trailing_metadata)["grpc-status-details-bin"])

    assert (packed.code, packed.message) == (code_pb2.ABORTED, sent.details)
    assert sent.code is grpc.StatusCode.ABORTED


def test_overload_says_when_to_try_again():
    retry = details_of(errors.Overloaded())[error_details_pb2.RetryInfo]

    assert retry.retry_delay.ToTimedelta().total_seconds() == 0.1


def test_a_status_stays_under_4_kib_with_32_long_violations():
    """Above about 8 KiB clients see RESOURCE_EXHAUSTED in its place."""
    violations = [errors.FieldViolation("x" * 5_000 + str(number), "must not be " + "y" * 60) for number in range(32)]
    sent = status.status_of(errors.InvalidArgument(*violations))

    assert len(dict(sent.trailing_metadata)["grpc-status-details-bin"]) < 4096


def test_a_status_stays_under_4_kib_with_ten_previews_of_four_byte_characters():
    """The text of every status is far shorter than the limit leaves room for."""
    sent = status.status_of(over_budget("\U0001f600" * 40, entries=10))

    assert len(dict(sent.trailing_metadata)["grpc-status-details-bin"]) < 4096


def test_a_refused_budget_says_what_a_caller_needs_to_make_room():
    assert details_of(over_budget("text", entries=1))[note_pb2.BudgetExceeded] == note_pb2.BudgetExceeded(
        usage=note_pb2.Usage(tier=note_pb2.TIER_USER, used_chars=1_000_000, limit_chars=1_000_000, percent=100),
        would_be_chars=7_000_000,
        over_by_chars=6_000_000,
        entries=[
            note_pb2.BudgetEntry(
                note_id=str(uuid.UUID(int=2**128 - 1)),
                length_chars=65_536,
                preview="text",
                own_level=True,
                classification=classification_pb2.CLASSIFICATION_RESTRICTED,
            )
        ],
    )


@for_each("kind", [*filter(_is_refusal, OURS)])
def test_any_refusal_of_a_stream_says_how_far_it_came(kind):
    error = example(kind)
    error.detail = progress_to_proto(ImportProgress(stored_count=200, existing_count=3))

    sent = details_of(error)[passage_pb2.ImportProgress]

    assert sent == passage_pb2.ImportProgress(stored_count=200, existing_count=3)


def test_other_refusals_say_nothing_of_progress():
    assert passage_pb2.ImportProgress not in details_of(errors.TaintChanged())


def test_every_rule_in_use_has_a_text():
    """Errors are raised with fixed texts only: literals, or one with a number of the contract in it."""
    tree = ast.parse(inspect.getsource(errors))

    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
