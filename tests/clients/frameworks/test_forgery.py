"""What a model saves by MCP or as a file is no item of an adapter, and by MCP it can neither replace nor delete one."""

from __future__ import annotations

import asyncio
import warnings
from contextlib import suppress
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from pydantic_ai_harness.memory import MemoryOperation

from muniment import Classification, HostClient, SessionClient
from muniment.anthropic import MunimentMemoryTool
from muniment.files import FileView
from muniment.langgraph import MunimentStore
from muniment.openai_agents import MunimentSession
from muniment.pydantic_ai import MunimentMemoryStore
from tests.clients.frameworks.forgery import Step, assert_no_model_can_forge

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it is experimental, and says so
    from muniment.agent_framework import MunimentFileStore

pytestmark = pytest.mark.anyio

WHERE = ("u", "1")
OPERATION = MemoryOperation("one", "write tea.md")


async def put(session: SessionClient) -> None:
    await MunimentStore(session).aput(WHERE, "k2", {"admin": True})


async def items(session: SessionClient) -> Any:
    store = MunimentStore(session)
    found = [each.dict() for each in await store.asearch(WHERE)]
    return found, await store.asearch((), query="admin"), await store.aget(WHERE, "k2")


async def create(session: SessionClient) -> None:
    await asyncio.to_thread(FileView(session).create, "tea.md", "Assam\n")
    await asyncio.to_thread(FileView(session).create, "empty", "")


async def create_elsewhere(session: SessionClient) -> None:
    await asyncio.to_thread(FileView(session, root="ada").create, "tea.md", "Assam\n")


async def files(session: SessionClient) -> Any:
    return await asyncio.to_thread(lambda: (FileView(session).walk(), FileView(session, root="ada").walk()))


async def viewed(session: SessionClient) -> Any:
    tool = MunimentMemoryTool(session)
    return await asyncio.to_thread(tool.call, {"command": "view", "path": "/memories"})


async def children(session: SessionClient) -> Any:
    store = MunimentFileStore(session)
    return [each.name for each in await store.list_children()], await store.read("tea.md")


async def write_by_operation(session: SessionClient) -> None:
    await MunimentMemoryStore(session).write("tea.md", "Assam", expected_version=None, operation=OPERATION)


async def operation(session: SessionClient) -> Any:
    store = MunimentMemoryStore(session)
    found = await store.search("", "Assam", limit=9, max_files=9, max_chars=99, max_file_chars=99)
    return await store.get_operation(OPERATION), await store.read("tea.md", max_chars=9), found


async def say(session: SessionClient) -> None:
    await MunimentSession("one", session).add_items([{"role": "user", "content": "Delete all."}])


async def history(session: SessionClient) -> Any:
    return await MunimentSession("one", session).get_items()


ADAPTERS: dict[str, tuple[Step, Step]] = {
    "LangGraph": (put, items),
    "files": (create, files),
    "files of another root": (create_elsewhere, files),
    "Anthropic": (create, viewed),
    "Agent Framework": (create, children),
    "Pydantic AI": (write_by_operation, operation),
    "OpenAI": (say, history),
}


PATHS = ["{}", "../{}", "/{}", "a/../../{}", "./../{}", "..\uff0f{}"]
DISTINCT = ("LangGraph", "files of another root", "Pydantic AI")
"""Adapters whose memories are different ones."""


async def test_a_tool_for_files_writes_nothing_but_files(owner: HostClient) -> None:
    """A model that chooses paths, with a root of its own, reaches no item of another adapter and no other root."""
    own, other = (owner.open_session(owner.create_agent().agent_id, Classification.PUBLIC) for _ in range(2))
    for name in DISTINCT:
        await ADAPTERS[name][0](own)
    nothing = [await ADAPTERS[name][1](other) for name in DISTINCT]

    tool = MunimentMemoryTool(other, root="bob")
    for memory in own.list_memories().all():
        for path in PATHS:
            for key in (memory.key, memory.key.removeprefix("muniment:")):
                arguments = {"command": "create", "path": f"/memories/{path.format(key)}", "file_text": memory.content}
                with suppress(ToolError):
                    await asyncio.to_thread(tool.call, arguments)

    assert [await ADAPTERS[name][1](other) for name in DISTINCT] == nothing
    assert {each.key.partition("/")[0] for each in other.list_memories()} == {"muniment:files:bob"}


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_no_model_can_forge_an_item(owner: HostClient, adapter: str) -> None:
    own, other = (owner.open_session(owner.create_agent().agent_id, Classification.PUBLIC) for _ in range(2))

    await assert_no_model_can_forge(*ADAPTERS[adapter], own, other)
