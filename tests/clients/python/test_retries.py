"""A call is sent again exactly where that is safe."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import grpc
import pytest

import muniment
from muniment import (
    AddNote,
    DeleteNote,
    NewPassage,
    SessionClient,
    UpdateNote,
)
from muniment.retries import FIRST_PAUSE, LONGEST_PAUSE, may_repeat, pauses
from muniment.v1 import note_service_pb2, passage_service_pb2, policy_pb2
from tests.clients.python.scripted import (
    METHODS,
    ScriptedServer,
    error_info,
    overloaded,
    retry_info,
    serve,
    status,
    unavailable,
)
from tests.rpcs import RPCS
from tests.support.examples import HOST_KEY, NOTE_ID, TOKEN
from tests.support.ports import free_port

REPEATED = {
    name for name, method in METHODS.items() if method.GetOptions().Extensions[policy_pb2.policy].may_be_repeated
}
OK = grpc.StatusCode.OK
PASSING_CODES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED)
PASSING = {"unavailable": unavailable(), "overloaded": overloaded(retry_info(0.001))}


@pytest.mark.parametrize("refusal", PASSING)
@pytest.mark.parametrize("method", sorted(REPEATED))
def test_what_is_safe_is_sent_again(server, host, session, method, refusal):
    server.script(method, PASSING[refusal], PASSING[refusal])

    RPCS[method].python(host, session)

    assert len(server.requests(method)) == 3


@pytest.mark.parametrize("refusal", PASSING)
@pytest.mark.parametrize("method", sorted(METHODS.keys() - REPEATED))
def test_what_is_not_safe_is_sent_once(server, host, session, method, refusal):
    server.script(method, PASSING[refusal])

    with pytest.raises((muniment.Unavailable, muniment.Overloaded)):
        RPCS[method].python(host, session)

    assert len(server.requests(method)) == 1


WITH_AN_ETAG: dict[str, Callable[[SessionClient], object]] = {
    "SaveMemory": lambda session: session.save_memory("tea", "Assam", etag="item-1"),
    "UpdateNote": lambda session: session.update_note(NOTE_ID, "night trains", etag="item-1"),
    "UpdateBlock": lambda session: session.update_block("personality", "dry", etag="item-1"),
}


@pytest.mark.parametrize("method", WITH_AN_ETAG)
def test_a_write_with_an_etag_is_sent_once(server, session, method):
    """If the first one did arrive, the second would be stale."""
    server.script(method, unavailable())

    with pytest.raises(muniment.Unavailable):
        WITH_AN_ETAG[method](session)

    assert len(server.requests(method)) == 1


def test_what_the_server_says_is_not_taken_for_a_failed_connection(server, session):
    words = "failed to connect to all addresses"
    server.script("EditBlock", status(grpc.StatusCode.UNAVAILABLE, error_info("UNAVAILABLE"), message=words))

    with pytest.raises(muniment.Unavailable):
        session.append_to_block("personality", "dry")

    assert len(server.requests("EditBlock")) == 1


@pytest.mark.parametrize("method", ["AddNote", "StorePassage", "EditNotes"])
def test_what_is_added_is_sent_again_under_the_same_id(server, host, session, method):
    server.script(method, unavailable())

    RPCS[method].python(host, session)

    first, second = server.requests(method)
    assert first == second


@pytest.mark.parametrize("edit", [UpdateNote(NOTE_ID, "Vienna"), DeleteNote(NOTE_ID)], ids=["update", "delete"])
def test_edits_that_do_not_only_add_are_sent_once(server, session, edit):
    """A deletion is not found the second time; an update may let an add in that added nothing the first time."""
    server.script("EditNotes", unavailable())

    with pytest.raises(muniment.Unavailable):
        session.edit_notes([AddNote("night trains"), edit])

    assert len(server.requests("EditNotes")) == 1


def test_edits_that_are_only_validated_are_sent_again(server, session):
    server.script("EditNotes", unavailable())

    session.edit_notes([DeleteNote(NOTE_ID)], validate_only=True)

    assert len(server.requests("EditNotes")) == 2


@pytest.mark.parametrize(
    "request_without_id",
    [
        note_service_pb2.AddNoteRequest(content="night trains"),
        note_service_pb2.EditNotesRequest(
            edits=[note_service_pb2.NoteEdit(add=note_service_pb2.AddNoteEdit(content="night trains"))]
        ),
        passage_service_pb2.StorePassageRequest(content="booked"),
    ],
    ids=lambda request: request.DESCRIPTOR.name,
)
def test_what_has_no_id_may_not_be_repeated(request_without_id):
    assert not may_repeat(request_without_id)


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code not in (OK, *PASSING_CODES)])
def test_other_failures_are_final(server, session, code):
    server.script("GetMemory", status(code, retry_info(0.001)))

    with pytest.raises(muniment.MunimentError):
        session.get_memory("tea")

    assert len(server.requests("GetMemory")) == 1


def test_a_call_that_the_server_breaks_off_is_sent_again(server, session):
    """It was not canceled here, and may have been executed."""
    server.script("GetMemory", status(grpc.StatusCode.CANCELLED))
    server.script("DeleteMemory", status(grpc.StatusCode.CANCELLED))

    session.get_memory("tea")
    with pytest.raises(muniment.Unavailable):
        session.delete_memory("tea")

    assert [len(server.requests(method)) for method in ("GetMemory", "DeleteMemory")] == [2, 1]


def test_overload_without_a_time_is_final(server, session):
    server.script("GetMemory", overloaded())

    with pytest.raises(muniment.Overloaded):
        session.get_memory("tea")

    assert len(server.requests("GetMemory")) == 1


def test_a_call_waits_for_a_server_that_is_not_there_yet(connect):
    """Nothing was sent, so that even this call may be made again: the others are in test_retry_times.py."""
    address = f"127.0.0.1:{free_port()}"
    scripted, server = ScriptedServer(), []
    back = threading.Timer(0.6, lambda: server.append(serve(scripted, address)))

    with connect(address, host_key=HOST_KEY) as host, host.session(TOKEN) as session:
        back.start()
        RPCS["DeleteMemory"].python(host, session)

    assert len(scripted.requests("DeleteMemory")) == 1
    server[0][0].stop(None).wait()


def test_what_was_lost_on_its_way_is_not_sent_again(connect):
    """The connection breaks after the call was sent: it may have been executed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        lost = threading.Thread(target=lose, args=(listener,), daemon=True)
        lost.start()
        with (
            connect(f"127.0.0.1:{listener.getsockname()[1]}", token=TOKEN) as session,
            pytest.raises(muniment.Unavailable),
        ):
            session.delete_memory("tea", timeout=60)
    lost.join()


