"""Every status becomes one exception, and says nothing that it should not."""

from __future__ import annotations

import inspect
import pickle
import re
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

import muniment
from muniment import Classification, SessionClient, Tier, errors
from muniment._status import CLOSED_HERE, error_of
from muniment.v1 import passage_pb2
from muniment.v1.error_pb2 import ErrorReason
from tests.clients.python.scripted import ScriptedServer, bad_request, error_info, over_budget, retry_info, status
from tests.support.each import for_each
from tests.support.examples import NOTE_ID, TOKEN

REASONS = [name.removeprefix("ERROR_REASON_") for name, number in ErrorReason.items() if number]
CODES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]

# The others are named after their reason.
NAMED_OTHERWISE = {
    "FIELD_INVALID": "InvalidArgument",
    "PAGE_TOKEN_INVALID": "InvalidPageToken",
    "CREDENTIAL_INVALID": "Unauthenticated",
    "INTERNAL": "InternalError",
}


def expected_name(reason: str) -> str:
    return NAMED_OTHERWISE.get(reason) or reason.title().replace("_", "")


def failure(server: ScriptedServer, session: SessionClient, answer: Message) -> muniment.MunimentError:
    """What the client makes of one answer."""
    server.script("DeleteMemory", answer)
    with pytest.raises(muniment.MunimentError) as caught:
        session.delete_memory("tea")
    return caught.value


@for_each("reason", REASONS)
def test_every_reason_has_its_own_exception(server, session, reason):
    """Also under a status that the reason does not usually come with: reasons do not change."""
    error = failure(server, session, status(grpc.StatusCode.UNKNOWN, error_info(reason)))

    assert expected_name(reason) == type(error).__name__, "add its class to muniment/errors.py"
    assert reason == error.reason
    assert getattr(muniment, type(error).__name__) is type(error)


def test_no_two_reasons_share_an_exception():
    assert len(REASONS) == len({expected_name(reason) for reason in REASONS})


@for_each("code", CODES)
@pytest.mark.parametrize("details", [(), (error_info("OF_NEXT_YEAR"),), (error_info("ETAG_STALE", "else.where"),)])
def test_an_unknown_reason_becomes_the_class_of_its_status(server, session, code, details):
    error = failure(server, session, status(code, *details))

    special = {grpc.StatusCode.INTERNAL: "InternalError", grpc.StatusCode.CANCELLED: "Unavailable"}
    without_class = {"Unknown", "OutOfRange", "DataLoss"}
    named = special.get(code) or code.name.title().replace("_", "")
    assert ("MunimentError" if named in without_class else named) == type(error).__name__
    broken_off = code is grpc.StatusCode.CANCELLED
    assert (grpc.StatusCode.UNAVAILABLE if broken_off else code) is error.code


def test_a_call_whose_status_grpc_has_lost_is_unavailable_and_no_error_of_the_server(server, session):
    lost = status(grpc.StatusCode.INTERNAL, message="Internal error from Core")

    assert isinstance(failure(server, session, lost), muniment.Unavailable)


def test_violations_name_field_and_rule(server, session):
    details = (error_info("FIELD_INVALID"), bad_request(key="is empty", content="is too long"))

    error = failure(server, session, status(grpc.StatusCode.INVALID_ARGUMENT, *details))

    assert isinstance(error, muniment.InvalidArgument)
    expected = (muniment.Violation("key", "is empty"), muniment.Violation("content", "is too long"))
    assert expected == error.violations
    assert str(error) == "FIELD_INVALID: No. (key: is empty; content: is too long)"


def test_overload_says_when_to_come_back(server, session):
    details = (error_info("OVERLOADED"), retry_info(1.25))

    assert failure(server, session, status(grpc.StatusCode.RESOURCE_EXHAUSTED, *details)).retry_after == 1.25


def test_a_printed_error_has_the_numbers(server, session):
    overload = (error_info("OVERLOADED"), retry_info(1.25))
    raised = (error_info("TAINT_CHANGED"), passage_pb2.ImportProgress(stored_count=1200, existing_count=34))

    assert [
        str(failure(server, session, answer))
        for answer in (
            over_budget(),
            status(grpc.StatusCode.RESOURCE_EXHAUSTED, *overload),
            status(grpc.StatusCode.ABORTED, *raised),
        )
    ] == [
        "BUDGET_EXCEEDED: No. (over by 100 characters: 2,300 of 2,200)",
        "OVERLOADED: No. (retry after 1.25 s)",
        "TAINT_CHANGED: No. (1,200 passages stored, 34 already there)",
    ]


def test_the_repr_of_an_error_is_short(server, session):
    assert repr(failure(server, session, over_budget())) == (
        "<BudgetExceeded BUDGET_EXCEEDED: No. (over by 100 characters: 2,300 of 2,200)>"
    )


def test_a_quota_says_which_it_is(server, session):
    refusal = error_info("QUOTA_EXCEEDED", quota="items")

    error = failure(server, session, status(grpc.StatusCode.RESOURCE_EXHAUSTED, refusal))

    assert isinstance(error, muniment.QuotaExceeded)
    assert error.quota == "items"
    assert str(error) == "QUOTA_EXCEEDED: No. (quota: items)"


