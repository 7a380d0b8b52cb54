"""Every ErrorReason of the contract, provoked over the network with the code of its example."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable

import pytest
from google.rpc import error_details_pb2

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.holds import hold_agent
from muniment_server.domain.classification import Integrity
from muniment_server.transport.admission.pools import Limits
from tests.support.answers import INTERNAL, PUBLIC, RESTRICTED, detail, packed_status
from tests.support.clock import Clock
from tests.support.concurrency import in_background, locked, wait_until_blocked
from tests.support.services import Caller, Outcome, failure_of, new_host_key, reason_of, serving
from tests.support.statuses import CODES

ID = str(uuid.UUID(int=1))
USER = 2
MEMORY = 1

PROVOKED: dict[str, Callable[..., Outcome]] = {}
"""What provokes each reason, by its name."""


def provokes(function):
    """Register the function that provokes the reason after which it is named."""
    PROVOKED[function.__name__.upper()] = function
    return function


@provokes
def field_invalid(service):
    return failure_of(service.session(PUBLIC).save_memory, key="", content="text")


@provokes
def agent_held(service):
    service.agent()
    with connect_operator(service.database.admin) as operator:
        hold_agent(operator, "acme", "alice", "case 12")
    return failure_of(service.host().erase_items, agent_id="alice", kind=MEMORY, name="plan")


@provokes
def page_token_invalid(service):
    one, other = service.session(PUBLIC), service.session(PUBLIC)
    for key in ("a", "b"):
        one.save_memory(key=key, content="text")
    return failure_of(other.list_memories, page_token=one.list_memories(page_size=1).next_page_token)


@provokes
def credential_invalid(service):
    session = service.session(PUBLIC)
    session.close_session()
    return failure_of(session.list_memories)


@provokes
def credential_expired(service):
    session = service.session(PUBLIC)
    Clock(service.database).advance(days=2)
    return failure_of(session.list_memories)


@provokes
def principal_not_allowed(service):
    session = service.session(PUBLIC)
    return failure_of(session.raise_taint, session_id=session.session_id, taint=INTERNAL)


@provokes
def ceiling_exceeded(service):
    service.agent()
    return failure_of(service.host(ceiling=INTERNAL).open_session, agent_id="alice", taint=RESTRICTED)


@provokes
def session_read_only(service):
    opened = service.host().open_session(agent_id=service.agent(), read_only=True)
    return failure_of(service.host().session(opened).save_memory, key="key", content="text")


@provokes
def integrity_exceeded(service):
    key = new_host_key(service.database, "acme", RESTRICTED, integrity=Integrity.UNTRUSTED)
    return failure_of(Caller(service.channel, key).open_session, agent_id=service.agent(), integrity=Integrity.TRUSTED)


@provokes
def agent_ceiling_exceeded(service):
    service.host().create_agent(agent_id="alice", ceiling=INTERNAL)
    return failure_of(service.host().open_session, agent_id="alice", taint=RESTRICTED)


@provokes
def conversation_ceiling_exceeded(service):
    service.host().create_agent(agent_id="alice", known_from=PUBLIC)
    session = service.host(ceiling=PUBLIC).open_session(agent_id="alice").session
    return failure_of(service.host().raise_taint, session_id=session.session_id, taint=INTERNAL)


@provokes
def agent_above_ceiling(service):
    service.host().create_agent(agent_id="alice", known_from=PUBLIC)
    return failure_of(service.host(ceiling=PUBLIC).update_agent, agent_id="alice", display_name="Alice")


@provokes
def agent_not_found(service):
    service.agent()
    return failure_of(service.host("globex").get_agent, agent_id="alice")


@provokes
def session_not_found(service):
    session = service.session(PUBLIC)
    session.close_session()
    return failure_of(service.host().raise_taint, session_id=session.session_id, taint=INTERNAL)


@provokes
def memory_not_found(service):
    service.session(RESTRICTED).save_memory(key="plan", content="text")
    return failure_of(service.session(PUBLIC).get_memory, key="plan")


@provokes
def agent_exists(service):
    return failure_of(service.host().create_agent, agent_id=service.agent())


@provokes
def conversation_tainted(service):
    service.session(INTERNAL, conversation_id="c")
    return failure_of(service.host().open_session, agent_id="alice", taint=PUBLIC, conversation_id="c")


@provokes
def write_level_mismatch(service):
    service.session(PUBLIC).save_memory(key="plan", content="text")
    return failure_of(service.session(INTERNAL).delete_memory, key="plan")


@provokes
def etag_stale(service):
    session = service.session(PUBLIC)
    etag = session.save_memory(key="plan", content="1").memory.etag
    session.save_memory(key="plan", content="2")
    return failure_of(session.save_memory, key="plan", content="3", etag=etag)


@provokes
def taint_changed(service):
    session = service.session(PUBLIC)
    for key in ("a", "b"):
        session.save_memory(key=key, content="text")
    token = session.list_memories(page_size=1).next_page_token
    service.host().raise_taint(session_id=session.session_id, taint=INTERNAL)
    return failure_of(session.list_memories, page_token=token)


@provokes
def overloaded(service):
    with serving(service.database, limits=Limits(threads=1, max_in_flight=1)) as small:
        session = small.session(PUBLIC)
        with locked(small, session):
            thread, _ = in_background(session.save_memory, key="plan", content="text")
            wait_until_blocked(small)
            refused = failure_of(session.list_memories)
        thread.join(20)
    return refused


@provokes
def rate_limited(service):
    service.host().create_agent(agent_id="alice", limits={"calls_per_second": 1})
    session = service.session(PUBLIC)
    for _ in range(10):
        session.list_memories()
    return failure_of(session.list_memories)


@provokes
def quota_exceeded(service):
    service.host().create_agent(agent_id="alice", limits={"max_items": 0})
    return failure_of(service.session(RESTRICTED).save_memory, key="plan", content="text")


@provokes
def storage_full(service):
    session = service.session(PUBLIC)
    with service.database.as_owner() as owner:
        owner.execute(
            "CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz LANGUAGE plpgsql STABLE AS"
            " $$ BEGIN RAISE disk_full; END $$"
        )
    return failure_of(session.save_memory, key="plan", content="text")


@provokes
def unavailable(service):
    session = service.session(PUBLIC)
    service.server.gate.open = False
    return failure_of(session.list_memories)


@provokes
def deadline_exceeded(service):
    """As the server tells it: a client stops listening at its own deadline."""
    session = service.session(PUBLIC)
    with service.database.as_owner() as owner:
        owner.execute("ALTER FUNCTION vault.clock() SET statement_timeout = 1")  # keeps it from being inlined
        owner.execute(
            "CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz LANGUAGE plpgsql STABLE AS"
            " $$ BEGIN RAISE query_canceled; END $$"
        )
    return failure_of(session.save_memory, key="plan", content="text")


@provokes
def method_unknown(service):
    session = service.session(PUBLIC)
    teleport = session.channel.unary_unary("/muniment.v1.MemoryService/Teleport")
    return failure_of(lambda: teleport(b"", metadata=session.metadata, timeout=20))


@provokes
def internal(service):
    session = service.session(PUBLIC)
    with service.database.as_owner() as owner:
        owner.execute("REVOKE SELECT ON muniment_public.item FROM muniment_public")
    return failure_of(session.list_memories)


@provokes
def note_not_found(service):
    session = service.session(PUBLIC)
    session.add_note(content="text", note_id=ID)
    return failure_of(session.update_note, note_id=ID, content="new", tier=USER)


@provokes
def memory_exists(service):
    session = service.session(INTERNAL)
    for key in ("one", "other"):
        session.save_memory(key=key, content="text")
    return failure_of(session.rename_memory, key="one", new_key="other")


@provokes
def note_exists(service):
    session = service.session(PUBLIC)
    session.add_note(content="text", note_id=ID)
    return failure_of(session.add_note, content="other", note_id=ID)


@provokes
def tier_disabled(service):
    session = service.session(PUBLIC)
    service.host().update_agent(agent_id="alice", memory_settings={"user_profile_enabled": False})
    return failure_of(session.add_note, content="text", tier=USER)


@provokes
def budget_exceeded(service):
    return failure_of(service.session(PUBLIC).add_note, content="x" * 2201)


@provokes
def block_not_found(service):
    service.session(RESTRICTED).update_block(label="plan", content="text")
    return failure_of(service.session(PUBLIC).get_block, label="plan")


@provokes
def block_exists(service):
    shared = {"owner_agent_id": service.agent(), "label": "plan"}
    service.host().create_shared_block(**shared)
    return failure_of(service.host().create_shared_block, **shared)


@provokes
def item_exists(service):
    session = service.session(PUBLIC)
    session.save_memory(key="k", content="text")
    session.delete_memory(key="k")
    session.save_memory(key="k", content="text")
    return failure_of(
        service.host().undelete_item, agent_id=service.agent(), kind=MEMORY, name="k", classification=PUBLIC
    )


def editing(service, **edit):
    """What comes of an edit of a block of three lines."""
    session = service.session(PUBLIC)
    session.update_block(label="plan", content="one\ntwo\nthree")
    return failure_of(session.edit_block, label="plan", **edit)


@provokes
def text_not_found(service):
    return editing(service, replace={"old": "four", "new": "4"})


@provokes
def text_not_unique(service):
    return editing(service, replace={"old": "e", "new": "E"})


@provokes
def line_out_of_range(service):
    return editing(service, insert={"line": 9, "content": "ten"})


@provokes
def block_too_large(service):
    return editing(service, append={"content": "x" * 65_536})


@provokes
def shared_block_not_found(service):
    service.agent("bob")
    return failure_of(service.host().attach_block, owner_agent_id=service.agent(), label="personality", agent_id="bob")


@provokes
def block_not_attached(service):
    link = {"owner_agent_id": service.agent(), "label": "personality", "agent_id": service.agent("bob")}
    service.host().create_shared_block(owner_agent_id="alice", label="personality")
    service.host().attach_block(**link)
    service.host().detach_block(**link)
    return failure_of(service.host().detach_block, **link)


@provokes
def passage_not_found(service):
    service.session(RESTRICTED).store_passage(content="text", passage_id=ID)
    return failure_of(service.session(PUBLIC).get_passage, passage_id=ID)


@provokes
def passage_exists(service):
    session = service.session(PUBLIC)
    session.store_passage(content="text", passage_id=ID)
    return failure_of(session.store_passage, content="other", passage_id=ID)


def _asked(service, asks, **fields):
    """The release of a memory, which is new."""
    service.session(PUBLIC, conversation_id="desk").save_memory(key="plan", content="text")
    text = {"content_sha256": hashlib.sha256(b"text").hexdigest()}
    named = {"agent_id": "alice", "kind": 1, "name": "plan", "source_classification": 1, "classification": 1}
    asked = asks.request_release(**text, **named, integrity=1, **fields).release
    return {"release_id": asked.release_id, **text}


@provokes
def release_right_missing(service):
    held, other = _asked(service, service.host()), service.host(name="other")
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.host_key SET may_endorse = FALSE")
    refused = failure_of(other.approve_release, **held)
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.host_key SET may_endorse = TRUE")
    return refused


@provokes
def release_not_found(service):
    return failure_of(service.host().get_release, release_id=str(uuid.uuid4()))


@provokes
def release_not_open(service):
    held = _asked(service, service.host())
    service.host().reject_release(release_id=held["release_id"])
    return failure_of(service.host(name="other").approve_release, **held)


@provokes
def release_expired(service):
    held = _asked(service, service.host())
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.release SET expire_time = now()")
    return failure_of(service.host(name="other").approve_release, **held)


@provokes
def release_own_request(service):
    return failure_of(service.host().approve_release, **_asked(service, service.host()))


@provokes
def release_hash_mismatch(service):
    held = _asked(service, service.host()) | {"content_sha256": "ab" * 32}
    return failure_of(service.host(name="other").approve_release, **held)


@provokes
def release_source_changed(service):
    held = _asked(service, service.host())
    service.session(PUBLIC, conversation_id="desk").save_memory(key="plan", content="another")
    return failure_of(service.host(name="other").approve_release, **held)


def test_every_reason_of_the_contract_is_provoked():
    missing = sorted(CODES.keys() - PROVOKED.keys())
    assert missing == [], (
        f"add a function with @provokes to tests/calls/transport/test_reasons.py, named after each: {missing}"
    )


@pytest.mark.parametrize("reason", PROVOKED)
def test_the_reason_is_sent_with_its_code(service, reason):
    outcome = PROVOKED[reason](service)
    info = detail(outcome, error_details_pb2.ErrorInfo)

    assert (outcome.code.name, reason_of(outcome), info.domain) == (CODES[reason], reason, "muniment.v1")
    assert packed_status(outcome).code == outcome.code.value[0]
    assert packed_status(outcome).message == outcome.message
    assert packed_status(outcome).ByteSize() < 4096
    assert {name for name, _ in outcome.trailers} == {"grpc-status-details-bin"}