def lose(listener: socket.socket) -> None:
    """Accept one connection as HTTP/2 does, take a call, and break off."""
    connection, _ = listener.accept()
    with connection:
        connection.sendall(bytes.fromhex("000000 04 00 00000000"))
        got = b""
        while TOKEN.encode() not in got:
            got += connection.recv(65536)


def test_retries_can_be_turned_off(connect, running):
    running.scripted.script("GetMemory", unavailable())

    with (
        connect(running.address, token=TOKEN, retries=False) as session,
        pytest.raises(muniment.Unavailable),
    ):
        session.get_memory("tea")

    assert len(running.scripted.requests("GetMemory")) == 1


def test_a_server_that_names_a_time_is_given_it(server, session, monkeypatch):
    """How long the pauses are is tested in test_retry_times.py."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("muniment.retries.time.sleep", slept.append)
    monkeypatch.setattr("muniment.aio._calls.asyncio.sleep", sleep)
    server.script("GetMemory", overloaded(retry_info(3)))

    session.get_memory("tea")

    assert slept == [pytest.approx(3, abs=0.01)]


def test_the_default_timeout_is_the_clients(connect, running):
    with connect(running.address, host_key=HOST_KEY, timeout=300) as host:
        host.get_agent("ada")
        session = host.session(TOKEN)
        session.get_memory("tea")
        session.import_passages([NewPassage("booked")])
        host.get_agent("ada", timeout=100)
        session.import_passages([NewPassage("booked")], timeout=200)

    # A busy machine may take a while to receive them.
    assert [round(each.seconds_left, -2) for each in running.scripted.asked] == [300, 300, 300, 100, 200]


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), 1e12])
def test_a_timeout_that_grpc_would_misread_is_refused(server, session, seconds):
    with pytest.raises(ValueError, match="timeout"):
        session.get_memory("tea", timeout=seconds)
    with pytest.raises(ValueError, match="timeout"):
        session.import_passages([], timeout=seconds)

    assert server.asked == []


def test_pauses_grow_up_to_the_longest(monkeypatch):
    monkeypatch.undo()  # the short ones of conftest.py
    longest = [min(FIRST_PAUSE * 2**n, LONGEST_PAUSE) for n in range(8)]

    assert longest[-1] == LONGEST_PAUSE
    assert all(most / 2 <= pause <= most for pause, most in zip(pauses(), longest, strict=False))


def test_a_lost_answer_of_a_retried_write_is_the_second_one(server, session):
    """The caller gets what the last attempt says, not what the first one did."""
    server.script("SaveMemory", unavailable(), status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED")))

    with pytest.raises(muniment.TaintChanged):
        session.save_memory("tea", "Assam")
