"""The taint of a conversation is raised in mid-way, over what ten agents keep."""

from __future__ import annotations

import time
import uuid

import pytest

from muniment import (
    Classification,
    ConversationTainted,
    ImportCounts,
    NewPassage,
    TaintChanged,
    Unauthenticated,
    WriteLevelMismatch,
)
from tests.calls.endtoend.answers import PAGE, everything, expected_everything
from tests.support.commands import wait_until

pytestmark = pytest.mark.proof

INTERNAL, CONFIDENTIAL = Classification.INTERNAL, Classification.CONFIDENTIAL


@pytest.fixture(params=[0, 1], ids=["shares a block", "reads it"])
def agent(world, request):
    """An agent of the first conversation."""
    return world.agents[request.param]


def sees(session, agent):
    return everything(session, agent.companion.agent_id)


def test_a_raise_changes_what_every_session_of_the_conversation_sees(world, agent):
    """To what the sessions at that level have seen all along, and no other conversation is touched."""
    agent_id, host = agent.companion.agent_id, world.host
    before, after = (expected_everything(agent.companion, taint) for taint in (INTERNAL, CONFIDENTIAL))
    first = host.open_session(agent_id, INTERNAL)
    second = host.open_session(agent_id, INTERNAL, conversation_id=first.session.conversation_id)
    prompt, page = first.render_prompt(), second.list_passages_page(page_size=PAGE)
    assert sees(first, agent) == sees(second, agent) == before

    host.raise_taint(first, CONFIDENTIAL, reason="the payroll is on the table")

    assert sees(first, agent) == sees(second, agent) == after
    assert sees(agent.sessions[INTERNAL], agent) == before
    assert first.render_prompt(if_none_match=prompt.etag) == agent.sessions[CONFIDENTIAL].render_prompt()
    assert second.get_session().taint is CONFIDENTIAL
    with pytest.raises(TaintChanged):
        second.list_passages_page(page_size=PAGE, page_token=page.next_page_token)
    with pytest.raises(ConversationTainted):
        host.open_session(agent_id, INTERNAL, conversation_id=first.session.conversation_id)


def test_what_a_raised_session_writes_stays_above(world, agent):
    """And what it wrote before is out of its reach."""
    session = world.host.open_session(agent.companion.agent_id, INTERNAL)
    written = session.store_passage("Before the raise.")
    world.host.raise_taint(session, CONFIDENTIAL)

    block = session.update_block("current_state", "Has seen the payroll.")
    with pytest.raises(WriteLevelMismatch):
        session.delete_passage(written.passage_id)

    assert block.classification is CONFIDENTIAL
    assert "payroll" in agent.sessions[CONFIDENTIAL].render_prompt().text
    assert "payroll" not in agent.sessions[INTERNAL].render_prompt().text
    put_back(agent)
    assert agent.sessions[INTERNAL].delete_passage(written.passage_id) is None
    assert sees(session, agent) == expected_everything(agent.companion, CONFIDENTIAL)


def put_back(agent):
    """The block at CONFIDENTIAL, as the model has it."""
    content = agent.companion.blocks["current_state"].get(CONFIDENTIAL)
    if content is None:
        agent.sessions[CONFIDENTIAL].delete_block("current_state")
    else:
        agent.sessions[CONFIDENTIAL].update_block("current_state", content)


def test_a_reset_begins_again_at_public(world, agent):
    raised = world.host.open_session(agent.companion.agent_id, INTERNAL)
    world.host.raise_taint(raised, CONFIDENTIAL)

    session = world.host.reset_session(raised, reason="the context is wiped")

    assert session.session.conversation_id == raised.session.conversation_id
    assert sees(session, agent) == expected_everything(agent.companion, Classification.PUBLIC)
    with pytest.raises(Unauthenticated):
        raised.render_prompt()


def test_an_import_that_is_overtaken_by_a_raise_says_how_far_it_came(world):
    """What was stored stays below, and the rest is stored above when the import is made again."""
    turns = world.agents[0].companion.talk.turns
    passages = [
        NewPassage(turn.text, event_time=turn.time, passage_id=str(uuid.uuid5(uuid.NAMESPACE_URL, turn.turn_id)))
        for turn in turns
    ]
    agent_id = world.host.create_agent().agent_id
    session, witness = (world.host.open_session(agent_id, INTERNAL) for _ in range(2))

    with pytest.raises(TaintChanged) as overtaken:
        session.import_passages(raised_on_the_way(world.host, session, witness, passages))

    assert overtaken.value.progress is not None
    stored = overtaken.value.progress.stored_count
    assert 0 < stored <= len(passages) // 2
    assert oldest_first(witness) == [(one.passage_id, INTERNAL) for one in passages[:stored]]
    assert session.import_passages(passages) == ImportCounts(len(passages) - stored, stored)
    assert oldest_first(session) == [
        (one.passage_id, INTERNAL if number < stored else CONFIDENTIAL) for number, one in enumerate(passages)
    ]
    assert len(oldest_first(witness)) == stored


def raised_on_the_way(host, session, witness, passages):
    """*passages*, and in the middle of them a raise, as soon as the first are stored."""
    half = len(passages) // 2
    yield from passages[:half]
    wait_until(lambda: len(witness.list_passages_page(page_size=1)), "nothing of the first half is stored")
    host.raise_taint(session, CONFIDENTIAL)
    yield from passages[half:]


def oldest_first(session):
    listed = list(session.list_passages(page_size=250))
    return [(passage.passage_id, passage.classification) for passage in reversed(listed)]


def test_nothing_was_left_out(world, capsys):
    """The last test of these agents: it also prints what was stored and found, and how long it took."""
    took = time.monotonic() - world.begun
    with capsys.disabled():
        print("", *(f"{count:9,} {what}" for what, count in world.counted.items()), sep="\n")
        print(f"{world.seconds_to_load:.1f} s to start and load, {took:.1f} s in all")
    assert all(world.counted.values())
