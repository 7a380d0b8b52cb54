"""No audit row, no effect (law 7), when the row cannot be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from muniment_server.domain.classification import Classification
from tests.support.services import Caller, Service

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_EVERYTHING = """
SELECT (SELECT array_agg(item::text ORDER BY item::text) FROM {level}.item) AS items,
       (SELECT array_agg(revision::text ORDER BY revision::text) FROM {level}.revision) AS revisions,
       (SELECT array_agg(audit::text ORDER BY audit::text) FROM {level}.audit) AS audits
"""
_HOSTS = """
SELECT (SELECT array_agg(agent::text ORDER BY agent::text) FROM vault.agent) AS agents,
       (SELECT array_agg(session::text ORDER BY session::text) FROM vault.session) AS sessions,
       (SELECT array_agg(conversation::text ORDER BY conversation::text) FROM vault.conversation) AS conversations
"""

At = Callable[[Classification], Caller]


@contextmanager
def _no_audit(service: Service, role: str) -> Iterator[None]:
    """The role may not write audit rows meanwhile."""
    with service.database.as_owner() as owner:
        owner.execute(f"REVOKE INSERT ON {role}.audit FROM {role}".encode())
        yield
        owner.execute(f"GRANT INSERT ON {role}.audit TO {role}".encode())


def _state(service: Service, question: str) -> Any:
    with service.database.as_owner() as owner:
        return owner.execute(question.encode()).fetchone()


@pytest.mark.parametrize("level", Classification)
def test_a_write_without_its_audit_row_has_no_effect(level: Classification, service: Service, at: At) -> None:
    at(level).save_memory(key="plan", content="kept")
    before = _state(service, _EVERYTHING.replace("{level}", level.role))
    with _no_audit(service, level.role):
        codes = [
            at(level).observe("SaveMemory", key="plan", content="lost").code,
            at(level).observe("SaveMemory", key="new", content="lost").code,
            at(level).observe("DeleteMemory", key="plan").code,
        ]

    assert codes == [grpc.StatusCode.INTERNAL] * 3
    assert _state(service, _EVERYTHING.replace("{level}", level.role)) == before
    assert at(level).get_memory(key="plan").memory.content == "kept"
    at(level).save_memory(key="plan", content="after")


@pytest.mark.parametrize("level", [CONFIDENTIAL, RESTRICTED])
def test_an_audited_read_without_its_row_is_not_answered(level: Classification, service: Service, at: At) -> None:
    at(level).save_memory(key="plan", content="the hidden plan")
    with _no_audit(service, level.role):
        outcomes = [
            at(level).observe("GetMemory", key="plan"),
            at(level).observe("ListMemories"),
            at(level).observe("SearchMemories", query="hidden plan"),
        ]

    assert [outcome.code for outcome in outcomes] == [grpc.StatusCode.INTERNAL] * 3
    assert "hidden" not in repr(outcomes)


def test_other_levels_go_on(service: Service, at: At) -> None:
    with _no_audit(service, CONFIDENTIAL.role):
        for level in (PUBLIC, INTERNAL, RESTRICTED):
            at(level).save_memory(key="plan", content=level.name)
            assert at(level).get_memory(key="plan").memory.content == level.name


def test_an_act_of_a_host_without_its_audit_row_has_no_effect(service: Service, at: At, host: Caller) -> None:
    session = at(INTERNAL)
    before = _state(service, _HOSTS)
    with _no_audit(service, "muniment_control"):
        codes = [
            host.observe("CreateAgent", agent_id="bob").code,
            host.observe("UpdateAgent", agent_id="alice", display_name="Alice").code,
            host.observe("OpenSession", agent_id="alice", taint=1).code,
            host.observe("RaiseTaint", session_id=session.session_id, taint=4).code,
            host.observe("ResetSession", session_id=session.session_id).code,
            host.observe("CloseSession", session_id=session.session_id).code,
            session.observe("CloseSession").code,
            host.observe("DeleteAgent", agent_id="alice").code,
        ]

    assert codes == [grpc.StatusCode.INTERNAL] * 8
    assert _state(service, _HOSTS) == before
    session.save_memory(key="plan", content="still here")
