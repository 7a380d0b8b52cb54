"""The blocks that an agent starts with: CreateAgent's initial_blocks, and the three that are there without."""

from __future__ import annotations

import pytest

from tests.support.answers import LEVELS, PUBLIC, events, invalid, refusal

DECOMPOSED, COMPOSED = "க\u0bc6\u0bbe", "க\u0bca"


@pytest.fixture
def blocks_of(session):
    """All blocks of an agent, as a session of it sees them at a level."""
    return lambda agent_id="alice", level=PUBLIC: list(
        session(level, agent_id=agent_id).list_blocks(page_size=250).blocks
    )


def labels(blocks):
    return [block.label for block in blocks]


@pytest.mark.parametrize("level", LEVELS)
def test_an_agent_starts_with_three_empty_public_blocks(host, blocks_of, level):
    host.create_agent(agent_id="alice")
    found = blocks_of(level=level)

    assert labels(found) == ["current_state", "personality", "relationships"]
    assert {(block.content, block.classification, block.shared, block.owner_agent_id) for block in found} == {
        ("", PUBLIC, False, "alice")
    }


def test_an_agent_starts_with_the_blocks_that_are_given_and_no_others(host, blocks_of):
    host.create_agent(agent_id="alice", initial_blocks=[{"label": "b", "content": "B"}, {"label": "a"}])

    assert [(block.label, block.content) for block in blocks_of()] == [("a", ""), ("b", "B")]


def test_first_blocks_are_made_when_the_agent_is(host, blocks_of):
    created = host.create_agent(agent_id="alice", initial_blocks=[{"label": "a"}]).agent
    (block,) = blocks_of()

    assert block.create_time == block.update_time == created.create_time


def test_a_first_block_is_a_block_like_any_other(host, session):
    host.create_agent(agent_id="alice", initial_blocks=[{"label": "a", "content": "one"}])
    alice = session(PUBLIC)
    etag = alice.get_block(label="a").block.etag

    assert alice.update_block(label="a", content="two", etag=etag).block.content == "two"
    alice.delete_block(label="a")
    assert refusal(alice.get_block, label="a") == "NOT_FOUND BLOCK_NOT_FOUND"


def test_at_most_64_blocks_are_accepted(host, blocks_of):
    given = [{"label": f"block{number:02}"} for number in range(65)]
    host.create_agent(agent_id="alice", initial_blocks=given[:64])

    assert labels(blocks_of()) == [block["label"] for block in given[:64]]
    assert invalid(host.create_agent, agent_id="bob", initial_blocks=given) == ["initial_blocks"]


@pytest.mark.parametrize("label", ["", "a b", ".a", "#a", "a\n", "😀", "\u0301a", "a" * 65, "a" * 1025, "a\0"])
def test_an_invalid_label_is_refused_and_named(host, label):
    given = [{"label": "fine"}, {"label": label}]

    assert invalid(host.create_agent, agent_id="alice", initial_blocks=given) == ["initial_blocks[1].label"]


@pytest.mark.parametrize(("one", "other"), [("a", "a"), (COMPOSED, DECOMPOSED)])
def test_a_label_that_is_there_twice_is_refused(host, one, other):
    """Also in two spellings."""
    given = [{"label": one, "content": "1"}, {"label": "b"}, {"label": other, "content": "1"}]

    assert invalid(host.create_agent, agent_id="alice", initial_blocks=given) == ["initial_blocks[2].label"]


def test_labels_that_differ_in_case_are_two(host, blocks_of):
    host.create_agent(agent_id="alice", initial_blocks=[{"label": "a"}, {"label": "A"}])

    assert labels(blocks_of()) == ["A", "a"]


@pytest.mark.parametrize("content", ["a\0b", "x" * 65537, "é" * 32769])
def test_an_invalid_content_is_refused_and_named(host, content):
    given = [{"label": "a"}, {"label": "b", "content": content}]

    assert invalid(host.create_agent, agent_id="alice", initial_blocks=given) == ["initial_blocks[1].content"]


def test_a_first_block_holds_64_kib_byte_for_byte(host, session):
    content = "é\r\n\u202e" + "x" * (65536 - 7)
    host.create_agent(agent_id="alice", initial_blocks=[{"label": "a", "content": content}])

    assert session(PUBLIC).get_block(label="a").block.content == content


def test_an_agent_that_is_refused_leaves_nothing(host, blocks_of):
    """Neither a block nor an event: the one that is made later under its id starts afresh."""
    assert invalid(host.create_agent, agent_id="alice", initial_blocks=[{"label": "a"}, {"label": "a"}])
    host.create_agent(agent_id="bob")

    assert refusal(host.get_agent, agent_id="alice") == "NOT_FOUND AGENT_NOT_FOUND"
    assert {event.agent_id for event in events(host)} == {"bob"}


def test_creating_an_agent_that_is_there_adds_no_blocks(host, blocks_of):
    host.create_agent(agent_id="alice", initial_blocks=[{"label": "a", "content": "1"}])
    before = blocks_of()

    assert (
        refusal(host.create_agent, agent_id="alice", initial_blocks=[{"label": "b"}]) == "ALREADY_EXISTS AGENT_EXISTS"
    )
    assert blocks_of() == before


def test_an_agent_made_again_under_one_id_starts_with_its_own_blocks(host, blocks_of):
    host.create_agent(agent_id="alice", initial_blocks=[{"label": "a", "content": "1"}])
    host.delete_agent(agent_id="alice")
    host.create_agent(agent_id="alice")

    assert labels(blocks_of()) == ["current_state", "personality", "relationships"]


def test_each_first_block_is_an_event_beside_that_of_the_agent(host):
    host.create_agent(agent_id="alice", initial_blocks=[{"label": "a"}, {"label": "b"}])
    found = events(host)

    assert sorted((event.kind, event.revision) for event in found) == [(0, 0), (3, 1), (3, 1)]
    assert {(event.method, event.classification, event.outcome) for event in found} == {("CreateAgent", PUBLIC, "OK")}
    assert len({event.item_id for event in found}) == 3
    assert len({event.host_key_id for event in found} - {""}) == 1


def test_each_first_block_is_in_the_ledger(service):
    service.host().create_agent(agent_id="alice", initial_blocks=[{"label": "a", "content": "1"}, {"label": "b"}])
    with service.database.as_owner() as owner:
        kept = owner.execute("SELECT name, content, revision FROM muniment_public.revision ORDER BY name").fetchall()

    assert kept == [("a", "1", 1), ("b", "", 1)]
