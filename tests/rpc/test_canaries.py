"""What is remembered shows in no log."""

from __future__ import annotations

import logging
import uuid

import pytest

from tests.rpc.answers import CONFIDENTIAL, LEVELS, in_future
from tests.support.services import failure_of


def postgres_log(postgres):
    return (postgres._directory / "postgres.log").read_text("utf-8", errors="replace")


def use_everything(service, canary):
    """Every call with the canary wherever text goes in, those that succeed and those that fail."""
    host = service.host()
    for level in LEVELS:
        session = service.session(level)
        etag = session.save_memory(key=canary, content=canary, tags=[canary], expire_time=in_future(days=1)).memory.etag
        session.save_memory(key=canary, content=canary + "2", tags=[canary])
        failure_of(session.save_memory, key=canary, content=canary, etag=etag)
        failure_of(session.save_memory, key=canary + "\n", content=canary + "\0", tags=[canary * 9], etag=canary)
        failure_of(session.save_memory, key=canary, content=canary, expire_time={"seconds": 1})
        session.get_memory(key=canary)
        failure_of(session.get_memory, key=canary + "never")
        session.list_memories(tag=canary)
        failure_of(session.list_memories, tag=canary, page_token=canary)
        session.search_memories(query=canary, tags=[canary])
        session.search_memories(query=f"'{canary}' & ! : * \\")
        failure_of(session.delete_memory, key=canary, etag=etag)
        session.delete_memory(key=canary)
        failure_of(session.delete_memory, key=canary)
        failure_of(lambda session=session: session.send("GetMemory", b"\x0a\xff" + canary.encode()))
        failure_of(session.create_agent, agent_id=canary)
    failure_of(host.save_memory, key=canary, content=canary)
    failure_of(host.get_agent, agent_id=canary + " ")
    failure_of(host.get_session, session_id=canary)


TABLE = "muniment_confidential.item"
DAMAGES = {
    "ADD CONSTRAINT forced CHECK (content = '') NOT VALID": "DROP CONSTRAINT forced",
    "ADD CONSTRAINT forced UNIQUE (tenant, content)": "DROP CONSTRAINT forced",
    "ADD CONSTRAINT forced CHECK (content::integer > 0) NOT VALID": "DROP CONSTRAINT forced",
    "RENAME COLUMN tags TO labels": "RENAME COLUMN labels TO tags",
}
"""What makes a save fail with a message that quotes what was sent, and what repairs it."""


def break_everything(service, canary):
    """Faults of many kinds, each in the middle of a save."""
    session = service.session(CONFIDENTIAL)
    session.save_memory(key=canary, content=canary)
    for damage, repair in DAMAGES.items():
        with service.database.as_owner() as owner:
            owner.execute(f"ALTER TABLE {TABLE} {damage}".encode())
            assert failure_of(session.save_memory, key=canary + "3", content=canary).code.name == "INTERNAL"
            owner.execute(f"ALTER TABLE {TABLE} {repair}".encode())


@pytest.fixture
def listening(caplog):
    """Every logger of the process, as loud as it can be."""
    for name in list(logging.root.manager.loggerDict):
        caplog.set_level(logging.DEBUG, logger=name)
    caplog.set_level(logging.DEBUG)
    return caplog


def test_c60_no_log_of_the_server_shows_what_was_remembered(service, listening):
    """TF16: and no token either."""
    canary = f"CANARY-{uuid.uuid4()}"
    use_everything(service, canary)
    break_everything(service, canary)
    said = "\n".join([listening.text, *(repr(record.__dict__) for record in listening.records)])

    assert "SaveMemory" in said
    assert [line for line in said.splitlines() if canary in line or "mun_s_" in line or "mun_h_" in line] == []


def test_c63_no_log_of_the_database_shows_what_was_remembered(service, postgres):
    canary = f"CANARY-{uuid.uuid4()}"
    use_everything(service, canary)
    break_everything(service, canary)

    log = postgres_log(postgres)

    assert "database system is ready" in log
    assert canary not in log


def test_c63_what_the_postgres_of_the_tests_logs_is_what_the_embedded_one_logs(database):
    with database.as_admin() as admin:
        found = dict(
            admin.execute(
                "SELECT name, setting FROM pg_settings WHERE name IN ('log_statement', 'log_error_verbosity',"
                " 'log_min_error_statement', 'log_parameter_max_length', 'log_parameter_max_length_on_error')"
            ).fetchall()
        )

    assert found == {
        "log_statement": "none",
        "log_error_verbosity": "terse",
        "log_min_error_statement": "panic",
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
    }
