"""Who is let in, and that no one else learns anything."""

from __future__ import annotations

import math
import uuid
from typing import Any

import grpc
import pytest

from muniment_server.domain import tokens
from muniment_server.domain.ids import TenantNumber
from muniment_server.domain.tokens import TokenKind
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.pool import RoleConnection
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, refusal
from tests.support.labels import untrusted
from tests.support.methods import FOR_HOSTS, FOR_SESSIONS, METHODS
from tests.support.services import Caller, Service, failure_of, new_host_key, reason_of

CLOSED = "UNAUTHENTICATED CREDENTIAL_INVALID"


class Bare(Caller):
    """A caller with metadata of any kind."""

    def __init__(self, channel, *metadata):
        super().__init__(channel, "")
        self.metadata = metadata


def forms(session_token, host_key):
    """Metadata that names no one, by what is wrong with it."""
    kind, tenant, secret = session_token[:6], session_token.split("_")[2], session_token.split("_", 3)[3][:43]
    unknown = tokens.mint(TokenKind.SESSION, tenant=TenantNumber(int(tenant)), secret=b"\0" * 32)
    elsewhere = tokens.mint(TokenKind.SESSION, tenant=TenantNumber(2**63 - 1), secret=b"\0" * 32)
    bearer = {
        "empty": "", "garbled": "x", "unknown": unknown, "of no tenant": elsewhere,
        "cut short": session_token[:-1], "too long": session_token + "A", "in another case": session_token.lower(),
        "of another tenant": f"{kind}{int(tenant) + 1}_{secret}", "as a host's": f"mun_h_{tenant}_{secret}",
        "a host's as a session's": host_key.replace("mun_h_", "mun_s_")[:-9], "huge": "A" * 4000,
        "without its checksum": session_token[:-9], "with another checksum": f"{session_token[:-8]}00000000",
        "twice": f"{session_token} {session_token}",
        "with a space": f" {session_token}", "a uuid": str(uuid.uuid4()), "with a quote": session_token[:-1] + "'",
    }  # fmt: skip
    found = {name: (("authorization", f"Bearer {token}"),) for name, token in bearer.items()}
    good = ("authorization", f"Bearer {session_token}")
    return found | {
        "absent": (),
        "doubled": (good, good),
        "doubled with a host's": (good, ("authorization", f"Bearer {host_key}")),
        "another scheme": (("authorization", f"Basic {session_token}"),),
        "without a scheme": (("authorization", session_token),),
        "scheme without a space": (("authorization", f"Bearer{session_token}"),),
        "another header": (("x-authorization", f"Bearer {session_token}"),),
        "binary header": (("authorization-bin", f"Bearer {session_token}".encode()),),
    }


@pytest.fixture
def strangers(host, session):
    """Callers that no one knows, and sessions that were closed, cold and warm: by what is wrong."""
    own = session(PUBLIC)
    found = {name: Bare(host.channel, *metadata) for name, metadata in forms(own.token, host.token).items()}
    for name, warm in (("closed", False), ("closed and remembered", True)):
        closed = session(PUBLIC)
        if warm:
            closed.list_memories()
        host.close_session(session_id=closed.session_id)
        found[name] = closed
    return found


def test_every_unknown_caller_gets_the_same_unauthenticated(strangers):
    """Byte for byte: absent, garbled, unknown, closed, doubled header, wrong scheme."""
    outcomes = {name: caller.observe("GetMemory", key="plan") for name, caller in strangers.items()}

    assert reason_of(outcomes["absent"]) == "CREDENTIAL_INVALID"
    assert {name: outcome for name, outcome in outcomes.items() if outcome != outcomes["absent"]} == {}


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_case_of_the_scheme_does_not_matter(host, session, scheme):
    own = session(PUBLIC)
    for token, rpc in ((own.token, "ListMemories"), (host.token, "ListAgents")):
        assert Bare(host.channel, ("authorization", f"{scheme} {token}")).observe(rpc) == Bare(
            host.channel, ("authorization", f"Bearer {token}")
        ).observe(rpc)
        assert not reason_of(Bare(host.channel, ("authorization", f"{scheme} {token}")).observe(rpc))


@pytest.mark.parametrize("rpc", METHODS)
def test_an_unknown_caller_gets_the_same_answer_whatever_the_method(strangers, rpc):
    """Also where the request, empty as it is, breaks rules."""
    outcomes = {name: caller.observe(rpc) for name, caller in strangers.items()}

    assert {name: outcome for name, outcome in outcomes.items() if outcome != outcomes["absent"]} == {}
    assert outcomes["absent"] == strangers["absent"].observe("GetMemory", key="plan")


