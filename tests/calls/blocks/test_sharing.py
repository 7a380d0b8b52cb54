"""Sharing: what hosts declare and attach, and what consumers see of it."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from muniment_server.transport.admission.pools import Limits
from tests.support.answers import (
    CONFIDENTIAL,
    INTERNAL,
    LEVELS,
    PAIRS,
    PUBLIC,
    RESTRICTED,
    UP,
    events,
    invalid,
    pages,
    refusal,
)
from tests.support.concurrency import lock_rows, waiting
from tests.support.services import failure_of, serving

GONE = "NOT_FOUND BLOCK_NOT_FOUND"
NOT_SHARED = "NOT_FOUND SHARED_BLOCK_NOT_FOUND"
NOT_ATTACHED = "NOT_FOUND BLOCK_NOT_ATTACHED"
NO_AGENT = "NOT_FOUND AGENT_NOT_FOUND"
EXISTS = "ALREADY_EXISTS BLOCK_EXISTS"
PLAN = {"owner_agent_id": "owner", "label": "plan"}
FOR_HOSTS: dict[str, dict[str, Any]] = {
    "create_shared_block": PLAN,
    "delete_shared_block": PLAN,
    "attach_block": {**PLAN, "agent_id": "reader"},
    "detach_block": {**PLAN, "agent_id": "reader"},
    "list_block_consumers": PLAN,
}
FOR_SESSIONS: dict[str, dict[str, Any]] = {
    "list_blocks": {},
    "get_block": {"label": "plan"},
    "update_block": {"label": "plan"},
    "edit_block": {"label": "plan", "append": {"content": "x"}},
    "delete_block": {"label": "plan"},
}


@pytest.fixture(autouse=True)
def agents(host):
    """An owner without the block `plan`, and two that may read it. Each has one block of its own, `z`."""
    for agent_id in ("owner", "reader", "other"):
        host.create_agent(agent_id=agent_id, initial_blocks=[{"label": "z"}])


@pytest.fixture
def owner(session):
    """A session of the owner at a level: the same one each time."""
    opened = {level: session(level, agent_id="owner") for level in LEVELS}
    return opened.__getitem__


@pytest.fixture
def reader(session):
    """A session of the reader at a level: the same one each time."""
    opened = {level: session(level, agent_id="reader") for level in LEVELS}
    return opened.__getitem__


@pytest.fixture
def share(host):
    """Declares the owner's block `plan` and attaches it to the reader."""

    def declared_and_attached(content="", label="plan", owner="owner", reader="reader"):
        host.create_shared_block(owner_agent_id=owner, label=label, content=content)
        host.attach_block(owner_agent_id=owner, label=label, agent_id=reader)

    return declared_and_attached


def recorded(host, method):
    return [event for event in events(host) if event.method == method]


def listed(session, **fields):
    """(label, owner) of all blocks that a session sees."""
    return [
        (block.label, block.owner_agent_id) for page in pages(session.list_blocks, **fields) for block in page.blocks
    ]


def consumers(host, **fields):
    return [agent_id for page in pages(host.list_block_consumers, **PLAN, **fields) for agent_id in page.agent_ids]


# --- CreateSharedBlock


@pytest.mark.parametrize("content", ["", "text", "x" * 65536])
def test_declaring_a_block_makes_its_public_version(host, owner, content):
    host.create_shared_block(**PLAN, content=content)
    block = owner(PUBLIC).get_block(label="plan").block

    assert (block.content, block.classification, block.shared) == (content, PUBLIC, False)
    assert block.create_time == block.update_time


@pytest.mark.parametrize("level", LEVELS)
def test_the_version_that_is_made_is_public_whatever_is_above(host, owner, level):
    owner(level).update_block(label="z", content="own")
    host.create_shared_block(**PLAN, content="text")
    assert owner(level).get_block(label="plan").block.classification == PUBLIC


def test_the_version_that_is_made_is_in_the_ledger_and_in_the_audit(service):
    service.agent("owner")
    service.host().create_shared_block(**PLAN, content="text")
    (event,) = recorded(service.host(), "CreateSharedBlock")
    with service.database.as_owner() as owner:
        kept = owner.execute(
            "SELECT item_id::text, revision, change_id::text, content FROM muniment_public.revision WHERE name = 'plan'"
        ).fetchall()

    assert kept == [(event.item_id, 1, event.event_id, "text")]
    assert (event.agent_id, event.classification, event.kind, event.revision) == ("owner", PUBLIC, 3, 1)
    assert event.host_key_id


