"""Answers say when a version below the one that they show is newer."""

from __future__ import annotations

from typing import Any

from muniment_server.domain.classification import Classification

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
NOTE = "5d0c4a0e-4f52-4d7b-9a53-6c2f6f6f2d10"


def newer_levels(*items: Any) -> list[int]:
    """The level of the newer version that each item tells of, or 0."""
    return [item.newer_below.classification for item in items]


def test_a_correction_below_is_shown_by_get_list_and_search(at):
    at(CONFIDENTIAL).save_memory(key="phone", content="1, and private")
    corrected = at(PUBLIC).save_memory(key="phone", content="2").memory

    found = at(RESTRICTED).get_memory(key="phone").memory
    listed = at(CONFIDENTIAL).list_memories().memories
    (match,) = at(CONFIDENTIAL).search_memories(query="phone").results

    assert found.content == "1, and private"
    assert found.newer_below.update_time == corrected.update_time
    assert newer_levels(found, *listed, match.memory) == [PUBLIC] * 3


def test_an_older_version_below_is_not_mentioned(at):
    at(PUBLIC).save_memory(key="phone", content="1")
    at(CONFIDENTIAL).save_memory(key="phone", content="2")

    assert not at(CONFIDENTIAL).get_memory(key="phone").memory.HasField("newer_below")


def test_c28_a_newer_version_above_is_not_mentioned(at):
    at(PUBLIC).save_memory(key="phone", content="1")
    at(CONFIDENTIAL).save_memory(key="phone", content="2")

    assert not at(PUBLIC).get_memory(key="phone").memory.HasField("newer_below")
    assert not at(INTERNAL).get_memory(key="phone").memory.HasField("newer_below")


def test_c28_a_newer_version_above_does_not_hide_one_below(at):
    at(INTERNAL).save_memory(key="phone", content="1")
    at(PUBLIC).save_memory(key="phone", content="2")
    before = at(INTERNAL).get_memory(key="phone")
    at(CONFIDENTIAL).save_memory(key="phone", content="3")

    assert at(INTERNAL).get_memory(key="phone") == before
    assert newer_levels(before.memory) == [PUBLIC]


def test_of_several_newer_versions_the_newest_is_mentioned(at):
    at(RESTRICTED).save_memory(key="phone", content="1")
    at(CONFIDENTIAL).save_memory(key="phone", content="2")
    newest = at(PUBLIC).save_memory(key="phone", content="3").memory

    mentioned = at(RESTRICTED).get_memory(key="phone").memory.newer_below

    assert (mentioned.classification, mentioned.update_time) == (PUBLIC, newest.update_time)


def test_a_deleted_correction_is_no_longer_mentioned(at):
    at(CONFIDENTIAL).save_memory(key="phone", content="1")
    at(PUBLIC).save_memory(key="phone", content="2")
    at(PUBLIC).delete_memory(key="phone")

    assert not at(CONFIDENTIAL).get_memory(key="phone").memory.HasField("newer_below")


def test_what_is_written_anew_is_the_newest(at):
    at(CONFIDENTIAL).save_memory(key="phone", content="1")
    at(PUBLIC).save_memory(key="phone", content="2")

    at(CONFIDENTIAL).save_memory(key="phone", content="2, and private")

    assert newer_levels(at(CONFIDENTIAL).get_memory(key="phone").memory) == [0]


def test_answers_to_writes_leave_it_out(at):
    """Such as those to writes that change nothing."""
    for level, text in ((CONFIDENTIAL, "first"), (PUBLIC, "second")):
        at(level).save_memory(key="phone", content=text)
        at(level).add_note(content=text, note_id=NOTE)
        at(level).update_block(label="style", content=text)
        at(level).store_passage(content=text, passage_id=NOTE)
    high = at(CONFIDENTIAL)

    memory = high.save_memory(key="phone", content="first").memory
    note = high.add_note(content="first", note_id=NOTE).note
    block = high.update_block(label="style", content="first").block
    passage = high.store_passage(content="first", passage_id=NOTE).passage

    assert newer_levels(memory, note, block, passage) == [0] * 4


def test_notes_tell_in_lists_searches_edits_and_prompts(at):
    at(CONFIDENTIAL).add_note(content="runs at six", note_id=NOTE)
    at(PUBLIC).add_note(content="runs at seven", note_id=NOTE)
    high = at(CONFIDENTIAL)

    (listed,) = high.list_notes().notes
    (match,) = high.search_notes(query="runs").results
    (section,) = high.render_prompt(sections=[2]).sections

    assert newer_levels(listed, match.note, section) == [PUBLIC] * 3


def test_blocks_tell_in_get_list_and_prompts(at):
    at(CONFIDENTIAL).update_block(label="style", content="dry")
    at(PUBLIC).update_block(label="style", content="warm")
    high = at(CONFIDENTIAL)

    found = high.get_block(label="style").block
    listed = [block for block in high.list_blocks().blocks if block.label == "style"]
    sections = [section for section in high.render_prompt(sections=[1]).sections if section.label == "style"]

    assert newer_levels(found, *listed, *sections) == [PUBLIC] * 3


def test_a_shared_block_tells_of_its_owners_versions_only(at, host, session):
    at(CONFIDENTIAL)
    host.create_agent(agent_id="bob")
    host.create_shared_block(owner_agent_id="bob", label="style", content="of bob")
    host.attach_block(owner_agent_id="bob", label="style", agent_id="alice")
    session(INTERNAL, agent_id="bob").update_block(label="style", content="of bob, internally")
    at(PUBLIC).update_block(label="style", content="of alice")

    def of_bob() -> Any:
        return at(CONFIDENTIAL).get_block(label="style", owner_agent_id="bob").block

    before = of_bob()
    session(PUBLIC, agent_id="bob").update_block(label="style", content="of bob, corrected")

    assert before.content == "of bob, internally"
    assert newer_levels(before, of_bob()) == [0, PUBLIC]


def test_passages_with_one_id_tell_in_get_list_and_search(at):
    at(CONFIDENTIAL).store_passage(content="booked the sleeper", passage_id=NOTE)
    at(PUBLIC).store_passage(content="canceled the sleeper", passage_id=NOTE)
    high = at(CONFIDENTIAL)

    found = high.get_passage(passage_id=NOTE).passage
    (listed,) = high.list_passages().passages
    (match,) = high.search_passages(query="sleeper").results

    assert newer_levels(found, listed, match.passage) == [PUBLIC] * 3
