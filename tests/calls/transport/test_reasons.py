"""Every ErrorReason of the contract, provoked over the network with the code of its example."""

from __future__ import annotations

import uuid

import grpc
import pytest
from google.rpc import error_details_pb2

from muniment.v1 import error_pb2
from muniment_server.transport.admission.pools import Limits
from tests.support.answers import INTERNAL, PUBLIC, RESTRICTED, detail, packed_status
from tests.support.concurrency import in_background, locked, wait_until_blocked
from tests.support.services import failure_of, reason_of, serving

ID = str(uuid.UUID(int=1))
USER = 2
MEMORY = 1


def field_invalid(service):
    return failure_of(service.session(PUBLIC).save_memory, key="", content="text")


def page_token_invalid(service):
    one, other = service.session(PUBLIC), service.session(PUBLIC)
    for key in ("a", "b"):
        one.save_memory(key=key, content="text")
    return failure_of(other.list_memories, page_token=one.list_memories(page_size=1).next_page_token)


def credential_invalid(service):
    session = service.session(PUBLIC)
    session.close_session()
    return failure_of(session.list_memories)


def principal_not_allowed(service):
    session = service.session(PUBLIC)
    return failure_of(session.raise_taint, session_id=session.session_id, taint=INTERNAL)


def ceiling_exceeded(service):
    service.agent()
    return failure_of(service.host(ceiling=INTERNAL).open_session, agent_id="alice", taint=RESTRICTED)


def agent_ceiling_exceeded(service):
    service.host().create_agent(agent_id="alice", ceiling=INTERNAL)
    return failure_of(service.host().open_session, agent_id="alice", taint=RESTRICTED)


def agent_not_found(service):
    service.agent()
    return failure_of(service.host("globex").get_agent, agent_id="alice")


def session_not_found(service):
    session = service.session(PUBLIC)
    session.close_session()
    return failure_of(service.host().raise_taint, session_id=session.session_id, taint=INTERNAL)


def memory_not_found(service):
    service.session(RESTRICTED).save_memory(key="plan", content="text")
    return failure_of(service.session(PUBLIC).get_memory, key="plan")


def agent_exists(service):
    return failure_of(service.host().create_agent, agent_id=service.agent())


def conversation_tainted(service):
    service.session(INTERNAL, conversation_id="c")
    return failure_of(service.host().open_session, agent_id="alice", taint=PUBLIC, conversation_id="c")


def write_level_mismatch(service):
    service.session(PUBLIC).save_memory(key="plan", content="text")
    return failure_of(service.session(INTERNAL).delete_memory, key="plan")


def etag_stale(service):
    session = service.session(PUBLIC)
    etag = session.save_memory(key="plan", content="1").memory.etag
    session.save_memory(key="plan", content="2")
    return failure_of(session.save_memory, key="plan", content="3", etag=etag)


def taint_changed(service):
    session = service.session(PUBLIC)
    for key in ("a", "b"):
        session.save_memory(key=key, content="text")
    token = session.list_memories(page_size=1).next_page_token
    service.host().raise_taint(session_id=session.session_id, taint=INTERNAL)
    return failure_of(session.list_memories, page_token=token)


def overloaded(service):
    with serving(service.database, limits=Limits(threads=1, max_in_flight=1)) as small:
        session = small.session(PUBLIC)
        with locked(small, session):
            thread, _ = in_background(session.save_memory, key="plan", content="text")
            wait_until_blocked(small)
            refused = failure_of(session.list_memories)
        thread.join(20)
    return refused


def rate_limited(service):
    service.host().create_agent(agent_id="alice", limits={"calls_per_second": 1})
    session = service.session(PUBLIC)
    for _ in range(10):
        session.list_memories()
    return failure_of(session.list_memories)


def quota_exceeded(service):
    service.host().create_agent(agent_id="alice", limits={"max_items": 0})
    return failure_of(service.session(RESTRICTED).save_memory, key="plan", content="text")


def storage_full(service):
    session = service.session(PUBLIC)
    with service.database.as_owner() as owner:
        owner.execute(
            "CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz LANGUAGE plpgsql STABLE AS"
            " $$ BEGIN RAISE disk_full; END $$"
        )
    return failure_of(session.save_memory, key="plan", content="text")


def unavailable(service):
    session = service.session(PUBLIC)
    service.server.gate.open = False
    return failure_of(session.list_memories)


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


