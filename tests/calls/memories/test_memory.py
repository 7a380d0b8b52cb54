"""Keyed memories through a real server."""

from __future__ import annotations

from muniment_server.domain.classification import Classification
from tests.support.services import failure_of

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification


def test_a_public_session_cannot_tell_a_confidential_memory_from_none(at):
    """A memory above the session's taint looks exactly like one that does not exist."""
    at(CONFIDENTIAL).save_memory(key="plan", content="…")

    hidden = failure_of(at(PUBLIC).get_memory, key="plan")
    absent = failure_of(at(PUBLIC).get_memory, key="no-such-key")

    assert hidden == absent


def test_the_highest_visible_version_shadows_the_lower(at):
    at(PUBLIC).save_memory(key="plan", content="low")
    at(CONFIDENTIAL).save_memory(key="plan", content="high")

    assert at(INTERNAL).get_memory(key="plan").memory.content == "low"
    assert at(RESTRICTED).get_memory(key="plan").memory.content == "high"
