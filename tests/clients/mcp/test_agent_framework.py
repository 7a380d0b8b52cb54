"""What Microsoft's Agent Framework makes of the labels: its own parser and policy, with a model that is scripted."""

from __future__ import annotations

import ast
import json
import os
import re
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from muniment import Classification, Integrity, SessionClient
from muniment.mcp.server import build
from tests.clients.mcp.conftest import COMMAND
from tests.clients.mcp.over_http import serving
from tests.clients.mcp.tools import TOOLS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its security is experimental, and says so
    from agent_framework import (
        Agent,
        BaseChatClient,
        ChatResponse,
        Content,
        FunctionInvocationLayer,
        FunctionTool,
        MCPStdioTool,
        Message,
    )
    from agent_framework.security import (
        ConfidentialityLabel,
        ContentLabel,
        IntegrityLabel,
        SecureAgentConfig,
        SecureMCPToolProxy,
    )

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::FutureWarning")]

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
LABELS = Path(__file__).parents[3] / "service/docs/labels.md"

Calls = Sequence[tuple[str, dict[str, Any]]]


class ScriptedModel(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """A model that makes some calls of tools, one after another, and remembers what it was answered."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = iter([*calls, None])
        self.answers: list[str] = []

    async def _inner_get_response(self, *, messages: Sequence[Message], **_: Any) -> ChatResponse[Any]:
        self.answers += [str(each.result) for each in messages[-1].contents if each.type == "function_result"]
        call = next(self._calls)
        contents = (
            [Content.from_text("Done.")]
            if call is None
            else [
                Content.from_function_call(call_id=str(len(self.answers)), name=call[0], arguments=json.dumps(call[1]))
            ]
        )
        return ChatResponse(messages=[Message(role="assistant", contents=contents)])


@asynccontextmanager
async def connected(session: SessionClient, **options: Any) -> AsyncIterator[SecureMCPToolProxy]:
    """The framework's proxy of the server of *session*, in this process."""
    async with Client(build(lambda: session)) as client:
        tool = MCPStdioTool("muniment", mcp_client=client, load_prompts=False)
        async with SecureMCPToolProxy(tool, **options) as proxy:
            yield proxy


async def labels_of(proxy: SecureMCPToolProxy, tool: str, **arguments: Any) -> list[ContentLabel]:
    """The labels that the framework gives to the contents of a result."""
    (called,) = (each for each in proxy.tools if each.name == tool)
    contents = await called.invoke(arguments=arguments)
    return [ContentLabel.from_dict(each.additional_properties["security_label"]) for each in contents]


async def run(proxy: SecureMCPToolProxy, security: SecureAgentConfig, calls: Calls) -> list[str]:
    """What a model is answered that makes *calls*, the last of them without the answer of one that is blocked."""
    model = ScriptedModel(calls)
    await Agent(client=model, tools=list(proxy.tools), context_providers=[security]).run("Go on.")
    return model.answers


@pytest.mark.parametrize("level", Classification)
@pytest.mark.parametrize("trusted", [False, True], ids=["by default", "with trust_server_ifc"])
async def test_it_reads_the_label_of_each_result(opened, level, trusted):
    """As a restriction of its own label, or as the label: the same."""
    session = opened(level)
    session.save_memory("plan", "ship on Friday")
    async with connected(session, trust_server_ifc=trusted) as proxy:
        labels = [
            *await labels_of(proxy, "memory_get", key="plan"),
            *await labels_of(proxy, "search", query="ship"),
            *await labels_of(proxy, "memory_save", key="tea", content="Assam"),
            *await labels_of(proxy, "passage_list"),
        ]

    confidentiality = ConfidentialityLabel.PUBLIC if level == PUBLIC else ConfidentialityLabel.PRIVATE
    assert [(each.integrity, each.confidentiality) for each in labels] == [
        (IntegrityLabel.UNTRUSTED, confidentiality)
    ] * 4


async def test_it_reads_them_over_http_too(service, opened):
    session = opened(INTERNAL)
    bearer = {"Authorization": f"Bearer {session.token}"}
    with serving(service.address) as endpoint:
        async with SecureMCPToolProxy(url=endpoint.url, headers=bearer, name="muniment") as proxy:
            (label,) = await labels_of(proxy, "memory_save", key="tea", content="Assam")

    assert (label.integrity, label.confidentiality) == (IntegrityLabel.UNTRUSTED, ConfidentialityLabel.PRIVATE)


@pytest.mark.parametrize("integrity", Integrity)
async def test_what_a_trusted_session_recalls_may_drive_a_tool_that_refuses_untrusted_input(owner, integrity):
    """What an untrusted one recalls may not. With a proxy that takes the server's labels, as the documents say."""
    session, paid = owner.open_session("alice", PUBLIC, integrity=integrity), []
    session.save_memory("plan", "pay on Friday")

    def pay() -> str:
        paid.append("paid")
        return "Paid."

    trusting = {"source_integrity": "trusted", "accepts_untrusted": False}
    tool = FunctionTool(name="pay", description="Pays.", func=pay, additional_properties=trusting)
    security = SecureAgentConfig(auto_hide_untrusted=False, allow_untrusted_tools=set(TOOLS))
    async with connected(session, trust_server_ifc=True) as proxy:
        model = ScriptedModel([RECALL, ("pay", {})])
        await Agent(client=model, tools=[*proxy.tools, tool], context_providers=[security]).run("Go on.")

    assert "pay on Friday" in model.answers[0]
    assert bool(paid) == (integrity is Integrity.TRUSTED)


RECALL = ("memory_get", {"key": "plan"})
SAVE = ("memory_save", {"key": "salary", "content": "52,000 a year"})
RAISED = dict.fromkeys(TOOLS, (IntegrityLabel.UNTRUSTED, ConfidentialityLabel.PRIVATE))


async def test_saving_is_not_blocked_once_the_context_is_private(opened):
    """With the configuration of the documents."""
    session = opened(CONFIDENTIAL)
    session.save_memory("plan", "ship on Friday")
    security = SecureAgentConfig(auto_hide_untrusted=False, allow_untrusted_tools=set(TOOLS))
    async with connected(session, annotation_overrides=RAISED) as proxy:
        recalled, saved = await run(proxy, security, [RECALL, SAVE])

    assert "ship on Friday" in recalled
    assert "CONFIDENTIAL" in saved
    assert session.get_memory("salary").classification == CONFIDENTIAL


@pytest.mark.parametrize(
    ("overrides", "allowed"), [({}, set(TOOLS)), (RAISED, set())], ids=["no overrides", "no allowed tools"]
)
async def test_without_any_part_of_the_configuration_it_is(opened, overrides, allowed):
    session = opened(CONFIDENTIAL)
    session.save_memory("plan", "ship on Friday")
    security = SecureAgentConfig(auto_hide_untrusted=False, allow_untrusted_tools=allowed)
    async with connected(session, annotation_overrides=overrides) as proxy:
        answers = await run(proxy, security, [RECALL, SAVE])

    assert len(answers) == 1
    assert [memory.key for memory in session.list_memories()] == ["plan"]


async def test_the_documented_host(service, owner, opened, monkeypatch):
    """At PUBLIC, what the model has read elsewhere is not saved; once the taint is raised, it is."""
    session, saw = opened(PUBLIC), []

    def payroll() -> str:
        saw.append([memory.key for memory in session.list_memories()])
        return "52,000 a year"

    private = {"source_integrity": "trusted", "confidentiality": "private"}
    names = {
        "Classification": Classification,
        "environment": {"MUNIMENT_ADDRESS": service.address, "MUNIMENT_TOKEN": session.token},
        "host": owner,
        "model": ScriptedModel([("payroll", {}), SAVE, SAVE]),
        "payroll": FunctionTool(
            name="payroll", description="What Ada earns.", func=payroll, additional_properties=private
        ),
        "session": session,
    }
    monkeypatch.setenv("PATH", str(Path(COMMAND).parent), prepend=os.pathsep)
    block = re.search(r"^```python\n(.*?)^```", LABELS.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert block
    await eval(compile(block[1], str(LABELS), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)

    assert saw == [[]]
    assert session.get_memory("salary").classification == CONFIDENTIAL
    assert len(names["model"].answers) == 2