def test_declaring_an_existing_block_keeps_it(host, owner):
    before = owner(PUBLIC).update_block(label="plan", content="text").block
    host.create_shared_block(**PLAN)
    (event,) = recorded(host, "CreateSharedBlock")

    assert owner(PUBLIC).get_block(label="plan").block == before
    assert (event.kind, event.item_id, event.revision) == (3, "", 0)


@pytest.mark.parametrize("content", ["text", "other"])
def test_content_over_a_public_version_is_refused(host, owner, content):
    before = owner(PUBLIC).update_block(label="plan", content="text").block

    assert refusal(host.create_shared_block, **PLAN, content=content) == EXISTS
    assert owner(PUBLIC).get_block(label="plan").block == before
    assert refusal(host.list_block_consumers, **PLAN) == NOT_SHARED


@pytest.mark.parametrize("level", [INTERNAL, CONFIDENTIAL, RESTRICTED])
def test_content_under_a_higher_version_is_as_without_one(host, owner, level):
    """A declaration is a PUBLIC input: its answer says nothing of what is above."""
    owner(level).update_block(label="plan", content="high")
    host.create_shared_block(**PLAN, content="low")

    assert owner(PUBLIC).get_block(label="plan").block.content == "low"
    assert owner(level).get_block(label="plan").block.content == "high"


@pytest.mark.parametrize("content", ["", "text"])
def test_declaring_twice_is_refused_and_changes_nothing(host, owner, content):
    host.create_shared_block(**PLAN, content="text")
    before = owner(PUBLIC).get_block(label="plan")

    assert refusal(host.create_shared_block, **PLAN, content=content) == EXISTS
    assert owner(PUBLIC).get_block(label="plan") == before
    assert len(recorded(host, "CreateSharedBlock")) == 1


def test_declaring_twice_is_refused_also_after_the_public_version_is_gone(host, owner):
    host.create_shared_block(**PLAN, content="text")
    owner(PUBLIC).delete_block(label="plan")

    assert refusal(host.create_shared_block, **PLAN, content="new") == EXISTS
    assert refusal(owner(PUBLIC).get_block, label="plan") == GONE


def test_two_spellings_of_one_label_are_one_declaration(host):
    host.create_shared_block(owner_agent_id="owner", label="க\u0bca")

    assert refusal(host.create_shared_block, owner_agent_id="owner", label="க\u0bc6\u0bbe") == EXISTS


@pytest.mark.parametrize("content", ["", "text"])
def test_one_of_eight_concurrent_declarations_succeeds(database, content):
    """And all the others hear what they would hear later: none is a fault, none waits for ever.

    They start while the agent is held: without a lock of their own all would have looked before any has declared.
    """
    with serving(database, limits=Limits(threads=8)) as service:
        service.agent("owner")
        host, outcomes = service.host(), []

        def declare():
            outcomes.append(host.observe("CreateSharedBlock", **PLAN, content=content).code.name)

        threads = [threading.Thread(target=declare) for _ in range(8)]
        with database.as_owner() as admin, admin.transaction():
            lock_rows(admin, "vault.agent")
            for thread in threads:
                thread.start()
            wait_until_all_wait(database, 8)
        for thread in threads:
            thread.join(60)

        assert sorted(outcomes) == ["ALREADY_EXISTS"] * 7 + ["OK"]
        assert len(recorded(host, "CreateSharedBlock")) == 1


def wait_until_all_wait(database, count):
    """Until so many statements wait for a lock, or four seconds have passed: then they would be given up."""
    end = time.monotonic() + 4
    with database.as_admin() as admin:
        while time.monotonic() < end:
            if len(waiting(admin)) >= count:
                return


