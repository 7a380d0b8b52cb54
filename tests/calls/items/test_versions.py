"""ListVersions: what a session sees of one item at each level."""

from __future__ import annotations

from muniment_server.domain.classification import Classification
from tests.support.services import failure_of

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
MEMORY, NOTE, BLOCK, PASSAGE = 1, 2, 3, 4
ID = "5d0c4a0e-4f52-4d7b-9a53-6c2f6f6f2d10"


def test_the_versions_of_all_visible_levels_come_newest_first(at):
    for level in (RESTRICTED, CONFIDENTIAL, PUBLIC):
        at(level).save_memory(key="phone", content=level.name)

    found = at(CONFIDENTIAL).list_versions(kind=MEMORY, name="phone")

    assert [version.content for version in found.versions] == ["PUBLIC", "CONFIDENTIAL"]
    assert found.classification == CONFIDENTIAL


def test_every_kind_has_versions(at):
    for level in (CONFIDENTIAL, PUBLIC):
        at(level).save_memory(key="plan", content=level.name)
        at(level).add_note(note_id=ID, content=level.name)
        at(level).update_block(label="plan", content=level.name)
        at(level).store_passage(passage_id=ID, content=level.name)

    names = ((MEMORY, "plan"), (NOTE, ID), (BLOCK, "plan"), (PASSAGE, ID))
    found = [at(CONFIDENTIAL).list_versions(kind=kind, name=name).versions for kind, name in names]

    assert [[version.content for version in each] for each in found] == [["PUBLIC", "CONFIDENTIAL"]] * 4


def test_c28_versions_above_look_like_none(at):
    at(CONFIDENTIAL).save_memory(key="phone", content="1")

    hidden = failure_of(at(PUBLIC).list_versions, kind=MEMORY, name="phone")
    absent = failure_of(at(PUBLIC).list_versions, kind=MEMORY, name="none")

    assert hidden == absent


def test_its_etag_is_that_of_the_version(at):
    at(PUBLIC).save_memory(key="phone", content="1")
    (version,) = at(PUBLIC).list_versions(kind=MEMORY, name="phone").versions

    assert version.etag == at(PUBLIC).get_memory(key="phone").memory.etag


def test_the_own_block_comes_before_a_shared_one(at, host, session):
    at(PUBLIC)
    host.create_agent(agent_id="bob")
    host.create_shared_block(owner_agent_id="bob", label="style", content="of bob")
    host.attach_block(owner_agent_id="bob", label="style", agent_id="alice")
    session(INTERNAL, agent_id="bob").update_block(label="style", content="of bob, internally")

    def listed(**owner: str) -> list[str]:
        found = at(INTERNAL).list_versions(kind=BLOCK, name="style", **owner)
        return [version.content for version in found.versions]

    shared = listed()
    at(PUBLIC).update_block(label="style", content="of alice")

    assert shared == listed(owner_agent_id="bob") == ["of bob, internally", "of bob"]
    assert listed() == listed(owner_agent_id="alice") == ["of alice"]


def test_what_was_deleted_or_replaced_is_no_version(at):
    for content in ("1", "2"):
        at(PUBLIC).save_memory(key="phone", content=content)
    at(INTERNAL).save_memory(key="phone", content="3")
    at(INTERNAL).delete_memory(key="phone")

    (version,) = at(INTERNAL).list_versions(kind=MEMORY, name="phone").versions

    assert version.content == "2"
