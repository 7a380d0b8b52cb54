"""What a session sends and gets of blocks, and how a host shares them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import grpc
import pytest

import muniment
from muniment import Classification, SessionClient
from muniment.v1 import block_service_pb2 as pb
from muniment.v1.classification_pb2 import CLASSIFICATION_CONFIDENTIAL, CLASSIFICATION_INTERNAL, CLASSIFICATION_PUBLIC
from tests.clients.python.scripted import error_info, status
from tests.support.examples import BLOCK

NOON = datetime.fromtimestamp(1_760_000_000, UTC)
PERSONALITY = muniment.Block(
    owner_agent_id="ada",
    label="personality",
    content="Dry humor, no jargon.",
    shared=False,
    classification=Classification.PUBLIC,
    etag="item-1",
    create_time=NOON,
    update_time=NOON,
)

WRITES: dict[str, tuple[Callable[[SessionClient], muniment.Block], pb.UpdateBlockRequest | pb.EditBlockRequest]] = {
    "update": (
        lambda session: session.update_block("personality", "dry", etag="item-1"),
        pb.UpdateBlockRequest(label="personality", content="dry", etag="item-1"),
    ),
    "append": (
        lambda session: session.append_to_block("personality", "dry", etag="item-1"),
        pb.EditBlockRequest(label="personality", append=pb.AppendEdit(content="dry"), etag="item-1"),
    ),
    "insert": (
        lambda session: session.insert_into_block("personality", 0, "dry", etag="item-1"),
        pb.EditBlockRequest(label="personality", insert=pb.InsertEdit(line=0, content="dry"), etag="item-1"),
    ),
    "replace": (
        lambda session: session.replace_in_block("personality", "dry", "", etag="item-1"),
        pb.EditBlockRequest(label="personality", replace=pb.ReplaceEdit(old="dry"), etag="item-1"),
    ),
}


def second_page_follows() -> pb.ListBlocksResponse:
    return pb.ListBlocksResponse(blocks=[BLOCK], next_page_token="second", classification=CLASSIFICATION_PUBLIC)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_is_sent_as_given(server, session, write):
    make, expected = WRITES[write]

    assert make(session) == PERSONALITY
    assert [expected] == [each.request for each in server.asked]


def test_a_block_is_what_was_sent(server, session):
    assert session.get_block("personality") == PERSONALITY
    assert session.get_block("personality", owner_agent_id="ada") == PERSONALITY
    assert [
        pb.GetBlockRequest(label="personality"),
        pb.GetBlockRequest(label="personality", owner_agent_id="ada"),
    ] == server.requests("GetBlock")


def test_blocks_come_from_all_pages(server, session):
    server.script("ListBlocks", second_page_follows())

    assert [block.label for block in session.list_blocks(page_size=1)] == ["personality", "personality"]
    assert [(each.page_size, each.page_token) for each in server.requests("ListBlocks")] == [(1, ""), (1, "second")]


def test_a_taint_raised_between_two_pages_raises_taint_changed(server, session):
    server.script("ListBlocks", second_page_follows(), status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED")))
    blocks = session.list_blocks()

    assert next(blocks) == PERSONALITY
    with pytest.raises(muniment.TaintChanged):
        next(blocks)


def test_a_page_carries_its_level(server, session):
    answer = second_page_follows()
    answer.classification = CLASSIFICATION_CONFIDENTIAL
    server.script("ListBlocks", answer)

    page = session.list_blocks_page(page_token="first")

    assert (page.classification, page.next_page_token, len(page)) == (Classification.CONFIDENTIAL, "second", 1)
    assert list(page) == [PERSONALITY]


def test_a_deletion_says_what_it_reveals(server, session):
    server.script("DeleteBlock", pb.DeleteBlockResponse(revealed=CLASSIFICATION_INTERNAL))

    assert session.delete_block("personality", etag="item-1") == Classification.INTERNAL
    assert session.delete_block("personality") is None
    assert [request.etag for request in server.requests("DeleteBlock")] == ["item-1", ""]


def test_a_host_shares_a_block(server, host):
    host.create_shared_block("ada", "plans", "none yet")
    host.attach_block("ada", "plans", "bob")
    host.detach_block("ada", "plans", "bob")
    host.delete_shared_block("ada", "plans")

    assert [
        pb.CreateSharedBlockRequest(owner_agent_id="ada", label="plans", content="none yet"),
        pb.AttachBlockRequest(owner_agent_id="ada", label="plans", agent_id="bob"),
        pb.DetachBlockRequest(owner_agent_id="ada", label="plans", agent_id="bob"),
        pb.DeleteSharedBlockRequest(owner_agent_id="ada", label="plans"),
    ] == [each.request for each in server.asked]


def test_consumers_come_from_all_pages(server, host):
    server.script("ListBlockConsumers", pb.ListBlockConsumersResponse(agent_ids=["abe"], next_page_token="second"))

    assert list(host.list_block_consumers("ada", "plans", page_size=1)) == ["abe", "bob", "cleo"]
    assert [
        pb.ListBlockConsumersRequest(owner_agent_id="ada", label="plans", page_size=1),
        pb.ListBlockConsumersRequest(owner_agent_id="ada", label="plans", page_size=1, page_token="second"),
    ] == server.requests("ListBlockConsumers")