@pytest.mark.parametrize("rpc", FOR_HOSTS)
def test_c03_the_agent_of_another_tenant_is_not_found(shared, tenant, share, rpc):
    share("text")
    stranger = shared.host(tenant + "-other")
    stranger.create_agent(agent_id="own")
    fields = FOR_HOSTS[rpc]

    assert failure_of(getattr(stranger, rpc), **fields) == failure_of(
        getattr(stranger, rpc), **{**fields, "owner_agent_id": "never"}
    )
    assert refusal(getattr(stranger, rpc), **fields) == NO_AGENT


@pytest.mark.parametrize("rpc", ["attach_block", "detach_block"])
def test_c03_nothing_is_attached_to_the_agent_of_another_tenant(shared, tenant, host, share, rpc):
    share("text")
    shared.host(tenant + "-other").create_agent(agent_id="stranger")

    assert failure_of(getattr(host, rpc), **PLAN, agent_id="stranger") == failure_of(
        getattr(host, rpc), **PLAN, agent_id="never"
    )
    assert refusal(getattr(host, rpc), **PLAN, agent_id="stranger") == NO_AGENT
    assert consumers(host) == ["reader"]


@pytest.mark.parametrize("rpc", FOR_HOSTS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("owner_agent_id", ""),
        ("owner_agent_id", "a b"),
        ("label", ""),
        ("label", "a b"),
        ("label", "😀"),
        ("label", "a" * 65),
    ],
)
def test_an_invalid_name_is_refused(host, rpc, field, value):
    assert invalid(getattr(host, rpc), **{**FOR_HOSTS[rpc], field: value}) == [field]


@pytest.mark.parametrize("content", ["a\0b", "x" * 65537])
def test_an_invalid_content_is_refused(host, content):
    assert invalid(host.create_shared_block, **PLAN, content=content) == ["content"]


# --- AttachBlock, DetachBlock, DeleteSharedBlock


def test_attaching_twice_is_one_link_and_one_event(host, share, reader):
    share("text")
    host.attach_block(**PLAN, agent_id="reader")

    assert consumers(host) == ["reader"]
    assert listed(reader(PUBLIC)) == [("plan", "owner"), ("z", "reader")]
    assert [(event.agent_id, event.outcome) for event in recorded(host, "AttachBlock")] == [("reader", "OK")]


def test_a_block_is_not_attached_to_its_owner(host, share):
    share("text")

    assert invalid(host.attach_block, **PLAN, agent_id="owner") == ["agent_id"]
    assert consumers(host) == ["reader"]


def test_what_is_not_declared_is_not_attached(host, owner):
    owner(PUBLIC).update_block(label="plan", content="text")

    for rpc in ("attach_block", "detach_block", "list_block_consumers", "delete_shared_block"):
        assert refusal(getattr(host, rpc), **FOR_HOSTS[rpc]) == NOT_SHARED
    assert [
        event for event in events(host) if event.method in ("AttachBlock", "DetachBlock", "DeleteSharedBlock")
    ] == []


def test_the_declaration_of_one_label_is_none_of_another(host):
    host.create_shared_block(owner_agent_id="owner", label="Plan")

    assert refusal(host.attach_block, **PLAN, agent_id="reader") == NOT_SHARED


def test_detaching_ends_what_the_consumer_sees(host, share, reader):
    share("text")
    host.detach_block(**PLAN, agent_id="reader")

    assert refusal(reader(PUBLIC).get_block, label="plan") == GONE
    assert listed(reader(PUBLIC)) == [("z", "reader")]
    assert [(event.agent_id, event.outcome) for event in recorded(host, "DetachBlock")] == [("reader", "OK")]


def test_detaching_what_is_not_attached_is_refused(host, share):
    share("text")
    host.detach_block(**PLAN, agent_id="reader")

    for agent_id in ("reader", "other", "owner"):
        assert refusal(host.detach_block, **PLAN, agent_id=agent_id) == NOT_ATTACHED
    assert len(recorded(host, "DetachBlock")) == 1


def test_detaching_one_leaves_the_others(host, share, session):
    share("text")
    host.attach_block(**PLAN, agent_id="other")
    host.detach_block(**PLAN, agent_id="reader")

    assert consumers(host) == ["other"]
    assert session(PUBLIC, agent_id="other").get_block(label="plan").block.content == "text"


