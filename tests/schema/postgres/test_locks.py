"""Law 6: a high session never locks or blocks a low one."""

from __future__ import annotations

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from tests.proof.races.mutants import impatience
from tests.support.services import failure_of

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
LEVELS = tuple(Classification)
UP = [(low, high) for low in LEVELS for high in LEVELS if low < high]
MODES = ("FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE")


@pytest.fixture
def crowded(service):
    """A service that was used at every level, with no lock waited for longer than 50 ms."""
    with impatience():
        for level in LEVELS:
            service.session(level, conversation_id=f"c{level.value}").save_memory(key="plan", content=level.name)
        yield service


@pytest.mark.parametrize(("low", "high"), UP)
@pytest.mark.parametrize("mode", MODES)
def test_c80_a_lower_row_cannot_be_locked(migrated, low, high, mode):
    """By grant: a lock needs an UPDATE right."""
    with migrated.connect(high.role) as connection:
        for statement in (f"SELECT FROM {low.role}.item {mode}", f"SELECT FROM visible {mode}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


@pytest.mark.parametrize("level", LEVELS)
def test_another_session_of_the_level_is_not_blocked_either(crowded, level):
    """Writers of one conversation queue, and those of notes and blocks; others do not, but for one same name."""
    other = crowded.session(level, conversation_id="other")
    literal = "SELECT FROM session WHERE session.tenant = %s AND session.session_id = %s FOR NO KEY UPDATE"
    with crowded.database.connect(level.role) as connection:
        (row,) = connection.execute(
            "SELECT tenant, session_id FROM session WHERE conversation_id = %s", [f"c{level.value}"]
        ).fetchall()
        with connection.transaction():
            connection.execute(literal, row)
            other.save_memory(key="plan", content="text")
            other.delete_memory(key="plan")


def test_a_raise_waits_for_a_writer_of_its_conversation(crowded):
    """The test above can fail: this is what blocks, and must."""
    host = crowded.host()
    opened = host.open_session(agent_id="alice", taint=PUBLIC, conversation_id="raised").session
    with crowded.database.connect("muniment_public") as writer, writer.transaction():
        writer.execute("SELECT FROM session WHERE session_id = %s FOR NO KEY UPDATE", [opened.session_id])
        assert failure_of(host.raise_taint, session_id=opened.session_id, taint=INTERNAL).code.name == "UNAVAILABLE"


@pytest.mark.parametrize("level", LEVELS)
def test_c41_no_write_at_the_old_level_after_a_raise(crowded, level):
    """What waited for the raise finds no session, and writes at the new level or not at all."""
    session = crowded.session(PUBLIC, conversation_id="race")
    crowded.host().raise_taint(session_id=session.session_id, taint=level)

    assert session.save_memory(key="race", content="text").memory.classification == level
