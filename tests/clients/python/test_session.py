"""What a session sends and gets."""

from __future__ import annotations

from datetime import UTC, datetime

import grpc
import pytest

import muniment
from muniment import Classification, NewMemory
from muniment.v1 import memory_service_pb2
from muniment.v1.classification_pb2 import (
    CLASSIFICATION_CONFIDENTIAL,
    CLASSIFICATION_INTERNAL,
    CLASSIFICATION_PUBLIC,
)
from tests.clients.python.scripted import bad_request, error_info, status, unavailable
from tests.support.examples import MEMORY, SESSION_ID, TOKEN

NOON = datetime.fromtimestamp(1_760_000_000, UTC)
OVER = status(grpc.StatusCode.UNAUTHENTICATED, error_info("CREDENTIAL_INVALID"))


def test_a_memory_is_saved_as_given(server, session):
    session.save_memory("tea", "Assam", tags=["taste", "home"], expire_time=NOON, etag="item-1")

    (request,) = server.requests("SaveMemory")
    assert (request.key, request.content, request.etag) == ("tea", "Assam", "item-1")
    assert list(request.tags) == ["taste", "home"]
    assert request.expire_time.seconds == 1_760_000_000


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_a_time_that_is_outside_the_calendar_in_utc_is_a_value_error(session, time):
    with pytest.raises(ValueError, match="from year 1 to 9999 in UTC"):
        session.save_memory("tea", "Assam", expire_time=datetime.fromisoformat(time))


def test_what_is_not_given_is_not_sent(server, session):
    session.save_memory("tea", "Assam")

    assert [memory_service_pb2.SaveMemoryRequest(key="tea", content="Assam")] == server.requests("SaveMemory")


def test_a_memory_is_what_was_sent(session):
    expected = muniment.Memory(
        key="tea",
        content="Assam, no sugar",
        tags=("taste",),
        classification=Classification.PUBLIC,
        etag="item-1",
        create_time=NOON,
        update_time=NOON,
        expire_time=None,
    )

    assert expected == session.get_memory("tea")
    assert expected == session.save_memory("tea", "Assam, no sugar")


def test_one_string_is_not_several_tags(session):
    with pytest.raises(TypeError, match="tags"):
        session.save_memory("tea", "Assam", tags="taste")
    with pytest.raises(TypeError, match="tags"):
        session.search_memories("tea", tags="taste")


def test_memories_come_from_all_pages(server, session):
    server.script(
        "ListMemories",
        memory_service_pb2.ListMemoriesResponse(
            memories=[MEMORY],
            next_page_token="second",
            classification=CLASSIFICATION_PUBLIC,
        ),
    )

    assert [memory.key for memory in session.list_memories("taste")] == ["tea", "tea"]
    assert [(request.tag, request.page_token) for request in server.requests("ListMemories")] == [
        ("taste", ""),
        ("taste", "second"),
    ]


def test_a_page_carries_its_level(server, session):
    server.script(
        "ListMemories",
        memory_service_pb2.ListMemoriesResponse(
            memories=[MEMORY],
            next_page_token="second",
            classification=CLASSIFICATION_CONFIDENTIAL,
        ),
    )

    page = session.list_memories_page(page_size=1, page_token="first")

    assert (
        page.classification,
        page.next_page_token,
        len(page),
    ) == (Classification.CONFIDENTIAL, "second", 1)
    assert [memory.key for memory in page] == ["tea"]
    (request,) = server.requests("ListMemories")
    assert (request.page_size, request.page_token) == (1, "first")


def test_a_taint_raised_between_two_pages_raises_taint_changed(server, session):
    server.script(
        "ListMemories",
        memory_service_pb2.ListMemoriesResponse(
            memories=[MEMORY],
            next_page_token="second",
            classification=CLASSIFICATION_PUBLIC,
        ),
        status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED")),
    )
    memories = session.list_memories()

    assert next(memories).key == "tea"
    with pytest.raises(muniment.TaintChanged):
        next(memories)


def test_a_search_gives_results_and_their_level(server, session):
    found = session.search_memories("which tea?", max_results=3, tags=("a", "b"), tag_match="any")

    (request,) = server.requests("SearchMemories")
    assert (
        request.query,
        request.max_results,
        list(request.tags),
        request.tag_match,
    ) == ("which tea?", 3, ["a", "b"], 2)
    assert (found.classification, found.semantic, found.reranked, len(found)) == (Classification.PUBLIC, True, True, 1)
    assert [(each.memory.key, each.score, each.snippet, each.relevance) for each in found] == [
        ("tea", 1.5, "Assam, no sugar", 0.5)
    ]


