"""Lists, page by page, and lists that begin anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from muniment import HostClient, ItemKind, SessionClient, TaintChanged
from muniment._listing import undisturbed
from tests.clients.python.scripted import error_info, status
from tests.rpcs import RPCS
from tests.support.examples import SESSION_ID
from tests.support.methods import request_of

RAISED = status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED"))

LISTS: dict[str, Callable[[HostClient, SessionClient], Any]] = {
    "ListMemories": lambda _, session: session.list_memories(),
    "ListNotes": lambda _, session: session.list_notes(),
    "ListBlocks": lambda _, session: session.list_blocks(),
    "ListPassages": lambda _, session: session.list_passages(tags=iter(["travel"])),
    "ListVersions": lambda _, session: session.list_versions(ItemKind.MEMORY, "tea", with_revisions=True),
    "ListAgents": lambda host, _: host.list_agents(),
    "ListSessions": lambda host, _: host.list_sessions("ada"),
    "ListBlockConsumers": lambda host, _: host.list_block_consumers("ada", "personality"),
    "ListReleases": lambda host, _: host.list_releases(),
    "ListAuditEvents": lambda host, _: host.list_audit_events(session=SESSION_ID),
}
"""Every list of the contract."""


def begun(method: str) -> Any:
    """The first page of a list that has a second one."""
    page = type(RPCS[method].answer)()
    page.CopyFrom(RPCS[method].answer)
    page.next_page_token = "second"
    return page


def raised(times: int):
    """A list whose reading meets *times* raises."""
    left = iter(range(times))

    def read_all() -> str:
        for _ in left:
            raise TaintChanged(grpc.StatusCode.ABORTED, "TAINT_CHANGED")
        return "all"

    return read_all


def test_every_list_is_tested():
    paged = {method for method in RPCS if "page_token" in request_of(method).fields_by_name}

    assert LISTS.keys() == paged


@pytest.mark.parametrize("method", LISTS)
def test_a_list_is_read_page_by_page_and_as_a_whole(server, host, session, method):
    each_page = len(list(LISTS[method](host, session)))
    server.script(method, begun(method), RPCS[method].answer, begun(method), RPCS[method].answer)

    assert len(list(LISTS[method](host, session))) == 2 * each_page
    assert len(LISTS[method](host, session).all()) == 2 * each_page


@pytest.mark.parametrize("method", LISTS)
def test_a_raise_between_two_pages_ends_an_iterator_and_a_list_without_the_option(server, host, session, method):
    for read in (list, lambda listing: listing.all()):
        server.script(method, begun(method), RAISED)

        with pytest.raises(TaintChanged):
            read(LISTS[method](host, session))


@pytest.mark.parametrize("method", LISTS)
def test_a_list_begins_anew_on_request(server, host, session, method):
    """And has nothing that was read before the raise. *tags* may be an iterator: it is read once."""
    alone = LISTS[method](host, session).all()
    server.script(method, begun(method), RAISED, begun(method), RAISED, RAISED)

    assert LISTS[method](host, session).all(restart_on_taint_change=True) == alone
    requests = server.requests(method)
    assert [request.page_token for request in requests] == ["", "", "second", "", "second", "", ""]
    assert len({first_page(request) for request in requests}) == 1


def first_page(request: Any) -> bytes:
    """The request for the same list from its beginning, as it is on the wire."""
    request.page_token = ""
    sent: bytes = request.SerializeToString()
    return sent


def test_a_fifth_raise_ends_it(server, session):
    """There are four levels and two integrities, so a conversation cannot be raised so often."""
    server.script("ListMemories", *[RAISED] * 5)

    with pytest.raises(TaintChanged):
        session.list_memories().all(restart_on_taint_change=True)

    assert len(server.requests("ListMemories")) == 5


def test_all_begins_at_the_beginning_whatever_was_read(server, session):
    server.script("ListMemories", begun("ListMemories"), begun("ListMemories"))
    memories = session.list_memories()

    next(memories)

    assert len(memories.all()) == 2


@pytest.mark.parametrize("times", [0, 1, 2, 3, 4])
def test_a_list_outlasts_as_many_raises_as_there_can_be(times):
    assert undisturbed(raised(times)) == "all"


def test_a_list_fails_after_one_raise_more():
    with pytest.raises(TaintChanged):
        undisturbed(raised(5))