def test_what_was_detached_may_be_attached_again(host, share, reader):
    share("text")
    host.detach_block(**PLAN, agent_id="reader")
    host.attach_block(**PLAN, agent_id="reader")

    assert reader(PUBLIC).get_block(label="plan").block.content == "text"


def test_ending_a_declaration_ends_all_links_and_the_owner_keeps_the_block(host, share, owner, reader):
    share("text")
    host.attach_block(**PLAN, agent_id="other")
    before = owner(PUBLIC).get_block(label="plan")
    host.delete_shared_block(**PLAN)

    assert refusal(reader(PUBLIC).get_block, label="plan") == GONE
    assert refusal(host.list_block_consumers, **PLAN) == NOT_SHARED
    assert owner(PUBLIC).get_block(label="plan") == before
    assert [(event.agent_id, event.outcome) for event in recorded(host, "DeleteSharedBlock")] == [("owner", "OK")]


def test_a_declaration_made_again_has_no_links(host, share, reader):
    share("text")
    host.delete_shared_block(**PLAN)
    host.create_shared_block(**PLAN)

    assert consumers(host) == []
    assert refusal(reader(PUBLIC).get_block, label="plan") == GONE


def test_ending_a_declaration_twice_is_refused(host, share):
    share("text")
    host.delete_shared_block(**PLAN)

    assert refusal(host.delete_shared_block, **PLAN) == NOT_SHARED


def test_ending_one_declaration_leaves_the_others(host, share, reader):
    share("plan's")
    share("Plan's", label="Plan")
    share("other's", owner="other")
    host.delete_shared_block(**PLAN)

    assert listed(reader(PUBLIC)) == [("Plan", "owner"), ("plan", "other"), ("z", "reader")]


# --- ListBlockConsumers


@pytest.mark.parametrize("size", [1, 2, 3, 0])
def test_consumers_are_listed_by_the_bytes_of_their_ids(host, size):
    names = ["b", "B", "a", "a.b", "a-b", "a_b", "10", "9"]
    host.create_shared_block(**PLAN)
    for name in names:
        host.create_agent(agent_id=name)
        host.attach_block(**PLAN, agent_id=name)

    assert consumers(host, page_size=size) == sorted(names)


def test_a_declaration_without_consumers_has_an_empty_list(host):
    host.create_shared_block(**PLAN)
    answer = host.list_block_consumers(**PLAN)

    assert (list(answer.agent_ids), answer.next_page_token) == ([], "")


def test_a_page_token_of_another_block_is_refused(host, share):
    share("text")
    share("text", label="Plan")
    host.attach_block(**PLAN, agent_id="other")
    token = host.list_block_consumers(**PLAN, page_size=1).next_page_token

    assert token
    assert refusal(host.list_block_consumers, owner_agent_id="owner", label="Plan", page_token=token) == (
        "INVALID_ARGUMENT PAGE_TOKEN_INVALID"
    )


def test_a_negative_page_size_is_refused(host):
    assert invalid(host.list_block_consumers, **PLAN, page_size=-1) == ["page_size"]


# --- What consumers see


@pytest.mark.parametrize(("written", "at"), PAIRS)
def test_c19_a_consumer_sees_the_highest_version_at_or_below_its_own_taint(host, owner, reader, written, at):
    host.create_shared_block(**PLAN)
    owner(PUBLIC).delete_block(label="plan")
    host.attach_block(**PLAN, agent_id="reader")
    made = owner(written).update_block(label="plan", content="text").block

    if written <= at:
        seen = reader(at).get_block(label="plan").block
        assert seen.shared
        seen.shared = False
        assert seen == made
    else:
        assert refusal(reader(at).get_block, label="plan") == GONE


@pytest.mark.parametrize("at", LEVELS)
def test_of_all_versions_a_consumer_sees_that_of_its_taint(share, owner, reader, at):
    share("PUBLIC")
    for level in LEVELS[1:]:
        owner(level).update_block(label="plan", content=level.name)

    assert reader(at).get_block(label="plan").block.content == at.name
    assert [(block.content, block.classification) for block in reader(at).list_blocks().blocks] == [
        (at.name, at),
        ("", PUBLIC),
    ]


