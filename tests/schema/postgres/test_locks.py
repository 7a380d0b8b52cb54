"""Law 6: a high session never locks or blocks a low one."""

from __future__ import annotations

import psycopg
import pytest

from muniment_server.domain.classification import Classification, Label
from tests.proof.races.mutants import impatience
from tests.support.services import failure_of

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
LEVELS = tuple(Classification)
OTHERS = [(low, high) for high in Label for low in Label if low is not high]
MODES = ("FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE")


@pytest.fixture
def crowded(service):
    """A service that was used at every label, with no lock waited for longer than 50 ms."""
    with impatience():
        for label in Label:
            service.session(label, conversation_id=f"c{label.value}").save_memory(key="plan", content=label.name)
        yield service


@pytest.mark.parametrize(("low", "high"), OTHERS)
@pytest.mark.parametrize("mode", MODES)
def test_c80_a_row_of_another_label_cannot_be_locked(migrated, low, high, mode):
    """By grant: a lock needs an UPDATE right. Whether it can be read or not."""
    with migrated.connect(high.role) as connection:
        for statement in (f"SELECT FROM {low.role}.item {mode}", f"SELECT FROM visible {mode}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


@pytest.mark.parametrize("label", Label)
def test_another_session_of_the_label_is_not_blocked_either(crowded, label):
    """Writers of one conversation queue, and those of notes and blocks; others do not, but for one same name."""
    other = crowded.session(label, conversation_id="other")
    literal = "SELECT FROM session WHERE session.tenant = %s AND session.session_id = %s FOR NO KEY UPDATE"
    with crowded.database.connect(label.role) as connection:
        (row,) = connection.execute(
            "SELECT tenant, session_id FROM session WHERE conversation_id = %s", [f"c{label.value}"]
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


def test_a_raise_of_the_integrity_alone_waits_for_a_writer_of_its_conversation(crowded):
    """So that none that is trusted commits after it."""
    host = crowded.host()
    opened = host.open_session(agent_id="alice", integrity=1, conversation_id="tainted").session
    with crowded.database.connect(Label.PUBLIC_TRUSTED.role) as writer, writer.transaction():
        writer.execute("SELECT FROM session WHERE session_id = %s FOR NO KEY UPDATE", [opened.session_id])
        for call, fields in (
            (host.raise_taint, {"session_id": opened.session_id, "taint": PUBLIC}),
            (host.open_session, {"agent_id": "alice", "conversation_id": "tainted"}),
        ):
            assert failure_of(call, **fields).code.name == "UNAVAILABLE"
    assert host.get_session(session_id=opened.session_id).session.integrity == 1


@pytest.mark.parametrize("level", LEVELS)
def test_c41_no_write_at_the_old_level_after_a_raise(crowded, level):
    """What waited for the raise finds no session, and writes at the new level or not at all."""
    session = crowded.session(PUBLIC, conversation_id="race")
    crowded.host().raise_taint(session_id=session.session_id, taint=level)

    assert session.save_memory(key="race", content="text").memory.classification == level