@pytest.mark.parametrize(
    ("rpc", "fields"),
    [
        ("SaveMemory", {"key": "", "content": ""}),
        ("SaveMemory", {"key": "\u202e", "content": "x"}),
        ("SaveMemory", {"key": "k", "content": "x", "etag": "no etag"}),
        ("SaveMemory", {"key": "k", "content": "x", "expire_time": {"seconds": 1}}),
        ("ListMemories", {"page_token": "no token"}),
        ("ListMemories", {"page_size": -1}),
        ("SearchMemories", {"query": " "}),
        ("GetSession", {"session_id": "no id"}),
        ("GetSession", {"session_id": str(uuid.uuid4())}),
        ("CloseSession", {"session_id": str(uuid.uuid4())}),
        ("RaiseTaint", {"taint": 4}),
        ("CreateAgent", {}),
        ("DeleteMemory", {"key": "k"}),
        ("AddNote", {"content": ""}),
        ("AddNote", {"content": "a\0"}),
        ("AddNote", {"content": "x" * 3000}),
        ("UpdateNote", {"note_id": str(uuid.uuid4()), "content": "x", "etag": "no etag"}),
        ("DeleteNote", {"note_id": str(uuid.uuid4())}),
        ("DeleteNote", {"note_id": "no id"}),
        ("EditNotes", {"edits": []}),
        ("EditNotes", {"edits": [{"add": {"content": "x" * 3000}}], "validate_only": True}),
        ("ListNotes", {"page_token": "no token"}),
        ("ListNotes", {"tier": 3}),
        ("SearchNotes", {"query": " "}),
        ("GetBlock", {"label": "never"}),
        ("UpdateBlock", {"label": "no label"}),
        ("EditBlock", {"label": "personality", "append": {"content": "a\0"}}),
        ("DeleteBlock", {"label": "personality"}),
        ("ListBlocks", {"page_token": "no token"}),
        ("AttachBlock", {"owner_agent_id": "a", "label": "b", "agent_id": "a"}),
        ("StorePassage", {"content": "x", "expire_time": {"seconds": 1}}),
        ("GetPassage", {"passage_id": str(uuid.uuid4())}),
        ("ListPassages", {"page_token": "no token"}),
        ("SearchPassages", {"query": " "}),
        ("DeletePassage", {"passage_id": str(uuid.uuid4())}),
        ("ImportPassages", {}),
        ("ImportPassages", {"passage": {"content": "a\0"}}),
        ("ImportPassages", {"passage": {"content": "text"}}),
        ("RenderPrompt", {"sections": [0]}),
        ("RenderPrompt", {}),
    ],
)
def test_a_closed_session_is_unauthenticated_whatever_else_is_wrong(host, session, rpc, fields):
    """Also while the server remembers it."""
    closed = session(PUBLIC)
    closed.list_memories()
    host.close_session(session_id=closed.session_id)

    assert closed.observe(rpc, **fields) == Bare(host.channel).observe(rpc, **fields)


def test_bytes_that_are_no_message_are_unauthenticated_from_no_one(host, session):
    closed = session(PUBLIC)
    closed.list_memories()
    host.close_session(session_id=closed.session_id)

    for caller in (closed, Bare(host.channel)):
        assert refusal(lambda caller=caller: caller.send("GetMemory", b"\xff\xff")) == CLOSED


def test_an_unknown_method_is_unauthenticated_from_no_one_also_while_it_is_remembered(host, session):
    closed = session(PUBLIC)
    closed.list_memories()
    host.close_session(session_id=closed.session_id)

    for caller in (Bare(host.channel), closed):
        assert failure_of(lambda caller=caller: unknown_method(caller)).code is grpc.StatusCode.UNAUTHENTICATED


def unknown_method(caller, path="/muniment.v1.MemoryService/Teleport"):
    return caller.channel.unary_unary(path)(b"", metadata=caller.metadata, timeout=20)


def test_an_expired_session_that_is_remembered_has_expired_whatever_else_is_wrong(service, clock):
    service.agent()
    opened = service.host().open_session(agent_id="alice", taint=PUBLIC, ttl={"seconds": 60})
    session = Caller(service.channel, opened.token)
    session.list_memories()
    clock.advance(seconds=61)

    calls: list[tuple[str, dict[str, Any]]] = [
        ("GetMemory", {"key": "plan"}), ("SaveMemory", {}), ("GetSession", {}), ("AddNote", {"content": "text"}),
        ("ListNotes", {}), ("UpdateBlock", {"label": "plan"}), ("ImportPassages", {"passage": {"content": "text"}}),
        ("RenderPrompt", {}),
    ]  # fmt: skip

    outcomes = [session.observe(rpc, **fields) for rpc, fields in calls]
    assert reason_of(outcomes[0]) == "CREDENTIAL_EXPIRED"
    assert [outcome for outcome in outcomes if outcome != outcomes[0]] == []


