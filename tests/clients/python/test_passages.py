"""What a session sends and gets of passages."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import grpc
import pytest

import muniment
from muniment import Classification, ImportCounts, NewPassage, SessionClient
from muniment._calls import Calls
from muniment.v1 import passage_service_pb2 as pb
from muniment.v1.classification_pb2 import CLASSIFICATION_CONFIDENTIAL, CLASSIFICATION_INTERNAL, CLASSIFICATION_PUBLIC
from muniment.v1.passage_pb2 import ImportProgress
from muniment.v1.tag_match_pb2 import TAG_MATCH_ALL, TAG_MATCH_ANY
from tests.clients.python.scripted import error_info, status
from tests.support.examples import NOON as STAMP
from tests.support.examples import PASSAGE, PASSAGE_ID, TOKEN

NOON = datetime.fromtimestamp(1_760_000_000, UTC)
VIENNA = "Booked the sleeper to Vienna."
RAISED = status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED"), ImportProgress(stored_count=1, existing_count=1))
IN_FULL = pb.StorePassageRequest(
    content=VIENNA,
    tags=["travel", "rail"],
    thread="trip",
    author="Ada",
    event_time=STAMP,
    passage_id=PASSAGE_ID,
    expire_time=STAMP,
)


def many() -> Iterator[NewPassage]:
    while True:
        yield NewPassage(VIENNA)


def test_a_passage_is_stored_as_given(server, session):
    session.store_passage(
        VIENNA,
        tags=["travel", "rail"],
        thread="trip",
        author="Ada",
        event_time=NOON,
        passage_id=PASSAGE_ID,
        expire_time=NOON,
    )

    assert server.requests("StorePassage") == [IN_FULL]


def test_a_passage_gets_an_id_and_nothing_else_that_is_not_given(server, session):
    session.store_passage(VIENNA)

    (request,) = server.requests("StorePassage")
    assert str(UUID(request.passage_id)) == request.passage_id
    assert pb.StorePassageRequest(content=VIENNA, passage_id=request.passage_id) == request


def test_a_passage_is_what_was_sent(session):
    expected = muniment.Passage(
        passage_id=PASSAGE_ID,
        content=VIENNA,
        tags=("travel",),
        thread="trip",
        author="Ada",
        event_time=NOON,
        classification=Classification.PUBLIC,
        create_time=NOON,
        expire_time=None,
    )

    assert expected == session.get_passage(PASSAGE_ID)
    assert expected == session.store_passage(VIENNA)


def test_what_is_not_stated_is_none(server, session):
    answer = pb.GetPassageResponse(passage=PASSAGE)
    answer.passage.ClearField("thread")
    answer.passage.ClearField("author")
    server.script("GetPassage", answer)

    passage = session.get_passage(PASSAGE_ID)

    assert (passage.thread, passage.author) == (None, None)


def second_page_follows() -> pb.ListPassagesResponse:
    return pb.ListPassagesResponse(passages=[PASSAGE], next_page_token="second", classification=CLASSIFICATION_PUBLIC)


def test_every_page_is_of_the_same_filter(server, session):
    server.script("ListPassages", second_page_follows())

    passages = session.list_passages(
        tags=iter(["travel", "rail"]),
        tag_match="any",
        thread="trip",
        start_time=NOON,
        end_time=NOON + timedelta(seconds=1),
        page_size=1,
    )

    assert [passage.content for passage in passages] == [VIENNA, VIENNA]
    expected = pb.ListPassagesRequest(
        tags=["travel", "rail"], tag_match=TAG_MATCH_ANY, thread="trip", start_time=STAMP, page_size=1
    )
    expected.end_time.seconds = STAMP.seconds + 1
    first, second = server.requests("ListPassages")
    assert expected == first
    expected.page_token = "second"
    assert expected == second


def test_no_filter_is_none(server, session):
    list(session.list_passages())

    assert [pb.ListPassagesRequest(tag_match=TAG_MATCH_ALL)] == server.requests("ListPassages")


def test_a_taint_raised_between_two_pages_raises_taint_changed(server, session):
    server.script("ListPassages", second_page_follows(), RAISED)
    passages = session.list_passages()

    assert next(passages).passage_id == PASSAGE_ID
    with pytest.raises(muniment.TaintChanged):
        next(passages)


def test_a_page_carries_its_level(server, session):
    answer = second_page_follows()
    answer.classification = CLASSIFICATION_CONFIDENTIAL
    server.script("ListPassages", answer)

    page = session.list_passages_page(page_token="first")

    assert (page.classification, page.next_page_token, len(page)) == (Classification.CONFIDENTIAL, "second", 1)
    assert [passage.passage_id for passage in page] == [PASSAGE_ID]


def test_a_search_gives_results_and_their_level(server, session):
    found = session.search_passages(
        "which train?", max_results=3, tags=["travel"], tag_match="any", thread="trip", start_time=NOON, end_time=NOON
    )

    expected = pb.SearchPassagesRequest(
        query="which train?",
        max_results=3,
        tags=["travel"],
        tag_match=TAG_MATCH_ANY,
        thread="trip",
        start_time=STAMP,
        end_time=STAMP,
    )
    assert [expected] == server.requests("SearchPassages")
    assert (found.classification, found.semantic, found.reranked, len(found)) == (Classification.PUBLIC, True, True, 1)
    assert [(each.passage.content, each.score, each.snippet, each.relevance) for each in found] == [
        (VIENNA, 1.5, "sleeper to Vienna", 0.5)
    ]


def test_a_deletion_says_what_it_reveals(server, session):
    server.script("DeletePassage", pb.DeletePassageResponse(revealed=CLASSIFICATION_INTERNAL))

    assert session.delete_passage(PASSAGE_ID) == Classification.INTERNAL
    assert session.delete_passage(PASSAGE_ID) is None


def test_one_string_is_not_several_tags(session):
    with pytest.raises(TypeError, match="tags"):
        session.store_passage(VIENNA, tags="travel")
    with pytest.raises(TypeError, match="tags"):
        list(session.list_passages(tags="travel"))
    with pytest.raises(TypeError, match="tags"):
        session.search_passages("train", tags="travel")


def test_a_stream_is_sent_in_its_order(server, session):
    new = NewPassage(
        VIENNA, ["travel", "rail"], "trip", "Ada", event_time=NOON, passage_id=PASSAGE_ID, expire_time=NOON
    )

    counts = session.import_passages([new, *(NewPassage(str(number)) for number in range(99))])

    assert counts == ImportCounts(stored_count=2, existing_count=1)
    assert [
        pb.ImportPassagesRequest(passage=IN_FULL),
        *(pb.ImportPassagesRequest(passage=pb.StorePassageRequest(content=str(number))) for number in range(99)),
    ] == server.requests("ImportPassages")
    assert {each.metadata["authorization"] for each in server.asked} == {f"Bearer {TOKEN}"}
    assert server.ended == ["whole"]


def test_an_empty_stream_is_one(server, session):
    session.import_passages([])

    assert server.ended == ["whole"]


def test_a_stream_is_read_as_it_is_sent(server, session):
    """The second passage is asked for before the first has to be stored, and nothing is collected beforehand."""

    def passages() -> Iterator[NewPassage]:
        yield NewPassage("first")
        assert server.wait_until(lambda: bool(server.asked))
        yield NewPassage("second")

    session.import_passages(passages())

    assert [each.passage.content for each in server.requests("ImportPassages")] == ["first", "second"]


def test_a_stream_is_read_in_the_callers_thread(session):
    """A cursor of SQLite would refuse any other."""
    threads = []

    def passages() -> Iterator[NewPassage]:
        threads.append(threading.current_thread())
        yield NewPassage(VIENNA)

    session.import_passages(passages())

    assert threads == [threading.current_thread()]


@pytest.mark.parametrize("error", [KeyError("no such row"), KeyboardInterrupt()])
def test_what_the_stream_raises_reaches_the_caller(server, session, caplog, error):
    """As it is, and without a word in the log; to the server the stream is no whole one."""

    def passages() -> Iterator[NewPassage]:
        yield NewPassage(VIENNA)
        assert server.wait_until(lambda: bool(server.asked))
        raise error

    server.cancel_timeout = 10
    with caplog.at_level(logging.DEBUG), pytest.raises(type(error)) as caught:
        session.import_passages(passages())

    assert caught.value is error
    assert server.wait_until(lambda: bool(server.ended))
    assert server.ended == ["canceled"]
    loud = [record for record in caplog.records if record.levelno > logging.DEBUG]
    assert [record for record in loud if not of_a_closed_loop(record)] == []


def of_a_closed_loop(record: logging.LogRecord) -> bool:
    """Whether gRPC had an event for the loop of an earlier test: all loops of a process share its one queue."""
    return "PollerCompletionQueue._handle_events" in record.getMessage() and "loop is closed" in str(record.exc_info)


def test_a_stream_may_raise_what_ends_an_asynchronous_one(running):
    """Python itself turns this into a RuntimeError where it is raised in an asynchronous generator."""

    def passages() -> Iterator[NewPassage]:
        yield NewPassage(VIENNA)
        raise StopAsyncIteration

    with muniment.connect(running.address, token=TOKEN) as session, pytest.raises(StopAsyncIteration):
        session.import_passages(passages())


def test_a_passage_that_cannot_be_sent_ends_the_stream(server, session):

    def passages() -> Iterator[NewPassage]:
        yield NewPassage(VIENNA)
        assert server.wait_until(lambda: bool(server.asked))
        yield NewPassage(VIENNA, event_time=datetime(2026, 1, 1))  # noqa: DTZ001 - the point

    server.cancel_timeout = 10
    with pytest.raises(ValueError, match="zone"):
        session.import_passages(passages())

    assert server.wait_until(lambda: bool(server.ended))
    assert server.ended == ["canceled"]


class Recorded:
    """A method and its call: remembers whether its stream was still open when the call was canceled."""

    open_when_canceled: bool | None = None

    def future(self, requests: Any, **_: Any) -> Recorded:
        self.requests = requests
        return self

    def add_done_callback(self, _: object) -> None:
        pass

    def cancel(self) -> None:
        self.open_when_canceled = self.requests.give(None)


def test_a_broken_stream_is_canceled_before_it_ends():
    """The other way round gRPC could send the end, and the server would take the stream for whole."""
    method: Any = Recorded()
    calls = Calls(grpc.insecure_channel("localhost"), TOKEN, timeout=1, retries=False)

    with pytest.raises(ZeroDivisionError):
        calls.stream(method, (1 // number for number in (1, 0)))

    assert method.open_when_canceled
    assert list(method.requests)[:1] == [1]


def test_a_failure_during_a_stream_says_how_far_it_came(server, session):
    """An endless stream is not read to its end. Now and then, grpc's asyncio loses the reason: see `_STATUS_LOST`."""
    server.reads = 2
    failures: list[muniment.MunimentError] = []
    while not failures or (isinstance(failures[-1], muniment.Unavailable) and len(failures) < 5):
        server.script("ImportPassages", RAISED)
        with pytest.raises((muniment.TaintChanged, muniment.Unavailable)) as caught:
            session.import_passages(many())
        failures.append(caught.value)

    assert failures[-1].progress == ImportCounts(stored_count=1, existing_count=1)
    assert len(server.requests("ImportPassages")) == 2 * len(failures)


def test_a_stream_has_a_deadline(session):
    with pytest.raises(muniment.DeadlineExceeded) as caught:
        session.import_passages(many(), timeout=0.2)

    assert caught.value.progress is None


def ends_well(session: SessionClient) -> None:
    session.import_passages([NewPassage(VIENNA)])


def fails_in_mid_stream(session: SessionClient) -> None:
    with pytest.raises(muniment.DeadlineExceeded):
        session.import_passages(many(), timeout=0.2)


def is_given_up(session: SessionClient) -> None:
    with pytest.raises(ZeroDivisionError):
        session.import_passages(NewPassage(str(1 // number)) for number in (1, 0))


@pytest.mark.parametrize("stream", [ends_well, fails_in_mid_stream, is_given_up])
def test_a_stream_leaves_no_thread_behind(session, stream):
    ends_well(session)  # grpc.aio starts a thread of its own with the first channel of a process.
    before = set(threading.enumerate())

    stream(session)

    ours = [each for each in set(threading.enumerate()) - before if not each.name.startswith("ThreadPool")]
    for thread in ours:
        thread.join(timeout=10)
    assert not [thread for thread in ours if thread.is_alive()]