def method_unknown(service):
    session = service.session(PUBLIC)
    teleport = session.channel.unary_unary("/muniment.v1.MemoryService/Teleport")
    return failure_of(lambda: teleport(b"", metadata=session.metadata, timeout=20))


def internal(service):
    session = service.session(PUBLIC)
    with service.database.as_owner() as owner:
        owner.execute("REVOKE SELECT ON muniment_public.item FROM muniment_public")
    return failure_of(session.list_memories)


def note_not_found(service):
    session = service.session(PUBLIC)
    session.add_note(content="text", note_id=ID)
    return failure_of(session.update_note, note_id=ID, content="new", tier=USER)


def memory_exists(service):
    session = service.session(INTERNAL)
    for key in ("one", "other"):
        session.save_memory(key=key, content="text")
    return failure_of(session.rename_memory, key="one", new_key="other")


def note_exists(service):
    session = service.session(PUBLIC)
    session.add_note(content="text", note_id=ID)
    return failure_of(session.add_note, content="other", note_id=ID)


def tier_disabled(service):
    session = service.session(PUBLIC)
    service.host().update_agent(agent_id="alice", memory_settings={"user_profile_enabled": False})
    return failure_of(session.add_note, content="text", tier=USER)


def budget_exceeded(service):
    return failure_of(service.session(PUBLIC).add_note, content="x" * 2201)


def block_not_found(service):
    service.session(RESTRICTED).update_block(label="plan", content="text")
    return failure_of(service.session(PUBLIC).get_block, label="plan")


def block_exists(service):
    shared = {"owner_agent_id": service.agent(), "label": "plan"}
    service.host().create_shared_block(**shared)
    return failure_of(service.host().create_shared_block, **shared)


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


def text_not_found(service):
    return editing(service, replace={"old": "four", "new": "4"})


def text_not_unique(service):
    return editing(service, replace={"old": "e", "new": "E"})


def line_out_of_range(service):
    return editing(service, insert={"line": 9, "content": "ten"})


def block_too_large(service):
    return editing(service, append={"content": "x" * 65_536})


def shared_block_not_found(service):
    service.agent("bob")
    return failure_of(service.host().attach_block, owner_agent_id=service.agent(), label="personality", agent_id="bob")


def block_not_attached(service):
    link = {"owner_agent_id": service.agent(), "label": "personality", "agent_id": service.agent("bob")}
    service.host().create_shared_block(owner_agent_id="alice", label="personality")
    service.host().attach_block(**link)
    service.host().detach_block(**link)
    return failure_of(service.host().detach_block, **link)


def passage_not_found(service):
    service.session(RESTRICTED).store_passage(content="text", passage_id=ID)
    return failure_of(service.session(PUBLIC).get_passage, passage_id=ID)


def passage_exists(service):
    session = service.session(PUBLIC)
    session.store_passage(content="text", passage_id=ID)
    return failure_of(session.store_passage, content="other", passage_id=ID)


def prompt_too_large(service):
    session = service.session(PUBLIC)
    for number in range(40):
        session.update_block(label=f"b{number}", content="x" * 65_536)
    return failure_of(session.render_prompt)


