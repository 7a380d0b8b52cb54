"""Each client continues a conversation whose session has expired, and never below its taint."""

from __future__ import annotations

import json
import subprocess
import tempfile
from contextlib import contextmanager

import pytest

from tests.clients.conformance.clients import CLIENTS
from tests.clients.conformance.servers import data_folder, serving
from tests.clients.conformance.toolchains import make

pytestmark = pytest.mark.proof

_CLIENTS = [client for client in CLIENTS if client.repeats]
"""Stubs alone have no conversations."""
_CHAT = "conversation ada chat"
_WAIT = {"wait": True}


@pytest.fixture(scope="module")
def server():
    with data_folder() as folder, serving("plaintext", folder) as ours:
        yield ours


@pytest.fixture(params=_CLIENTS, ids=lambda client: client.name)
def client(request):
    make(request.param)
    return request.param


class Played:
    """A runner that plays steps. A step that waits is played when the test calls `go_on`."""

    def __init__(self, runner):
        self._runner = runner

    def next(self):
        """The result of the next step."""
        return json.loads(self._runner.stdout.readline())

    def go_on(self):
        """Play a step that waits, and return its result."""
        self._runner.stdin.write("\n")
        self._runner.stdin.flush()
        return self.next()


@contextmanager
def playing(client, server, *steps):
    """A runner of *client*, with a tenant of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump({"scenarios": [{"name": "renewals", "steps": steps}]}, file)
        file.flush()
        environment = server.environment(server.keys())
        with client.start(file.name, environment, signals=subprocess.PIPE, errors=subprocess.STDOUT) as runner:
            try:
                yield Played(runner)
            finally:
                runner.kill()


def step(caller, call, request, **more):
    return {"as": caller, "call": call, "request": request} | more


AGENT = step("host", "AgentService.CreateAgent", {"agentId": "ada"})
SAVE_TEA = step(_CHAT, "MemoryService.SaveMemory", {"key": "tea", "content": "Assam"})
SAVE_MILK = step(_CHAT, "MemoryService.SaveMemory", {"key": "milk", "content": "none"})
GET_TEA = step(_CHAT, "MemoryService.GetMemory", {"key": "tea"})
OPEN_ANOTHER = step(
    "host",
    "SessionService.OpenSession",
    {"agentId": "ada", "conversationId": "chat"},
    save={"another": "session.sessionId"},
)
RAISE = step(
    "host",
    "SessionService.RaiseTaint",
    {"sessionId": "${another}", "taint": "CLASSIFICATION_CONFIDENTIAL", "reason": "read the payroll"},
)
RESET = step("host", "SessionService.ResetSession", {"sessionId": "${another}", "reason": "done"})


def test_a_call_after_the_session_has_expired_is_made_again(client, server):
    with playing(client, server, AGENT, SAVE_TEA, GET_TEA | _WAIT) as played:
        assert [played.next()["status"] for _ in range(2)] == ["OK", "OK"]
        server.expire_sessions()

        assert played.go_on()["response"]["memory"]["content"] == "Assam"


def test_a_renewed_session_has_the_taint_to_which_another_host_has_raised_it(client, server):
    with playing(client, server, AGENT, SAVE_TEA, OPEN_ANOTHER, RAISE, SAVE_MILK | _WAIT) as played:
        assert [played.next()["status"] for _ in range(4)] == ["OK"] * 4
        server.expire_sessions()

        assert played.go_on()["response"]["memory"]["classification"] == "CLASSIFICATION_CONFIDENTIAL"


def test_a_session_that_only_reads_still_does_when_it_is_renewed(client, server):
    with playing(client, server, AGENT, SAVE_TEA, SAVE_MILK | _WAIT) as played:
        assert [played.next()["status"] for _ in range(2)] == ["OK", "OK"]
        server.make_sessions_read_only()
        server.expire_sessions()

        assert played.go_on()["reason"] == "SESSION_READ_ONLY"


def test_a_conversation_that_another_host_has_reset_is_over(client, server):
    """That host must clear the model's context."""
    with playing(client, server, AGENT, SAVE_TEA, OPEN_ANOTHER | _WAIT, RESET, GET_TEA) as played:
        assert [played.next()["status"] for _ in range(2)] == ["OK", "OK"]
        server.expire_sessions()
        assert [played.go_on()["status"], played.next()["status"]] == ["OK", "OK"]

        assert played.next()["reason"] == "CREDENTIAL_EXPIRED"
