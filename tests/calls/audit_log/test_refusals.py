"""A key sees nothing of what keys with a higher ceiling were refused."""

from __future__ import annotations

import grpc
import pytest

from muniment_server.domain import tokens
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, RESTRICTED, events, refusal
from tests.support.methods import FOR_HOSTS, FOR_SESSIONS, METHODS
from tests.support.services import Caller, new_host_key

_SERVICES = ("AgentService", "SessionService", "AuditService")
_UNDELETED = {"agent_id": "alice", "kind": 1, "name": "plan"}
_ABOVE_THE_KEY = {
    "CreateAgent": {"ceiling": RESTRICTED},
    "OpenSession": {"agent_id": "alice", "taint": RESTRICTED},
    "RaiseTaint": {"taint": RESTRICTED},
    "UndeleteItem": {**_UNDELETED, "classification": RESTRICTED},
    "GetAuditCheckpoint": {"classification": PUBLIC},
}
_ABOVE_THE_AGENT = {
    "OpenSession": {"agent_id": "alice", "taint": CONFIDENTIAL},
    "RaiseTaint": {"taint": CONFIDENTIAL},
    "UndeleteItem": {**_UNDELETED, "classification": CONFIDENTIAL},
    "AttachBlock": {"owner_agent_id": "alice", "label": "plan", "agent_id": "bob"},
}
"""Where the agent's ceiling is INTERNAL."""
REFUSED = [
    *((method, "PRINCIPAL_NOT_ALLOWED", {}) for method in sorted(FOR_SESSIONS)),
    *((method, "CEILING_EXCEEDED", fields) for method, fields in _ABOVE_THE_KEY.items()),
    *((method, "AGENT_CEILING_EXCEEDED", fields) for method, fields in _ABOVE_THE_AGENT.items()),
    ("OpenSession", "CONVERSATION_TAINTED", {"agent_id": "alice", "taint": PUBLIC, "conversation_id": "talk"}),
]


def audited(host):
    """The refusals that the audit log shows to a host: (method, outcome, level)."""
    found = [event for event in events(host) if event.outcome not in {"OK", "CLOSED"}]
    return [(event.method, event.outcome, event.classification) for event in found]


@pytest.fixture
def low(shared, tenant):
    """A host up to INTERNAL, with two agents: one at its ceiling, one below."""
    found = shared.host(tenant, INTERNAL)
    found.create_agent(agent_id="alice")
    found.create_agent(agent_id="bob", ceiling=PUBLIC)
    found.create_shared_block(owner_agent_id="alice", label="plan")
    found.open_session(agent_id="alice", taint=INTERNAL, conversation_id="talk")
    return found


@pytest.mark.parametrize(("method", "outcome", "fields"), REFUSED)
def test_c24_a_refusal_is_shown_to_keys_that_reach_the_ceiling_of_the_refused_one(
    shared, tenant, low, host, method, outcome, fields
):
    high = shared.host(tenant, CONFIDENTIAL)
    if method == "RaiseTaint":
        opened = low.open_session(agent_id="alice", taint=PUBLIC)
        fields = {"session_id": opened.session.session_id, **fields}

    assert refusal(lambda: high.call(method, **fields)).endswith(f" {outcome}")

    level = RESTRICTED if outcome == "CEILING_EXCEEDED" else CONFIDENTIAL
    assert audited(low) == []
    assert audited(high) == ([] if level > CONFIDENTIAL else [(method, outcome, level)])
    assert audited(host) == [(method, outcome, level)]


@pytest.mark.parametrize("method", sorted(FOR_HOSTS | {"GetSession", "CloseSession"}))
def test_c24_so_is_what_a_key_for_another_service_was_refused(shared, tenant, low, method):
    key = new_host_key(shared.database, tenant, CONFIDENTIAL)
    refused = 0
    for service in _SERVICES:
        with shared.database.as_owner() as owner:
            owner.execute(
                "UPDATE vault.host_key SET only_service = %s WHERE key_hash = %s", [service, tokens.digest(key)]
            )
        refused += Caller(shared.channel, key).observe(method).code is grpc.StatusCode.PERMISSION_DENIED

    assert refused >= 2
    assert audited(low) == []
    assert audited(shared.host(tenant, CONFIDENTIAL)) == [(method, "PRINCIPAL_NOT_ALLOWED", CONFIDENTIAL)] * refused


def test_the_refusals_of_all_methods_are_looked_at():
    assert set(METHODS) == FOR_SESSIONS | FOR_HOSTS | {"GetSession", "CloseSession"}
