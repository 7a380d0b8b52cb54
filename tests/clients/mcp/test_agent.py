"""The server of an agent: it has a host key, opens a conversation, and keeps it open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from muniment import Classification
from muniment_server.domain import tokens
from tests.clients.mcp.conftest import COMMAND, serving, talking
from tests.support import answers
from tests.support.services import new_host_key

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
MUNIMENT = str(Path(sys.executable).with_name("muniment"))
WAYS = [(COMMAND,), (MUNIMENT, "mcp")]


@pytest.fixture
def key(service, owner):
    """A key that reaches up to CONFIDENTIAL, and may do nothing but open sessions. It knows `alice`."""
    owner.update_agent("alice", known_from=PUBLIC)
    made = new_host_key(service.database, "acme", answers.CONFIDENTIAL)
    with service.database.as_owner() as database:
        only = "UPDATE vault.host_key SET only_service = 'SessionService' WHERE key_hash = %s"
        database.execute(only, [tokens.digest(made)])
    return made


def refused(service, command, *arguments, **variables):
    """How it ends that cannot begin: exit status and stderr."""
    environment = {"MUNIMENT_ADDRESS": service.address, **variables}
    done = subprocess.run(
        [*command, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("way", WAYS, ids=["muniment-mcp", "muniment mcp"])
@pytest.mark.anyio
async def test_each_start_has_a_conversation_of_its_own_which_ends_with_it(service, owner, key, way):
    for _ in range(2):
        async with serving(service, key, *way, "--agent", "alice") as model:
            assert (await model.does("memory_save", key="tea", content="Assam"))["classification"] == "PUBLIC"
            [session] = owner.list_sessions("alice")
            assert (session.taint, session.ceiling) == (PUBLIC, CONFIDENTIAL)

    assert list(owner.list_sessions("alice")) == []
    sessions = owner.list_sessions("alice", include_closed=True)
    assert len({session.conversation_id for session in sessions}) == 2


@pytest.mark.anyio
async def test_a_conversation_that_is_named_goes_on_at_its_level(service, key):
    named = ("--agent", "alice", "--conversation", "chat-42")
    async with serving(service, key, COMMAND, *named, "--taint", "internal") as model:
        assert (await model.does("memory_save", key="plan", content="x"))["classification"] == "INTERNAL"
    async with serving(service, key, COMMAND, *named) as model:
        assert (await model.does("memory_save", key="plan", content="y"))["classification"] == "INTERNAL"


@pytest.mark.anyio
async def test_a_raise_by_the_host_is_followed(service, owner, key):
    async with serving(service, key, COMMAND, "--agent", "alice") as model:
        [session] = owner.list_sessions("alice")
        owner.raise_taint(session, CONFIDENTIAL)
        assert (await model.does("memory_save", key="plan", content="x"))["classification"] == "CONFIDENTIAL"


@pytest.mark.anyio
async def test_what_a_model_does_after_its_session_has_expired_succeeds(owner, clock):
    with owner.conversation("alice") as conversation:
        async with talking(conversation) as model:
            clock.advance(days=2)
            assert (await model.does("memory_save", key="plan", content="x"))["key"] == "plan"


@pytest.mark.parametrize("way", WAYS, ids=["muniment-mcp", "muniment mcp"])
def test_a_key_that_reaches_more_than_it_needs_is_named(service, owner, key, way):
    status, said = refused(service, way, "--agent", "alice", MUNIMENT_HOST_KEY=key)
    assert status == 0
    assert "the conversation is at PUBLIC, but MUNIMENT_HOST_KEY reaches CONFIDENTIAL" in said
    assert key not in said

    low = new_host_key(service.database, "acme", answers.PUBLIC)
    assert refused(service, way, "--agent", "alice", MUNIMENT_HOST_KEY=low) == (0, "")


@pytest.mark.parametrize("way", WAYS, ids=["muniment-mcp", "muniment mcp"])
def test_what_cannot_be_opened_is_said_at_once(service, owner, opened, key, way):
    token = opened(PUBLIC).token
    owner.open_session("alice", CONFIDENTIAL, conversation_id="deep")
    deep = ("--conversation", "deep", "--taint", "internal")
    for arguments, variables, expected in (
        ((), {}, "--agent needs a host key: see `muniment host-key create`"),
        ((), {"MUNIMENT_HOST_KEY": token}, "MUNIMENT_HOST_KEY is not a host key that opens sessions"),
        ((), {"MUNIMENT_HOST_KEY": "mun_h_1_x"}, "MUNIMENT_HOST_KEY is not a host key that opens sessions"),
        (("--taint", "restricted"), {"MUNIMENT_HOST_KEY": key}, "no conversation can be opened: CEILING_EXCEEDED"),
        (deep, {"MUNIMENT_HOST_KEY": service.host().token}, "no conversation can be opened: CONVERSATION_TAINTED"),
    ):
        status, said = refused(service, way, "--agent", "alice", *arguments, **variables)
        assert (status, expected in said) == (1, True), said
        assert not any(value in said for value in variables.values())
    status, said = refused(service, way, "--agent", "bob", MUNIMENT_HOST_KEY=key)
    assert (status, "AGENT_NOT_FOUND" in said) == (1, True)


@pytest.mark.parametrize("way", WAYS, ids=["muniment-mcp", "muniment mcp"])
def test_options_that_do_not_fit_together_are_refused(service, way):
    for arguments, expected in (
        (("--taint", "public"), "--taint and --conversation are for --agent NAME"),
        (("--conversation", "chat"), "--taint and --conversation are for --agent NAME"),
        (("--http", "127.0.0.1:0", "--agent", "alice"), "are not for --http"),
        (("--agent", "alice", "--taint", "secret"), "public"),
    ):
        status, said = refused(service, way, *arguments)
        assert (status, expected in " ".join(said.split())) == (2, True), said