def test_a_revoked_host_key_is_refused(shared, tenant, host):
    """It is never cached."""
    key = new_host_key(shared.database, tenant, CONFIDENTIAL)
    revoked = Caller(shared.channel, key)
    revoked.list_agents()
    with shared.database.as_owner() as owner:
        owner.execute("UPDATE vault.host_key SET revoke_time = now() WHERE key_hash = %s", [tokens.digest(key)])

    assert revoked.observe("ListAgents") == Bare(shared.channel).observe("ListAgents")
    host.list_agents()


def test_sessions_outlive_the_host_key_that_opened_them(shared, tenant, host):
    host.create_agent(agent_id="alice", ceiling=CONFIDENTIAL)
    key = new_host_key(shared.database, tenant, CONFIDENTIAL)
    opened = Caller(shared.channel, key).open_session(agent_id="alice", taint=PUBLIC)
    with shared.database.as_owner() as owner:
        owner.execute("UPDATE vault.host_key SET revoke_time = now() WHERE key_hash = %s", [tokens.digest(key)])

    assert Caller(shared.channel, opened.token).get_session().session.session_id == opened.session.session_id


def test_a_session_that_has_ended_is_not_remembered(shared, host, session):
    """Otherwise its token would go before those that are new, each time that it is looked up."""
    ended = session(PUBLIC)
    ended.list_memories()
    host.close_session(session_id=ended.session_id)

    assert refusal(ended.list_memories) == CLOSED

    credentials = shared.server._admission._credentials
    assert credentials.remembered(tokens.parse(ended.token), seconds=math.inf) is None


def test_a_miss_is_not_cached(shared, tenant, session):
    """A token that is tried before it is real works once it is."""
    session(PUBLIC)
    with shared.database.as_owner() as owner:
        number = owner.execute("SELECT tenant FROM vault.tenant WHERE name = %s", [tenant]).fetchone()[0]
        token = tokens.mint(TokenKind.SESSION, tenant=number, secret=uuid.uuid4().bytes * 2)
        early = Caller(shared.channel, token)
        assert refusal(early.get_session) == CLOSED
        owner.execute("UPDATE vault.session SET token_hash = %s WHERE tenant = %s", [tokens.digest(token), number])

    assert early.get_session().session.taint == PUBLIC


@pytest.mark.parametrize("rpc", sorted(FOR_HOSTS))
def test_a_method_for_hosts_refuses_a_session(at, rpc):
    """Before the request is looked at: an empty one would break rules."""
    outcome = at(PUBLIC).observe(rpc)

    assert (outcome.code.name, reason_of(outcome)) == ("PERMISSION_DENIED", "PRINCIPAL_NOT_ALLOWED")


@pytest.mark.parametrize("rpc", sorted(FOR_SESSIONS))
def test_a_method_for_sessions_refuses_a_host(host, rpc):
    outcome = host.observe(rpc)

    assert (outcome.code.name, reason_of(outcome)) == ("PERMISSION_DENIED", "PRINCIPAL_NOT_ALLOWED")


def test_c47_metadata_and_unknown_fields_say_nothing_about_the_level(at):
    """Nor about the agent."""
    session = at(PUBLIC)
    at(INTERNAL).save_memory(key="plan", content="above")
    session.metadata += (("x-taint", "4"), ("x-agent", "bob"), ("x-classification", "RESTRICTED"), ("taint", "4"))
    request = b"\x0a\x04plan\x12\x04text" + b"\xa0\x06\x04" + b"\x98\x06\x04" + b"\x52\x0aRESTRICTED"

    saved = session.send("SaveMemory", request).memory

    assert saved.classification == PUBLIC
    assert session.get_memory(key="plan").memory.content == "text"


def test_tokens_of_many_tenants_are_looked_up_together(service: Service, monkeypatch: pytest.MonkeyPatch):
    """Guesses name any tenant. With a round trip for each, they held up everybody who had just opened a session."""
    texts = [
        service.session(PUBLIC).token,
        service.session(INTERNAL, tenant="other").token,
        new_host_key(service.database, "third", CONFIDENTIAL),
    ]
    guesses = [tokens.Token(TokenKind.SESSION, TenantNumber(number), b"\0" * 32) for number in range(1000, 1100)]
    monkeypatch.setattr(RoleConnection, "read", None)  # a round trip of its own

    found = service.scopes.find_holders([*filter(None, map(tokens.parse, texts)), *guesses], Deadline(5))

    holders = [found[token] for text in texts if (token := tokens.parse(text))]
    assert [getattr(holder, "taint", None) or getattr(holder, "ceiling", None) for holder in holders] == [
        untrusted(PUBLIC), untrusted(INTERNAL), CONFIDENTIAL,
    ]  # fmt: skip
    assert len(found) == 3 + len(guesses)