def test_an_unknown_match_is_refused(session):
    with pytest.raises(ValueError, match="tag_match"):
        session.search_memories("tea", tag_match="some")


def test_a_deletion_says_what_it_reveals(server, session):
    server.script("DeleteMemory", memory_service_pb2.DeleteMemoryResponse(revealed=CLASSIFICATION_INTERNAL))

    assert session.delete_memory("tea", etag="item-1") == Classification.INTERNAL
    assert session.delete_memory("tea") is None
    assert [request.etag for request in server.requests("DeleteMemory")] == ["item-1", ""]


def test_many_memories_are_saved_as_given(server, session):
    saved = session.save_memories(
        [NewMemory("tea", "Assam", tags=["taste"], expire_time=NOON, etag="item-1"), NewMemory("milk", "none")]
    )

    (request,) = server.requests("SaveMemories")
    tea, milk = request.memories
    assert (tea.key, tea.content, list(tea.tags), tea.etag) == ("tea", "Assam", ["taste"], "item-1")
    assert tea.expire_time.seconds == 1_760_000_000
    assert memory_service_pb2.SaveMemoryRequest(key="milk", content="none") == milk
    assert [memory.key for memory in saved] == ["tea"]
    with pytest.raises(TypeError, match="NewMemory"):
        session.save_memories([("tea", "Assam")])


def test_memories_with_an_etag_are_saved_once(server, session):
    server.script("SaveMemories", unavailable())

    with pytest.raises(muniment.Unavailable):
        session.save_memories([NewMemory("milk", "none"), NewMemory("tea", "Assam", etag="item-1")])

    assert len(server.requests("SaveMemories")) == 1


def test_the_memories_with_a_stale_etag_are_named(server, session):
    violations = bad_request(**{"memories[1].etag": "is not the etag of the current version"})
    server.script("SaveMemories", status(grpc.StatusCode.ABORTED, error_info("ETAG_STALE"), violations))

    with pytest.raises(muniment.EtagStale) as caught:
        session.save_memories([NewMemory("milk", "none"), NewMemory("tea", "Assam", etag="item-1")])

    assert [violation.field for violation in caught.value.violations] == ["memories[1].etag"]
    assert "(memories[1].etag: is not the etag of the current version)" in str(caught.value)


def test_a_deletion_of_many_says_how_many_and_whether_there_are_more(server, session):
    assert session.delete_memories("drinks") == muniment.DeletedCount(2, more=True)
    assert session.delete_passages(thread="trip") == muniment.DeletedCount(3, more=False)
    assert server.requests("DeleteMemories")[0].tag == "drinks"
    (request,) = server.requests("DeletePassages")
    assert (request.tag, request.thread) == ("", "trip")


def test_a_key_prefix_is_sent_with_each_page_and_search(server, session):
    server.script(
        "ListMemories",
        memory_service_pb2.ListMemoriesResponse(next_page_token="second", classification=CLASSIFICATION_PUBLIC),
    )

    list(session.list_memories(key_prefix="t"))
    session.search_memories("tea", key_prefix="te ")

    assert [request.key_prefix for request in server.requests("ListMemories")] == ["t", "t"]
    assert [request.key_prefix for request in server.requests("SearchMemories")] == ["te "]


def test_a_session_by_token_asks_for_itself_once(running):
    with muniment.connect(running.address, token=TOKEN) as session:
        assert session.session.session_id == SESSION_ID
        assert session.session_id == SESSION_ID

    assert len(running.scripted.requests("GetSession")) == 1


def test_leaving_a_session_by_token_leaves_it_open(server, session):
    with session:
        session.get_memory("tea")

    assert server.requests("CloseSession") == []


def test_closing_twice_is_closing_once(server, session):
    session.close()
    session.close()

    assert len(server.requests("CloseSession")) == 1


def test_closing_what_is_over_says_so(server, session):
    server.script("CloseSession", OVER)

    with pytest.raises(muniment.Unauthenticated):
        session.close()


def test_leaving_a_session_that_is_over_is_fine(server, host):
    """A host that resets or closes inside the block has got what leaving would do."""
    server.script("CloseSession", OVER)

    with host.open_session("ada", Classification.PUBLIC):
        pass

    assert len(server.requests("CloseSession")) == 1


def test_a_failed_closing_is_raised(server, host):
    server.script("CloseSession", unavailable())

    with pytest.raises(muniment.Unavailable), host.open_session("ada", Classification.PUBLIC):
        pass


def test_a_failed_closing_does_not_hide_the_first_failure(server, host):
    server.script("CloseSession", unavailable())

    with pytest.raises(KeyError), host.open_session("ada", Classification.PUBLIC):
        raise KeyError