@pytest.mark.parametrize(("low", "high"), UP)
def test_c44_when_the_owner_edits_higher_up_low_consumers_keep_the_low_version(share, owner, reader, low, high):
    share("text")
    before = reader(low).list_blocks().SerializeToString(deterministic=True)
    owner(high).edit_block(label="plan", append={"content": "secret"})

    assert reader(low).list_blocks().SerializeToString(deterministic=True) == before
    assert reader(high).get_block(label="plan").block.content == "text\nsecret"


@pytest.mark.parametrize(("low", "high"), UP)
def test_c22_a_shared_block_with_no_version_to_see_is_as_one_never_shared(host, share, owner, reader, low, high):
    """The same bytes, in every RPC that could tell."""
    share()
    owner(PUBLIC).delete_block(label="plan")
    owner(high).update_block(label="plan", content="secret")
    calls = [("GetBlock", {"label": "plan"}), ("GetBlock", PLAN), ("ListBlocks", {}), ("RenderPrompt", {})]
    shared = [reader(low).observe(rpc, **fields) for rpc, fields in calls]
    host.delete_shared_block(**PLAN)

    assert [reader(low).observe(rpc, **fields) for rpc, fields in calls] == shared


def test_when_the_owner_deletes_its_version_the_consumer_sees_the_one_below(share, owner, reader):
    share("low")
    owner(INTERNAL).update_block(label="plan", content="high")
    owner(INTERNAL).delete_block(label="plan")

    assert reader(RESTRICTED).get_block(label="plan").block.content == "low"


