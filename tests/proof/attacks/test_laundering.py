"""Text that gains trust by being written again: memory provenance laundering, arXiv 2607.29167.

Promised: whatever a session reads and writes again has the level of its taint, and the audit says which session wrote
it. Not promised: Muniment does not record from which items a text was made.
"""

from __future__ import annotations

import pytest

from tests.support.answers import PUBLIC, UP, events, refusal


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
