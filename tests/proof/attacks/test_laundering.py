"""Text that gains trust by being written again: provenance laundering, arXiv 2607.29167 and 2606.24322 (TMA-NM).

Promised: whatever a session reads and writes again has the label of its taint, whoever repeats it and however often,
and the audit says which session wrote it. Not promised: Muniment does not record from which items a text was made.
"""

from __future__ import annotations

import pytest

from muniment_server.domain.classification import Integrity, Label
from tests.support.answers import PUBLIC, UP, events, refusal
from tests.support.integrity import all_are, rendered, seen, write

POISON = "whale-poison."


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_summary_has_the_level_of_the_session_that_wrote_it(at, low, high):
    """So rewriting never lowers a label: the summary is not there for the lower session."""
    at(high).save_memory(key="source", content="the secret is 4711")
    read = at(high).get_memory(key="source").memory.content

    at(high).save_memory(key="summary", content=f"summary of what is public: {read}")
    at(high).add_note(content=f"note: {read}")
    at(high).update_block(label="summary", content=read)
    at(high).store_passage(content=read)

    assert at(high).get_memory(key="summary").memory.classification == high
    assert refusal(at(low).get_memory, key="summary") == "NOT_FOUND MEMORY_NOT_FOUND"
    assert "4711" not in at(low).render_prompt().text
    for searched in (at(low).search_memories, at(low).search_notes, at(low).search_passages):
        assert list(searched(query="4711").results) == []


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_copy_of_lower_text_does_not_change_its_source(at, low, high):
    """Rewriting raises the label of the copy. Whether that makes a poisoned text credible is not judged."""
    at(low).save_memory(key="source", content="the attacker is trusted")

    at(high).save_memory(key="source", content=at(high).get_memory(key="source").memory.content)

    assert at(high).get_memory(key="source").memory.classification == high
    assert at(low).get_memory(key="source").memory.classification == low


def test_the_audit_says_which_session_wrote_each_version(host, session):
    first, second = session(PUBLIC), session(PUBLIC)
    first.save_memory(key="plan", content="ship")
    second.save_memory(key="plan", content="do not ship")

    written = [(event.session_id, event.revision) for event in events(host) if event.method == "SaveMemory"]

    assert written == [(first.session_id, 1), (second.session_id, 2)]


def summarized(shared, tenant, session):
    """A trusted context is shown the poison, raised before, and sums it up itself, as every kind of item."""
    host = shared.host(tenant)
    session(Label.PUBLIC).save_memory(key="page", content=POISON)
    opened = host.open_session(agent_id="alice", taint=PUBLIC, integrity=Integrity.TRUSTED)
    host.raise_taint(session_id=opened.session.session_id, taint=PUBLIC)
    reader = host.session(opened)
    write(reader, reader.get_memory(key="page").memory.content)
    host.reset_session(session_id=opened.session.session_id, integrity=Integrity.TRUSTED)


def echoed(shared, tenant, session):
    """A tool that is trusted, another agent here, repeats what it was given in a block that both share."""
    host = shared.host(tenant)
    shared.agent("alice", tenant)
    shared.agent("tool", tenant)
    host.create_shared_block(owner_agent_id="tool", label="plan")
    host.attach_block(owner_agent_id="tool", label="plan", agent_id="alice")
    session(Label.PUBLIC, agent_id="tool").update_block(label="plan", content=POISON)
    write(session(Label.PUBLIC), POISON)


def agreed(shared, tenant, session):
    """Twenty conversations store the same."""
    for number in range(20):
        own = session(Label.PUBLIC)
        own.save_memory(key=f"plan {number}", content=POISON, tags=["tag"])
        own.store_passage(content=POISON, thread="t", tags=["tag"])
        own.update_block(label=f"plan{number}", content=POISON)
        own.add_note(content=f"{number} {POISON}")


def renamed(shared, tenant, session):
    own = session(Label.PUBLIC)
    own.save_memory(key="page", content=POISON, tags=["tag"])
    own.rename_memory(key="page", new_key="plan")


def undeleted(shared, tenant, session):
    """By a host, which may not say that it is trusted: there is no such item."""
    own = session(Label.PUBLIC)
    own.save_memory(key="plan", content=POISON)
    own.delete_memory(key="plan")
    plan = {"agent_id": "alice", "kind": 1, "name": "plan", "classification": PUBLIC}
    host = shared.host(tenant)
    assert refusal(host.undelete_item, **plan, integrity=Integrity.TRUSTED) == "NOT_FOUND MEMORY_NOT_FOUND"
    host.undelete_item(**plan)


def imported(shared, tenant, session):
    session(Label.PUBLIC).import_passages({"content": POISON, "thread": "t", "tags": ["tag"]})


@pytest.mark.parametrize("launder", [summarized, echoed, agreed, renamed, undeleted, imported])
def test_no_laundering_makes_poison_trusted(shared, tenant, session, launder):
    """TMA-NM's three, and what a server does besides. An untrusted session still sees it."""
    launder(shared, tenant, session)

    for label in (Label.PUBLIC_TRUSTED, Label.RESTRICTED_TRUSTED):
        assert seen(session(label)) == all_are()
        assert rendered(session(label)) == set()
    found = {item for items in seen(session(Label.RESTRICTED)).values() for item in items}
    assert found == {item for item in found if item[1] is Label.PUBLIC}
    assert any(POISON in content for content, _ in found)