PROVOKED = {
    "FIELD_INVALID": (field_invalid, grpc.StatusCode.INVALID_ARGUMENT),
    "PAGE_TOKEN_INVALID": (page_token_invalid, grpc.StatusCode.INVALID_ARGUMENT),
    "CREDENTIAL_INVALID": (credential_invalid, grpc.StatusCode.UNAUTHENTICATED),
    "PRINCIPAL_NOT_ALLOWED": (principal_not_allowed, grpc.StatusCode.PERMISSION_DENIED),
    "CEILING_EXCEEDED": (ceiling_exceeded, grpc.StatusCode.PERMISSION_DENIED),
    "AGENT_CEILING_EXCEEDED": (agent_ceiling_exceeded, grpc.StatusCode.PERMISSION_DENIED),
    "AGENT_NOT_FOUND": (agent_not_found, grpc.StatusCode.NOT_FOUND),
    "SESSION_NOT_FOUND": (session_not_found, grpc.StatusCode.NOT_FOUND),
    "MEMORY_NOT_FOUND": (memory_not_found, grpc.StatusCode.NOT_FOUND),
    "MEMORY_EXISTS": (memory_exists, grpc.StatusCode.ALREADY_EXISTS),
    "AGENT_EXISTS": (agent_exists, grpc.StatusCode.ALREADY_EXISTS),
    "CONVERSATION_TAINTED": (conversation_tainted, grpc.StatusCode.FAILED_PRECONDITION),
    "WRITE_LEVEL_MISMATCH": (write_level_mismatch, grpc.StatusCode.FAILED_PRECONDITION),
    "ETAG_STALE": (etag_stale, grpc.StatusCode.ABORTED),
    "TAINT_CHANGED": (taint_changed, grpc.StatusCode.ABORTED),
    "OVERLOADED": (overloaded, grpc.StatusCode.RESOURCE_EXHAUSTED),
    "RATE_LIMITED": (rate_limited, grpc.StatusCode.RESOURCE_EXHAUSTED),
    "QUOTA_EXCEEDED": (quota_exceeded, grpc.StatusCode.RESOURCE_EXHAUSTED),
    "STORAGE_FULL": (storage_full, grpc.StatusCode.RESOURCE_EXHAUSTED),
    "UNAVAILABLE": (unavailable, grpc.StatusCode.UNAVAILABLE),
    "DEADLINE_EXCEEDED": (deadline_exceeded, grpc.StatusCode.DEADLINE_EXCEEDED),
    "METHOD_UNKNOWN": (method_unknown, grpc.StatusCode.UNIMPLEMENTED),
    "INTERNAL": (internal, grpc.StatusCode.INTERNAL),
    "NOTE_NOT_FOUND": (note_not_found, grpc.StatusCode.NOT_FOUND),
    "NOTE_EXISTS": (note_exists, grpc.StatusCode.ALREADY_EXISTS),
    "TIER_DISABLED": (tier_disabled, grpc.StatusCode.FAILED_PRECONDITION),
    "BUDGET_EXCEEDED": (budget_exceeded, grpc.StatusCode.FAILED_PRECONDITION),
    "BLOCK_NOT_FOUND": (block_not_found, grpc.StatusCode.NOT_FOUND),
    "BLOCK_EXISTS": (block_exists, grpc.StatusCode.ALREADY_EXISTS),
    "ITEM_EXISTS": (item_exists, grpc.StatusCode.ALREADY_EXISTS),
    "TEXT_NOT_FOUND": (text_not_found, grpc.StatusCode.FAILED_PRECONDITION),
    "TEXT_NOT_UNIQUE": (text_not_unique, grpc.StatusCode.FAILED_PRECONDITION),
    "LINE_OUT_OF_RANGE": (line_out_of_range, grpc.StatusCode.FAILED_PRECONDITION),
    "BLOCK_TOO_LARGE": (block_too_large, grpc.StatusCode.FAILED_PRECONDITION),
    "SHARED_BLOCK_NOT_FOUND": (shared_block_not_found, grpc.StatusCode.NOT_FOUND),
    "BLOCK_NOT_ATTACHED": (block_not_attached, grpc.StatusCode.NOT_FOUND),
    "PASSAGE_NOT_FOUND": (passage_not_found, grpc.StatusCode.NOT_FOUND),
    "PASSAGE_EXISTS": (passage_exists, grpc.StatusCode.ALREADY_EXISTS),
    "PROMPT_TOO_LARGE": (prompt_too_large, grpc.StatusCode.FAILED_PRECONDITION),
}


def test_every_reason_of_the_contract_is_provoked():
    """Whoever adds a reason adds what provokes it."""
    reasons = {name.removeprefix("ERROR_REASON_") for name, number in error_pb2.ErrorReason.items() if number}

    assert reasons == PROVOKED.keys()


@pytest.mark.parametrize("reason", PROVOKED)
def test_the_reason_is_sent_with_its_code(service, reason):
    provoke, code = PROVOKED[reason]
    outcome = provoke(service)
    info = detail(outcome, error_details_pb2.ErrorInfo)

    assert (outcome.code, reason_of(outcome), info.domain) == (code, reason, "muniment.v1")
    assert packed_status(outcome).code == code.value[0]
    assert packed_status(outcome).message == outcome.message
    assert packed_status(outcome).ByteSize() < 4096
    assert {name for name, _ in outcome.trailers} == {"grpc-status-details-bin"}
