"""The release desk: what a key sees of a release before it approves."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from muniment_server.domain.classification import Classification, Label
from tests.support.answers import refusal
from tests.support.releases import (
    BLOCK,
    MEMORY,
    NOT_FOUND,
    NOTE,
    PASSAGE,
    TEXT,
    TRUSTED,
    UNTRUSTED,
    approval,
    approved,
    digest,
    events,
    requested,
)


def test_who_approves_sees_what_will_be_written(plan, key):
    asks, approves = key(), key()
    release = requested(asks, reason="seen by Ann")
    found = approves.get_release(release_id=release.release_id)

    assert (found.text.name, found.text.content, found.text.tags) == ("plan", TEXT, ["trip"])
    assert (found.release.reason, found.release.content_sha256) == ("seen by Ann", digest(TEXT))
    approved(approves, release)
    assert not approves.get_release(release_id=release.release_id).HasField("text")


@pytest.mark.parametrize("kind", [MEMORY, NOTE, PASSAGE])
def test_who_approves_sees_all_that_is_stored_with_the_text(at, key, kind):
    """A tier decides in which section of a prompt a note stands; times, when an item is found and until when."""
    session, later = at(UNTRUSTED), {"seconds": 4_000_000_000}
    if kind == MEMORY:
        name = session.save_memory(key="plan", content=TEXT, expire_time=later).memory.key
    elif kind == NOTE:
        name = session.add_note(content=TEXT, tier=2).note.note_id
    else:
        times = {"event_time": {"seconds": 9}, "expire_time": later}
        name = session.store_passage(content=TEXT, **times).passage.passage_id
    text = key().get_release(release_id=requested(key(), kind=kind, name=name).release_id).text

    assert (text.tier, text.event_time.seconds, text.expire_time.seconds) == {
        MEMORY: (0, 0, 4_000_000_000),
        NOTE: (2, 0, 0),
        PASSAGE: (0, 9, 4_000_000_000),
    }[kind]


def saved(session: Any, kind: int, content: str, name: str = "plan") -> str:
    """Save an item; return its name."""
    if kind == MEMORY:
        session.save_memory(key=name, content=content)
    elif kind == BLOCK:
        session.update_block(label=name, content=content)
    else:
        note_id = str(uuid.uuid4()) if name == "plan" else name
        return str(session.add_note(content=content, note_id=note_id).note.note_id)
    return name


@pytest.mark.parametrize("kind", [MEMORY, NOTE, BLOCK])
@pytest.mark.parametrize("replaced", [Label.INTERNAL, Label.INTERNAL_TRUSTED, Label.PUBLIC])
def test_who_approves_sees_what_is_overwritten_or_shadowed(at, key, kind, replaced):
    target = Label.INTERNAL
    name = saved(at(Label.RESTRICTED), kind, TEXT)
    saved(at(replaced), kind, "Monday", name)
    asks, approves = key(), key()
    found = approves.get_release(release_id=requested(asks, Label.RESTRICTED, target, kind=kind, name=name).release_id)

    assert (found.replaced.text.name, found.replaced.text.content) == (name, "Monday")
    assert (found.replaced.classification, found.replaced.integrity) == (replaced.level, replaced.integrity)
    approved(approves, found.release)
    assert not approves.get_release(release_id=found.release.release_id).HasField("replaced")


@pytest.mark.parametrize("what", ["nothing", "another name", "above", "deleted"])
def test_what_is_not_seen_at_the_target_is_not_replaced(plan, at, key, what):
    target = at(TRUSTED)
    match what:
        case "another name":
            target.save_memory(key="rules", content="Monday")
        case "above":
            at(Label.INTERNAL_TRUSTED).save_memory(key="plan", content="Monday")
        case "deleted":
            target.save_memory(key="plan", content="Monday")
            target.delete_memory(key="plan")
    found = key().get_release(release_id=requested(key()).release_id)

    assert (found.HasField("text"), found.HasField("replaced")) == (True, False)


def test_a_passage_replaces_none(at, key):
    passage_id = str(uuid.uuid4())
    at(UNTRUSTED).store_passage(passage_id=passage_id, content=TEXT)
    at(TRUSTED).store_passage(passage_id=passage_id, content="another")
    found = key().get_release(release_id=requested(key(), kind=PASSAGE, name=passage_id).release_id)

    assert (found.HasField("text"), found.HasField("replaced")) == (True, False)


def test_a_look_at_what_is_replaced_is_audited_at_its_level(at, key):
    at(Label.RESTRICTED).save_memory(key="plan", content=TEXT)
    at(Label.CONFIDENTIAL).save_memory(key="plan", content="Monday")
    approves = key()
    release = requested(key(), Label.RESTRICTED, Label.CONFIDENTIAL)
    approves.get_release(release_id=release.release_id)

    read = [event for event in events(approves, "GetRelease") if not event.host_key_id]
    assert [event.classification for event in read] == [Classification.RESTRICTED, Classification.CONFIDENTIAL]
    assert read[0].item_id == release.item_id
    assert read[1].item_id not in {"", release.item_id}


@pytest.mark.parametrize("rights", [(), ("declassify",)])
def test_texts_are_shown_to_keys_with_the_rights_alone(plan, at, key, rights):
    """Other keys see what the audit log says, too: who asks for what, and who approves."""
    at(TRUSTED).save_memory(key="plan", content="Monday")
    release, other = requested(key()), key(rights=rights)
    found = other.get_release(release_id=release.release_id)

    assert found.release == release
    assert (found.HasField("text"), found.HasField("replaced")) == (False, False)
    assert list(other.list_releases().releases) == [release]
    assert events(other, "GetRelease") == []


def test_who_asks_sees_its_own_release_even_without_its_right(shared, plan, at, key):
    asks = key("endorse")
    release = requested(asks)
    with shared.database.as_owner() as owner:
        owner.execute(
            "UPDATE vault.host_key SET may_endorse = FALSE WHERE host_key_id = %s", [release.requester_host_key_id]
        )

    assert asks.get_release(release_id=release.release_id).text.content == TEXT


def test_the_list_is_newest_first_and_comes_in_pages(plan, key):
    host = key()
    made = [requested(host).release_id for _ in range(3)]
    host.reject_release(release_id=made[1])

    assert [one.release_id for one in host.list_releases().releases] == [made[2], made[0]]
    first = host.list_releases(agent_id="alice", include_closed=True, page_size=2)
    rest = host.list_releases(agent_id="alice", include_closed=True, page_size=2, page_token=first.next_page_token)
    assert [one.release_id for page in (first, rest) for one in page.releases] == made[::-1]
    assert rest.next_page_token == ""
    assert host.list_releases(agent_id="bob").releases == []


def test_a_deleted_agent_has_no_releases(plan, host, key):
    release = requested(key())
    host.delete_agent(agent_id="alice")

    assert refusal(key().approve_release, **approval(release)) == NOT_FOUND
    assert host.list_releases(include_closed=True).releases == []
