"""The README's code runs, with models that are scripted."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from pydantic_ai import Agent

from muniment import Classification
from tests.clients.frameworks.test_pydantic_ai import calling

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its stores are experimental, and say so
    from tests.clients.mcp.test_agent_framework import ScriptedModel

README = Path(__file__).parents[3] / "clients/python/README.md"

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification


def section(title: str) -> str:
    return README.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def run(title: str) -> dict[str, Any]:
    """What the code of a section defines."""
    (code,) = re.findall(r"^```python\n(.*?)^```", section(title), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(compile(code, str(README), "exec"), names)
    return names


def test_memories_as_files(service, monkeypatch, capsys):
    monkeypatch.setenv("MUNIMENT_ADDRESS", service.address)
    monkeypatch.setenv("MUNIMENT_HOST_KEY", service.host().token)
    (shown,) = re.findall(r"^```text\n(.*?)^```", section("Memories as files"), re.DOTALL | re.MULTILINE)

    run("Memories as files")

    assert capsys.readouterr().out == shown


def test_a_search_for_any_framework(service, monkeypatch, capsys):
    monkeypatch.setenv("MUNIMENT_ADDRESS", service.address)
    monkeypatch.setenv("MUNIMENT_HOST_KEY", service.host().token)
    (shown,) = re.findall(r"^```text\n(.*?)^```", section("Search, for any framework"), re.DOTALL | re.MULTILINE)

    run("Search, for any framework")

    assert capsys.readouterr().out == shown


def test_anthropics_memory_tool(opened):
    session, asked = opened(INTERNAL), []
    command = {"command": "create", "path": "/memories/tea.md", "file_text": "Assam"}
    script = iter(
        [
            {
                "stop_reason": "tool_use",
                "content": [{"type": "tool_use", "id": "1", "name": "memory", "input": command}],
            },
            {"stop_reason": "end_turn", "content": [{"type": "text", "text": "I remember."}]},
        ]
    )

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(json.loads(request.content))
        message = {"id": "1", "type": "message", "role": "assistant", "model": "m", "usage": {}}
        return httpx2.Response(200, json=message | next(script))

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http:
        client = anthropic.Anthropic(api_key="none", http_client=http)
        said = run("For Anthropic's memory tool")["ask"](client, session, "Remember my tea.")

    assert said == "I remember."
    assert asked[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert "File created successfully at: /memories/tea.md" in json.dumps(asked[1]["messages"][-1])
    memory = session.get_memory("muniment:files/tea.md")
    assert (memory.content, memory.classification) == ("Assam", INTERNAL)


@pytest.mark.anyio
async def test_pydantic_ai(opened):
    session = opened(INTERNAL)
    model = calling(("write_memory", {"content": "Assam", "file": "tea.md"}))
    agent: Agent = run("For Pydantic AI")["butler"](model, session)

    await agent.run("Remember my tea.")

    assert session.get_memory("muniment:files/main/tea.md").content.strip() == "Assam"


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore::FutureWarning")
async def test_microsofts_agent_framework(opened):
    session = opened(INTERNAL)
    model = ScriptedModel([("file_access_write", {"file_name": "tea.md", "content": "Assam"})])

    await run("For Microsoft's Agent Framework")["butler"](model, session).run("Remember my tea.")

    assert session.get_memory("muniment:files/tea.md").content == "Assam"
