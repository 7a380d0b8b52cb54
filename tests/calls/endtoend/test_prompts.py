"""Blocks and prompts of ten agents at four levels; of each two, the second reads a block of the first."""

from __future__ import annotations

from collections import Counter

import pytest

from muniment import Classification, PromptSectionKind, Tier
from tests.calls.endtoend.answers import as_seen_block, assert_joined
from tests.calls.endtoend.companions import SHARED
from tests.calls.endtoend.locomo import highest
from tests.calls.endtoend.noteset import SEPARATOR
from tests.support import prompt_parser

pytestmark = pytest.mark.proof

KINDS = {Tier.MEMORY: PromptSectionKind.MEMORY, Tier.USER: PromptSectionKind.USER_PROFILE}
HEADINGS = {Tier.MEMORY: prompt_parser.MEMORY, Tier.USER: prompt_parser.USER_PROFILE}


def test_a_shared_block_is_seen_as_far_as_its_reader_may_see(world):
    """Listed by label with the own ones, and got with and without its owner."""

    def look(companion, taint, session):
        page = session.list_blocks_page()
        assert [as_seen_block(block) for block in page] == companion.seen_blocks(taint)
        assert_joined([page])
        for block in page:
            assert session.get_block(block.label) == block
            assert session.get_block(block.label, owner_agent_id=block.owner_agent_id) == block
        return {"blocks listed and got": len(page)}

    world.look(look)
    for first, second in zip(world.agents[::2], world.agents[1::2], strict=True):
        consumers = world.host.list_block_consumers(first.companion.agent_id, SHARED)
        assert list(consumers) == [second.companion.agent_id]


def test_prompts_are_what_the_model_renders_and_read_back_as_what_they_were_made_of(world):
    def look(companion, taint, session):
        prompt = session.render_prompt()
        blocks = companion.seen_blocks(taint)
        tiers = {tier: notes for tier in Tier if (notes := companion.notes.seen(tier, taint))}
        assert prompt.text == companion.prompt(taint)
        assert_reads_back(prompt, blocks, tiers)
        assert prompt.usage == tuple(companion.notes.usage(tier, taint) for tier in Tier)
        assert prompt.classification == highest(
            [*(block.level for block in blocks), *(note.level for notes in tiers.values() for note in notes)]
        )
        assert [as_section(section) for section in prompt.sections] == sections_from(blocks, tiers)
        return {"prompts": 1, "code points in prompts": len(prompt.text)}

    world.look(look)


def assert_reads_back(prompt, blocks, tiers):
    parsed = prompt_parser.parse(prompt.text)
    assert parsed.blocks == [(block.label, block.content) for block in blocks]
    assert list(parsed.tiers) == [HEADINGS[tier] for tier in tiers]
    usages = {usage.tier: usage for usage in prompt.usage}
    for tier, notes in tiers.items():
        read, usage = parsed.tiers[HEADINGS[tier]], usages[tier]
        assert read.notes == [note.content for note in notes]
        assert read.usage == (usage.percent, usage.used_chars, usage.limit_chars)
        assert usage.used_chars == len(SEPARATOR.join(read.notes))


def as_section(section):
    return section.kind, section.label, section.owner_agent_id, section.note_ids, section.classification


def sections_from(blocks, tiers):
    of_blocks = [(PromptSectionKind.BLOCK, block.label, block.owner_agent_id, (), block.level) for block in blocks]
    of_tiers = [
        (KINDS[tier], None, None, tuple(note.note_id for note in notes), highest(note.level for note in notes))
        for tier, notes in tiers.items()
    ]
    return of_blocks + of_tiers


def test_a_prompt_that_has_not_changed_is_not_sent_again(world):
    """Only the same text has the same etag: not that of another level or agent, nor that without usage."""
    etags = Counter[str]()

    def look(companion, taint, session):
        prompt, bare = session.render_prompt(), session.render_prompt(omit_usage=True)
        assert bare.text == companion.prompt(taint, omit_usage=True)
        again = session.render_prompt(if_none_match=prompt.etag)
        assert (again.not_modified, again.text, again.sections, again.etag) == (True, "", (), prompt.etag)
        assert (again.usage, again.classification) == (prompt.usage, prompt.classification)
        assert session.render_prompt(if_none_match=bare.etag) == prompt
        etags.update([prompt.etag, bare.etag])
        return {"prompts": 4}

    world.look(look)
    companions = [agent.companion for agent in world.agents]
    assert len(etags) == len(
        {one.prompt(taint, omit_usage=omit) for one in companions for taint in Classification for omit in (False, True)}
    )