@pytest.mark.parametrize("rpc", ["edit_block", "delete_block"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_consumer_cannot_change_the_block(share, owner, reader, rpc, level):
    share("text")
    before = owner(PUBLIC).get_block(label="plan")

    assert refusal(getattr(reader(level), rpc), **FOR_SESSIONS[rpc]) == GONE
    assert owner(PUBLIC).get_block(label="plan") == before
    assert owner(level).get_block(label="plan").block.classification == PUBLIC


@pytest.mark.parametrize("rpc", ["update_block", "edit_block", "delete_block"])
def test_the_etag_of_a_shared_block_is_as_stale_as_one_that_never_existed(share, reader, rpc):
    share("text")
    reader(PUBLIC).update_block(label="plan", content="own")
    foreign = reader(PUBLIC).get_block(**PLAN).block.etag
    elsewhere = reader(PUBLIC).get_block(label="z").block.etag
    call = getattr(reader(PUBLIC), rpc)

    assert failure_of(call, **FOR_SESSIONS[rpc], etag=foreign) == failure_of(call, **FOR_SESSIONS[rpc], etag=elsewhere)


@pytest.mark.parametrize("level", LEVELS)
def test_an_update_by_a_consumer_makes_its_own_block_and_both_are_listed(share, owner, reader, level):
    share("shared")
    own = reader(level).update_block(label="plan", content="own").block

    assert (own.owner_agent_id, own.shared) == ("reader", False)
    assert listed(reader(level)) == [("plan", "reader"), ("plan", "owner"), ("z", "reader")]
    assert reader(level).get_block(label="plan").block.content == "own"
    assert reader(level).get_block(**PLAN).block.content == "shared"
    assert owner(PUBLIC).get_block(label="plan").block.content == "shared"


def test_a_consumers_own_block_has_its_own_create_time(share, reader):
    """It inherits that of a lower version, not that of another agent's block."""
    share("shared")
    own = reader(RESTRICTED).update_block(label="plan", content="own").block

    assert own.create_time == own.update_time


@pytest.mark.parametrize(("low", "high"), UP)
def test_the_own_block_comes_before_a_shared_one_however_high_that_is(share, owner, reader, low, high):
    """Blocks of different owners never shadow each other."""
    share(content="shared")
    owner(high).update_block(label="plan", content="high")
    own = reader(low).update_block(label="plan", content="own").block

    assert reader(high).get_block(label="plan").block == own
    assert reader(high).get_block(**PLAN).block.content == "high"


def test_neither_shadows_the_other_at_another_level(share, owner, reader):
    share("low")
    reader(RESTRICTED).update_block(label="plan", content="own")
    owner(INTERNAL).update_block(label="plan", content="high")

    assert [block.content for block in reader(RESTRICTED).list_blocks().blocks] == ["own", "high", ""]
    assert [block.content for block in reader(INTERNAL).list_blocks().blocks] == ["high", ""]
    assert [block.content for block in reader(PUBLIC).list_blocks().blocks] == ["low", ""]


@pytest.fixture
def crowd(host, session, share):
    """A reader with an own block `plan`, and five owners that share theirs; and `a` and `zz` of one of them."""
    for name in ("b", "B", "a.b", "a", "9"):
        host.create_agent(agent_id=name, initial_blocks=[{"label": "none"}])
        share(f"{name}'s", owner=name)
    for label in ("a", "zz"):
        share(f"{label} of b", label=label, owner="b")
    reader = session(PUBLIC, agent_id="reader")
    reader.update_block(label="plan", content="own")
    return reader


ORDER = [
    ("a", "b"), ("plan", "reader"), ("plan", "9"), ("plan", "B"), ("plan", "a"), ("plan", "a.b"), ("plan", "b"),
    ("z", "reader"), ("zz", "b"),
]  # fmt: skip


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_blocks_are_listed_by_label_own_first_then_by_owner(crowd, size):
    assert listed(crowd, page_size=size) == ORDER


def test_a_prompt_has_the_blocks_in_the_same_order(crowd):
    """A linked block is injected."""
    rendered = crowd.render_prompt()

    assert [(section.label, section.owner_agent_id) for section in rendered.sections] == ORDER
    assert rendered.text == (
        "### a\na of b\n\n### plan\nown\n\n### plan\n9's\n\n### plan\nB's\n\n### plan\na's\n\n### plan\na.b's\n\n"
        "### plan\nb's\n\n### z\n\n### zz\nzz of b"
    )


def test_get_without_an_owner_gives_the_own_block_else_the_first_by_owner(crowd):
    own = crowd.get_block(label="plan").block.owner_agent_id
    crowd.delete_block(label="plan")

    assert (own, crowd.get_block(label="plan").block.owner_agent_id) == ("reader", "9")


@pytest.mark.parametrize("owner_id", ["9", "B", "a", "a.b", "b"])
def test_get_with_an_owner_gives_that_owners_block(crowd, owner_id):
    assert crowd.get_block(label="plan", owner_agent_id=owner_id).block.content == f"{owner_id}'s"


def test_get_under_the_own_id_gives_no_shared_block(crowd):
    crowd.delete_block(label="plan")

    assert refusal(crowd.get_block, label="plan", owner_agent_id="reader") == GONE


def test_the_first_by_owner_is_the_first_that_is_seen(host, session, share, reader):
    """An owner whose versions are all above does not hide the next one."""
    share("other's", owner="other")
    share()
    own = session(PUBLIC, agent_id="other")
    own.delete_block(label="plan")
    session(RESTRICTED, agent_id="other").update_block(label="plan", content="secret")

    assert reader(PUBLIC).get_block(label="plan").block.owner_agent_id == "owner"
    assert reader(RESTRICTED).get_block(label="plan").block.content == "secret"


def test_c09_the_classification_of_a_list_counts_shared_blocks(share, owner, reader):
    share("low")
    owner(INTERNAL).update_block(label="plan", content="high")

    assert reader(RESTRICTED).list_blocks().classification == INTERNAL
    assert reader(RESTRICTED).render_prompt().classification == INTERNAL
    assert reader(PUBLIC).list_blocks().classification == PUBLIC


def test_only_what_is_shared_is_seen(share, owner, reader):
    share("text")
    owner(PUBLIC).update_block(label="other", content="private")
    owner(PUBLIC).save_memory(key="plan", content="private")

    assert listed(reader(RESTRICTED)) == [("plan", "owner"), ("z", "reader")]
    assert list(reader(RESTRICTED).list_memories().memories) == []


def test_sharing_is_not_handed_on(host, share, session):
    """A consumer's consumers see nothing of it: what a consumer declares is its own block."""
    share("text")
    share("", owner="reader", reader="other")
    seen = session(PUBLIC, agent_id="other").get_block(label="plan").block

    assert (seen.owner_agent_id, seen.content) == ("reader", "")


def test_two_agents_may_share_with_each_other(share, owner, reader):
    share("owner's")
    share("reader's", owner="reader", reader="owner")

    assert owner(PUBLIC).get_block(label="plan").block.content == "owner's"
    assert owner(PUBLIC).get_block(label="plan", owner_agent_id="reader").block.content == "reader's"
    assert reader(PUBLIC).get_block(**PLAN).block.content == "owner's"


def test_sharing_is_seen_by_sessions_that_are_open_already(host, reader, share):
    assert refusal(reader(PUBLIC).get_block, label="plan") == GONE
    share("text")

    assert reader(PUBLIC).get_block(label="plan").block.content == "text"


# --- The agents go


def test_when_the_owner_is_deleted_its_block_is_no_longer_seen(host, share, reader):
    share("text")
    host.delete_agent(agent_id="owner")

    assert refusal(reader(PUBLIC).get_block, label="plan") == GONE
    assert listed(reader(PUBLIC)) == [("z", "reader")]
    assert refusal(host.list_block_consumers, **PLAN) == NO_AGENT


def test_when_the_consumer_is_deleted_its_link_is_gone(host, share):
    share("text")
    host.attach_block(**PLAN, agent_id="other")
    host.delete_agent(agent_id="reader")

    assert consumers(host) == ["other"]
    assert refusal(host.detach_block, **PLAN, agent_id="reader") == NO_AGENT


def test_an_owner_made_again_shares_nothing(host, share, reader):
    share("text")
    host.delete_agent(agent_id="owner")
    host.create_agent(agent_id="owner", initial_blocks=[{"label": "plan", "content": "new"}])

    assert refusal(host.list_block_consumers, **PLAN) == NOT_SHARED
    assert refusal(reader(RESTRICTED).get_block, label="plan") == GONE


def test_a_consumer_made_again_inherits_nothing(host, share, session):
    share("text")
    host.delete_agent(agent_id="reader")
    host.create_agent(agent_id="reader", initial_blocks=[{"label": "z"}])

    assert consumers(host) == []
    assert listed(session(RESTRICTED, agent_id="reader")) == [("z", "reader")]


def test_no_row_is_left_of_agents_that_are_gone(service):
    host = service.host()
    for agent_id in ("owner", "reader", "third"):
        service.agent(agent_id)
    for owner, reader in (("owner", "reader"), ("reader", "owner"), ("third", "owner")):
        host.create_shared_block(owner_agent_id=owner, label="plan")
        host.attach_block(owner_agent_id=owner, label="plan", agent_id=reader)
    host.delete_agent(agent_id="owner")

    with service.database.as_owner() as admin:
        assert admin.execute("SELECT count(*) FROM vault.block_link").fetchone() == (0,)
        assert admin.execute("SELECT count(*) FROM vault.shared_block").fetchone() == (2,)


# --- Who may


@pytest.mark.parametrize("rpc", FOR_HOSTS)
@pytest.mark.parametrize("level", [PUBLIC, RESTRICTED])
def test_sharing_is_not_for_sessions(host, share, owner, rpc, level):
    share("text")

    assert refusal(getattr(owner(level), rpc), **FOR_HOSTS[rpc]) == "PERMISSION_DENIED PRINCIPAL_NOT_ALLOWED"
    assert consumers(host) == ["reader"]
    assert events(host)[-1].outcome == "PRINCIPAL_NOT_ALLOWED"


@pytest.mark.parametrize("rpc", FOR_SESSIONS)
def test_blocks_are_not_for_hosts(host, share, owner, rpc):
    share("text")

    assert refusal(getattr(host, rpc), **FOR_SESSIONS[rpc]) == "PERMISSION_DENIED PRINCIPAL_NOT_ALLOWED"
    assert owner(PUBLIC).get_block(label="plan").block.content == "text"


def test_c23_a_host_shares_blocks_among_the_agents_up_to_its_ceiling_and_sees_no_others(shared, tenant, host):
    low = shared.host(tenant, INTERNAL)
    for agent_id in ("low-owner", "low-reader"):
        low.create_agent(agent_id=agent_id)
    block = {"owner_agent_id": "low-owner", "label": "plan"}
    low.create_shared_block(**block, content="text")
    low.attach_block(**block, agent_id="low-reader")
    host.attach_block(**block, agent_id="reader")

    assert list(low.list_block_consumers(**block).agent_ids) == ["low-reader"]
    assert list(host.list_block_consumers(**block).agent_ids) == ["low-reader", "reader"]
    never = {"owner_agent_id": "never", "label": "plan"}
    for rpc in ("CreateSharedBlock", "DeleteSharedBlock", "ListBlockConsumers"):
        assert low.observe(rpc, **PLAN) == low.observe(rpc, **never), rpc
    for rpc in ("AttachBlock", "DetachBlock"):
        assert low.observe(rpc, **PLAN, agent_id="low-reader") == low.observe(rpc, **never, agent_id="low-reader"), rpc
        assert low.observe(rpc, **block, agent_id="reader") == low.observe(rpc, **block, agent_id="never"), rpc
    assert list(host.list_block_consumers(**block).agent_ids) == ["low-reader", "reader"]


def test_c23_a_block_is_not_attached_to_an_agent_below_the_ceiling_of_its_owner(shared, tenant, host, session):
    """Keys that reach the agent and not the owner would see the owner's id, and could not detach the block."""
    low = shared.host(tenant, INTERNAL)
    low.create_agent(agent_id="low")
    host.create_shared_block(**PLAN, content="text")

    assert refusal(host.attach_block, **PLAN, agent_id="low") == "PERMISSION_DENIED AGENT_CEILING_EXCEEDED"
    assert refusal(host.attach_block, **PLAN, agent_id="never") == NO_AGENT
    assert "plan" not in [block.label for block in session(INTERNAL, agent_id="low").list_blocks().blocks]
    assert consumers(host) == []
    [refused] = [event for event in events(host) if event.method == "AttachBlock"]
    assert (refused.agent_id, refused.outcome) == ("low", "AGENT_CEILING_EXCEEDED")
    assert refused.classification == RESTRICTED
    assert "AttachBlock" not in {event.method for event in low.list_audit_events().audit_events}


@pytest.mark.parametrize("ceiling", LEVELS)
def test_a_block_is_attached_to_an_agent_with_the_ceiling_of_its_owner_or_a_higher_one(host, ceiling):
    host.create_agent(agent_id="lower", ceiling=ceiling)
    host.create_agent(agent_id="same", ceiling=ceiling)
    host.create_shared_block(owner_agent_id="lower", label="plan")
    for agent_id in ("same", "reader"):
        host.attach_block(owner_agent_id="lower", label="plan", agent_id=agent_id)

    assert list(host.list_block_consumers(owner_agent_id="lower", label="plan").agent_ids) == ["reader", "same"]


# --- Audit


@pytest.mark.parametrize("level", [CONFIDENTIAL, RESTRICTED])
def test_a_read_of_a_shared_block_names_its_version(host, share, owner, reader, level):
    share("text")
    owner(PUBLIC).update_block(label="plan", content="two")
    reader(level).get_block(label="plan")
    *_, written, read = [event for event in events(host) if event.kind]

    assert (read.agent_id, read.classification, read.result_count) == ("reader", level, 1)
    assert (read.item_id, read.revision) == (written.item_id, 2)


def test_no_audit_row_no_sharing(service):
    host = service.host()
    for agent_id in ("owner", "reader", "other"):
        service.agent(agent_id)
    host.create_shared_block(**PLAN)
    host.attach_block(**PLAN, agent_id="reader")
    with service.database.as_owner() as admin:
        admin.execute("REVOKE INSERT ON muniment_control.audit FROM muniment_control")

    answers = [
        refusal(host.create_shared_block, owner_agent_id="owner", label="new"),
        refusal(host.delete_shared_block, **PLAN),
        refusal(host.attach_block, **PLAN, agent_id="other"),
        refusal(host.detach_block, **PLAN, agent_id="reader"),
    ]

    assert answers == ["INTERNAL INTERNAL"] * 4
    assert consumers(host) == ["reader"]
    assert refusal(host.list_block_consumers, owner_agent_id="owner", label="new") == NOT_SHARED
    with service.database.as_owner() as admin:
        assert admin.execute("SELECT count(*) FROM muniment_public.item WHERE name = 'new'").fetchone() == (0,)
