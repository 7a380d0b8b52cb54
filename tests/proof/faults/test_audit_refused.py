"""No audit row, no effect (law 7), when the row cannot be written."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.ids import ItemId
from muniment_server.domain.items import Version
from muniment_server.items import paging
from muniment_server.monitor.policy import Flow
from tests.rpcs import RPCS, World, filled, observe
from tests.support.invariants import broken_invariants
from tests.support.labels import untrusted
from tests.support.methods import POLICIES, takes_etag
from tests.support.services import Caller, Outcome, Service

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_EVERYTHING = """
SELECT (SELECT array_agg(item::text ORDER BY item::text) FROM {level}.item) AS items,
       (SELECT array_agg(revision::text ORDER BY revision::text) FROM {level}.revision) AS revisions,
       (SELECT array_agg(audit::text ORDER BY audit::text) FROM {level}.audit) AS audits
"""
_HOSTS = """
SELECT (SELECT array_agg(agent::text ORDER BY agent::text) FROM vault.agent) AS agents,
       (SELECT array_agg(shared_block::text ORDER BY shared_block::text) FROM vault.shared_block) AS shared_blocks,
       (SELECT array_agg(block_link::text ORDER BY block_link::text) FROM vault.block_link) AS links,
       (SELECT array_agg(session::text ORDER BY session::text) FROM vault.session) AS sessions,
       (SELECT array_agg(conversation::text ORDER BY conversation::text) FROM vault.conversation) AS conversations
"""

_STALE = paging.etag(Version(ItemId(uuid.UUID(int=1)), 1))
At = Callable[[Classification | Label], Caller]


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


_WORLD = World("alice")
_NEW: list[tuple[str, dict[str, Any]]] = [
    ("SaveMemory", {"key": "new", "content": "lost"}),
    ("EditNotes", {"edits": [{"add": {"content": "lost"}}, {"update": {"note_id": _WORLD.note, "content": "lost"}}]}),
    ("EditNotes", {"edits": [{"delete": {"note_id": _WORLD.note}}]}),
    ("UpdateBlock", {"label": "new", "content": "lost"}),
]
"""Other ways to write."""
_REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("SaveMemories", {"memories": [{"key": "plan", "content": "lost", "etag": _STALE}]}),
    ("AddNote", {"content": "x" * 3000}),
    ("ListAgents", {}),
]
"""Refusals that are audited, beside stale etags."""


def _of_items(flow: Flow) -> list[tuple[str, dict[str, Any]]]:
    """A call of every method of sessions with this flow. Each write has an effect but for the audit."""
    return [(rpc, RPCS[rpc].request(_WORLD)) for rpc, method in POLICIES.items() if method.flow is flow]


def _stale(writes: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    return [(rpc, {**fields, "etag": _STALE}) for rpc, fields in writes if takes_etag(rpc)]


def _not_internal(outcomes: list[tuple[str, Outcome]]) -> dict[str, Outcome]:
    return {rpc: outcome for rpc, outcome in outcomes if outcome.code is not grpc.StatusCode.INTERNAL}


@pytest.mark.parametrize("label", Label)
def test_a_write_without_its_audit_row_has_no_effect(label: Label, service: Service, at: At) -> None:
    """With it, each has one: see tests/test_rpcs.py."""
    session, writes = at(label), _of_items(Flow.WRITE)
    _WORLD.fill(session, "kept")
    before = _state(service, _EVERYTHING.replace("{level}", label.role))
    with _no_audit(service, label.role):
        calls = [*writes, *_NEW, *_stale(writes), *_REFUSED]
        outcomes = [(rpc, observe(session, rpc, fields)) for rpc, fields in calls]

    assert _not_internal(outcomes) == {}
    assert _state(service, _EVERYTHING.replace("{level}", label.role)) == before
    assert broken_invariants(service.database) == []
    for rpc, fields in (*writes, *_NEW):  # each would have had its effect
        if not rpc.startswith("Delete") and "delete" not in repr(fields):
            assert observe(session, rpc, fields).code is grpc.StatusCode.OK, rpc


@pytest.mark.parametrize(
    "label", [Label.CONFIDENTIAL_TRUSTED, Label.CONFIDENTIAL, Label.RESTRICTED_TRUSTED, Label.RESTRICTED]
)
def test_an_audited_read_without_its_row_is_not_answered(label: Label, service: Service, at: At) -> None:
    """Every answer to a read of items has a text of one."""
    session, reads = at(label), _of_items(Flow.READ)
    _WORLD.fill(session, "what alice has hidden")
    with _no_audit(service, label.role):
        outcomes = [(rpc, observe(session, rpc, fields)) for rpc, fields in reads]

    assert _not_internal(outcomes) == {}
    assert "hidden" not in repr(outcomes)
    answers = {rpc: observe(session, rpc, fields) for rpc, fields in reads}
    assert {rpc: answer for rpc, answer in answers.items() if answer.code is not grpc.StatusCode.OK} == {}
    assert {rpc for rpc, answer in answers.items() if b"what alice has hidden" not in answer.response} == set()


def test_other_levels_are_unaffected(service: Service, at: At) -> None:
    with _no_audit(service, untrusted(CONFIDENTIAL).role):
        for level in (PUBLIC, INTERNAL, RESTRICTED):
            at(level).save_memory(key="plan", content=level.name)
            assert at(level).get_memory(key="plan").memory.content == level.name


def test_an_act_of_a_host_without_its_audit_row_has_no_effect(service: Service, host: Caller) -> None:
    session, world = filled(host, INTERNAL, word="plan", desk=service.host(name="desk"))
    acts = {rpc: row.request(world) for rpc, row in RPCS.items() if row.changes and POLICIES[rpc].for_hosts}
    declared = {"owner_agent_id": world.word, "label": "personality"}  # a block that there is
    before = _state(service, _HOSTS), _state(service, _EVERYTHING.replace("{level}", untrusted(PUBLIC).role))
    with _no_audit(service, "muniment_control"):
        outcomes = [(rpc, observe(host, rpc, fields)) for rpc, fields in acts.items()]
        outcomes.append(("CreateSharedBlock", host.observe("CreateSharedBlock", **declared)))
        outcomes.append(("CloseSession", session.observe("CloseSession")))

    assert _not_internal(outcomes) == {}
    assert (_state(service, _HOSTS), _state(service, _EVERYTHING.replace("{level}", untrusted(PUBLIC).role))) == before
    session.save_memory(key="plan", content="still here")


@pytest.mark.parametrize("label", Label)
def test_an_undelete_without_its_audit_row_has_no_effect(label: Label, service: Service, at: At, host: Caller) -> None:
    session = at(label)
    session.save_memory(key="gone", content="text")
    session.delete_memory(key="gone")
    before = _state(service, _EVERYTHING.replace("{level}", label.role))
    fields = {
        "agent_id": "alice",
        "kind": 1,
        "name": "gone",
        "classification": label.level,
        "integrity": label.integrity,
    }
    with _no_audit(service, label.role):
        code = host.observe("UndeleteItem", **fields).code

    assert code is grpc.StatusCode.INTERNAL
    assert _state(service, _EVERYTHING.replace("{level}", label.role)) == before
    assert host.observe("UndeleteItem", **fields).code is grpc.StatusCode.OK
