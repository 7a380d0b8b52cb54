"""ListVersions with_revisions: what the versions that a session sees have replaced, in pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muniment_server.domain.classification import Classification
from muniment_server.items.paging import version_of
from tests.support.answers import in_future, refusal
from tests.support.services import Caller, failure_of

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
MEMORY, NOTE, BLOCK, PASSAGE = 1, 2, 3, 4
_INVALID_TOKEN = "INVALID_ARGUMENT PAGE_TOKEN_INVALID"
ID = "5d0c4a0e-4f52-4d7b-9a53-6c2f6f6f2d10"


def pages(session: Caller, page_size: int = 0, **what: Any) -> Iterator[Any]:
    """Every page of the versions of an item, with revisions."""
    token = ""
    while True:
        page = session.list_versions(with_revisions=True, page_size=page_size, page_token=token, **what)
        yield page
        if not (token := page.next_page_token):
            return


def listed(session: Caller, page_size: int = 0, **what: Any) -> list[str]:
    """The contents, with an asterisk if they are live."""
    found = [version for page in pages(session, page_size, **what) for version in page.versions]
    return [version.content + "*" * (not version.replaced) for version in found]


def phone(session: Caller, page_size: int = 0) -> list[str]:
    return listed(session, page_size, kind=MEMORY, name="phone")


def write(at: Any, *contents: tuple[Classification, str]) -> None:
    for level, content in contents:
        at(level).save_memory(key="phone", content=content)


def erase(host: Caller, etag: str) -> None:
    """Erase the revision of an etag."""
    version = version_of(etag)
    assert version is not None
    host.erase_items(agent_id="alice", kind=MEMORY, item_id=str(version.item_id), revision=version.revision)


def test_what_each_version_has_replaced_comes_newest_first(at):
    write(at, (PUBLIC, "1"), (CONFIDENTIAL, "2"), (PUBLIC, "3"), (CONFIDENTIAL, "4"), (PUBLIC, "5"))

    found = at(CONFIDENTIAL).list_versions(kind=MEMORY, name="phone", with_revisions=True)

    assert [(version.content, version.classification, version.replaced) for version in found.versions] == [
        ("5", PUBLIC, False),
        ("4", CONFIDENTIAL, False),
        ("3", PUBLIC, True),
        ("2", CONFIDENTIAL, True),
        ("1", PUBLIC, True),
    ]
    assert found.classification == CONFIDENTIAL
    assert found.next_page_token == ""


def test_without_revisions_only_live_versions_are_listed(at):
    write(at, (PUBLIC, "1"), (PUBLIC, "2"))

    (version,) = at(PUBLIC).list_versions(kind=MEMORY, name="phone").versions

    assert (version.content, version.replaced) == ("2", False)


def test_c28_revisions_above_look_like_none(at):
    write(at, (PUBLIC, "1"), (INTERNAL, "2"), (INTERNAL, "3"), (PUBLIC, "4"))
    seen = phone(at(PUBLIC))
    at(CONFIDENTIAL).save_memory(key="other", content="1")
    at(CONFIDENTIAL).save_memory(key="other", content="2")

    hidden = failure_of(at(PUBLIC).list_versions, kind=MEMORY, name="other", with_revisions=True)
    absent = failure_of(at(PUBLIC).list_versions, kind=MEMORY, name="none", with_revisions=True)

    assert seen == ["4*", "1"]
    assert hidden == absent


def test_all_kinds_but_passages_have_revisions(at):
    session = at(PUBLIC)
    for content in ("1", "2"):
        session.save_memory(key="plan", content=content)
        session.update_block(label="plan", content=content)
    session.add_note(note_id=ID, content="1")
    session.update_note(note_id=ID, content="2")
    session.store_passage(passage_id=ID, content="1")

    assert listed(session, kind=MEMORY, name="plan") == ["2*", "1"]
    assert listed(session, kind=BLOCK, name="plan") == ["2*", "1"]
    assert listed(session, kind=NOTE, name=ID) == ["2*", "1"]
    assert listed(session, kind=PASSAGE, name=ID) == ["1*"]


def test_the_revisions_of_another_agent_are_not_listed(at, session):
    for content in ("1", "2"):
        session(PUBLIC, agent_id="bob").save_memory(key="phone", content=content)
    write(at, (PUBLIC, "3"))

    assert phone(at(RESTRICTED)) == ["3*"]


def test_a_shared_block_shows_no_revisions(at, host, session):
    at(PUBLIC)
    host.create_agent(agent_id="bob")
    bob = session(PUBLIC, agent_id="bob")
    bob.update_block(label="style", content="a secret, written by mistake")
    bob.update_block(label="style", content="2")
    host.create_shared_block(owner_agent_id="bob", label="style")
    host.attach_block(owner_agent_id="bob", label="style", agent_id="alice")
    bob.update_block(label="style", content="3")

    assert listed(at(PUBLIC), kind=BLOCK, name="style") == ["3*"]
    assert listed(bob, kind=BLOCK, name="style") == ["3*", "2", "a secret, written by mistake"]


def test_deleted_versions_and_their_revisions_are_not_listed(at):
    write(at, (PUBLIC, "1"), (PUBLIC, "2"), (INTERNAL, "3"), (INTERNAL, "4"))
    at(INTERNAL).delete_memory(key="phone")
    deleted = phone(at(INTERNAL))
    write(at, (INTERNAL, "5"))

    assert deleted == ["2*", "1"]
    assert phone(at(INTERNAL)) == ["5*", "2*", "1"]


def test_what_is_undeleted_has_its_revisions_again(at, host):
    write(at, (PUBLIC, "1"), (PUBLIC, "2"))
    at(PUBLIC).delete_memory(key="phone")
    host.undelete_item(agent_id="alice", kind=MEMORY, name="phone", classification=PUBLIC)

    assert phone(at(PUBLIC)) == ["2*", "2", "1"]


def test_erased_revisions_are_gone(at, host):
    write(at, (PUBLIC, "1"), (PUBLIC, "a secret"), (PUBLIC, "3"))
    _, erased, _ = at(PUBLIC).list_versions(kind=MEMORY, name="phone", with_revisions=True).versions
    erase(host, erased.etag)

    assert phone(at(PUBLIC)) == ["3*", "1"]


def test_if_the_live_revision_is_erased_no_older_one_is_shown(at, host):
    write(at, (PUBLIC, "1"), (PUBLIC, "a secret"))
    erase(host, at(PUBLIC).get_memory(key="phone").memory.etag)

    failed = failure_of(at(PUBLIC).list_versions, kind=MEMORY, name="phone", with_revisions=True)
    assert failed == failure_of(at(PUBLIC).list_versions, kind=MEMORY, name="none", with_revisions=True)


def test_expired_revisions_are_gone(service, clock):
    session = service.session(PUBLIC)
    session.save_memory(key="phone", content="1")
    session.save_memory(key="phone", content="2", expire_time=in_future(hours=1))
    session.save_memory(key="phone", content="3")
    before = phone(session)

    clock.advance(hours=2)

    assert (before, phone(session)) == (["3*", "2", "1"], ["3*", "1"])


def test_a_renamed_memory_keeps_its_revisions(at):
    write(at, (PUBLIC, "1"), (PUBLIC, "2"))
    at(PUBLIC).rename_memory(key="phone", new_key="mobile")

    assert listed(at(PUBLIC), kind=MEMORY, name="mobile") == ["2*", "2", "1"]


def test_pages_are_cut_anywhere_and_lose_nothing(at):
    contents = [(level, f"{number} of {level.name}") for number in range(4) for level in Classification]
    write(at, *contents)
    whole = phone(at(RESTRICTED))

    assert len(whole) == 16
    assert [phone(at(RESTRICTED), size) for size in range(1, 17)] == [whole] * 16


def test_a_list_goes_on_where_it_was_while_others_write(at):
    write(at, (PUBLIC, "1"), (INTERNAL, "2"), (PUBLIC, "3"), (INTERNAL, "4"))
    session = at(INTERNAL)
    walk = pages(session, 1, kind=MEMORY, name="phone")
    (first,) = next(walk).versions
    write(at, (INTERNAL, "5"), (PUBLIC, "6"))
    (second,) = next(walk).versions
    session.delete_memory(key="phone")
    rest = [version.content for page in walk for version in page.versions]

    assert [first.content, second.content, *rest] == ["4", "6", "3", "1"]


def test_no_revision_is_left_out_if_clocks_went_back(service, clock):
    sessions = {level: service.session(level) for level in (PUBLIC, INTERNAL)}
    at = sessions.__getitem__
    for content in range(6):
        write(at, (PUBLIC, f"{content}"))
        clock.advance(seconds=-7)
    write(at, (INTERNAL, "6"))
    whole = phone(at(INTERNAL))

    assert sorted(whole) == ["0", "1", "2", "3", "4", "5*", "6*"]
    assert [each for each in whole if each != "6*"] == ["5*", "4", "3", "2", "1", "0"]
    assert [phone(at(INTERNAL), size) for size in (1, 2, 3)] == [whole] * 3


def test_a_page_ends_before_it_is_too_large_for_a_message(at):
    for number in range(40):
        at(PUBLIC).save_memory(key="phone", content=f"{number}".ljust(128 * 1024, "."))

    found = list(pages(at(PUBLIC), 250, kind=MEMORY, name="phone"))

    numbers = [int(version.content.rstrip(".")) for page in found for version in page.versions]
    assert numbers == [*reversed(range(40))]
    assert len(found) == 2


def test_a_token_serves_only_its_own_list(at):
    write(at, (PUBLIC, "1"), (PUBLIC, "2"))
    token = at(PUBLIC).list_versions(kind=MEMORY, name="phone", with_revisions=True, page_size=1).next_page_token

    assert refusal(at(PUBLIC).list_versions, kind=MEMORY, name="phone", page_token=token) == _INVALID_TOKEN
