"""An error has the id under which its call is in the server's log."""

from __future__ import annotations

import pickle

import grpc
import pytest

import muniment
from muniment import Details, NewPassage
from muniment._shown import shown
from muniment._status import BY_REASON
from tests.clients.python.scripted import bad_request, error_info, request_id, status, unavailable
from tests.support.examples import TOKEN

NOT_FOUND = status(grpc.StatusCode.NOT_FOUND, error_info("MEMORY_NOT_FOUND"))


def test_an_error_has_the_id_and_prints_it(server, session):
    server.numbers_answers = True
    server.script("GetMemory", NOT_FOUND)

    with pytest.raises(muniment.MemoryNotFound) as caught:
        session.get_memory("tea")

    assert caught.value.request_id == request_id(1)
    assert str(caught.value) == f"MEMORY_NOT_FOUND: No. (request {request_id(1)})"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_it_is_printed_behind_the_rules_that_are_broken(server, session):
    server.numbers_answers = True
    details = (error_info("FIELD_INVALID"), bad_request(key="is empty"))
    server.script("GetMemory", status(grpc.StatusCode.INVALID_ARGUMENT, *details))

    with pytest.raises(muniment.InvalidArgument) as caught:
        session.get_memory("tea")

    assert str(caught.value) == f"FIELD_INVALID: No. (key: is empty) (request {request_id(1)})"
    assert caught.value.summary == "FIELD_INVALID: No. (key: is empty)"


def test_after_retries_it_is_the_id_of_the_last_attempt(server, session):
    server.numbers_answers = True
    server.script("GetMemory", unavailable(), unavailable(), NOT_FOUND)

    with pytest.raises(muniment.MemoryNotFound) as caught:
        session.get_memory("tea")

    assert caught.value.request_id == request_id(3)


def test_an_import_that_fails_has_one_too(server, session):
    server.numbers_answers = True
    server.script("ImportPassages", status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED")))

    with pytest.raises(muniment.TaintChanged) as caught:
        session.import_passages([NewPassage("booked")])

    assert caught.value.request_id == request_id(1)


def test_without_an_answer_there_is_none(connect):
    with (
        connect("127.0.0.1:1", token=TOKEN, retries=False) as session,
        pytest.raises(muniment.Unavailable) as caught,
    ):
        session.get_memory("tea")

    assert caught.value.request_id == ""
    assert "(request" not in str(caught.value)


def test_a_fault_is_known_by_one_id(server, session):
    """A server of version 0.1.0 sends the incident alone."""
    fault = status(grpc.StatusCode.INTERNAL, error_info("INTERNAL", incident=request_id(1)))
    for server.numbers_answers in (True, False):
        server.script("DeleteMemory", fault)

        with pytest.raises(muniment.InternalError) as caught:
            session.delete_memory("tea")

        assert caught.value.request_id == caught.value.incident == request_id(1)
        assert str(caught.value).count(request_id(1)) == 1


def test_commands_and_tools_show_it_where_the_log_may_explain_the_error():
    details = Details(request_id=request_id(1))
    raised = {reason: kind(grpc.StatusCode.UNKNOWN, reason, "no", details) for reason, kind in BY_REASON.items()}

    assert {reason for reason, error in raised.items() if request_id(1) in shown(error)} == {
        "INTERNAL", "UNAVAILABLE", "OVERLOADED", "DEADLINE_EXCEEDED",
    }  # fmt: skip
    assert all(request_id(1) in str(error) for error in raised.values())