def test_a_delay_is_never_negative(server, session):
    details = (error_info("OVERLOADED"), retry_info(-3))

    assert failure(server, session, status(grpc.StatusCode.RESOURCE_EXHAUSTED, *details)).retry_after == 0


def test_a_fault_of_the_server_has_an_incident(server, session):
    error = failure(server, session, status(grpc.StatusCode.INTERNAL, error_info("INTERNAL", incident="a1b2")))

    assert isinstance(error, muniment.InternalError)
    assert error.incident == "a1b2"


def test_an_overrun_says_what_takes_the_room(server, session):
    error = failure(server, session, over_budget())

    assert isinstance(error, muniment.BudgetExceeded)
    assert error.usage == muniment.Usage(Tier.MEMORY, used_chars=31, limit_chars=2200, percent=1)
    assert (error.would_be_chars, error.over_by_chars) == (2300, 100)
    expected = muniment.BudgetEntry(
        NOTE_ID, 31, "Ada travels by night train only", own_level=True, classification=Classification.PUBLIC
    )
    assert (expected,) == error.entries


@pytest.mark.parametrize(
    "answer",
    [
        status(grpc.StatusCode.FAILED_PRECONDITION, error_info("BUDGET_EXCEEDED")),
        over_budget(classification=9),
    ],
    ids=["silent", "of a later contract"],
)
def test_an_overrun_without_its_detail_is_one_all_the_same(server, session, answer):
    error = failure(server, session, answer)

    assert isinstance(error, muniment.BudgetExceeded)
    assert (error.usage, error.would_be_chars, error.over_by_chars, error.entries) == (None, 0, 0, ())


def test_no_error_shows_a_preview(server, session):
    error = failure(server, session, over_budget())

    assert "night train" not in f"{error!s}{error!r}{error.details!r}{error.__cause__!s}"


def test_an_error_carries_the_progress(server, session):
    progress = passage_pb2.ImportProgress(stored_count=3, existing_count=1)
    answer = status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED"), progress)

    assert failure(server, session, answer).progress == muniment.ImportCounts(stored_count=3, existing_count=1)
    assert failure(server, session, status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED"))).progress is None


def test_damaged_details_are_as_good_as_none(server, session):
    damaged = status(grpc.StatusCode.NOT_FOUND, error_info("MEMORY_NOT_FOUND"))
    damaged.details[0].value = b"\xff\xff\xff"  # type: ignore[attr-defined]  # a status has details

    error = failure(server, session, damaged)

    assert type(error) is muniment.NotFound


class Failure(grpc.RpcError):
    """A failed call as grpc raises it."""

    def __init__(self, code: grpc.StatusCode, message: str, **trailers: bytes) -> None:
        self._code = code
        self._message = message
        self._trailers = tuple((name.replace("_", "-"), value) for name, value in trailers.items())

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._message

    def trailing_metadata(self) -> Any:
        return self._trailers


def test_details_of_another_status_are_as_good_as_none():
    other = status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED"), message="x").SerializeToString()

    error = error_of(Failure(grpc.StatusCode.NOT_FOUND, "x", grpc_status_details_bin=other))

    assert (type(error), error.reason) == (muniment.NotFound, "")


def test_a_call_that_is_ended_by_closing_its_channel_is_not_taken_for_one_that_the_server_broke_off():
    found = [error_of(Failure(grpc.StatusCode.CANCELLED, message)) for message in (CLOSED_HERE, "stream reset")]

    assert [type(error) for error in found] == [muniment.MunimentError, muniment.Unavailable]


INVALID = status(grpc.StatusCode.INVALID_ARGUMENT, error_info("FIELD_INVALID"), bad_request(key="is empty"))


@pytest.mark.parametrize("answer", [INVALID, over_budget()], ids=["invalid", "over budget"])
def test_an_error_survives_pickling(server, session, answer):
    error = failure(server, session, answer)

    copy = pickle.loads(pickle.dumps(error))

    assert (type(error), str(error), error.details) == (type(copy), str(copy), copy.details)


def test_no_error_shows_the_credential(server, session):
    error = failure(server, session, status(grpc.StatusCode.UNAUTHENTICATED, error_info("CREDENTIAL_INVALID")))

    assert TOKEN not in f"{error!s}{error!r}{error.__cause__!s}{error.__cause__!r}"


def test_the_drawing_is_the_hierarchy():
    """The tree in the module's docstring names every exception below the one it derives from."""
    drawn = re.findall(r"^((?:[│├└─ ])*)([A-Z][A-Za-z]+)(?:  .*)?$", errors.__doc__ or "", re.MULTILINE)
    parents: dict[int, str] = {-1: "Exception"}
    tree = {}
    for indent, name in drawn:
        depth = len(indent) // 4
        parents[depth] = name
        tree[name] = parents[depth - 1]

    classes = inspect.getmembers(errors, lambda each: inspect.isclass(each) and issubclass(each, Exception))
    assert {name: each.__base__.__name__ for name, each in classes} == tree
