"""A model at the tools of MCP that tries to write, replace and delete what an adapter stores."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
from mcp import Client

from muniment import Memory, Passage, SessionClient
from muniment.mcp.server import build

Step: TypeAlias = Callable[[SessionClient], Awaitable[Any]]
SPELLINGS: list[Callable[[str], str]] = [
    str,
    " {}".format,
    "\u3000{}\n".format,
    str.upper,
    lambda name: name.removeprefix("muniment:"),
    lambda name: name.replace("muniment:", "muniment/"),
]
"""How a model may spell a name: as the adapter does, in ways that the server changes, and in ones that look alike."""


async def assert_no_model_can_forge(store: Step, seen: Step, own: SessionClient, other: SessionClient) -> None:
    """*store* stores something by an adapter, and *seen* is what the adapter shows.

    The sessions are of two agents. In the first, a model tries to change what the adapter stored; in the second, to
    store the same.
    """
    nothing = await seen(other)
    await store(own)
    shown = await seen(own)
    memories, passages = await anyio.to_thread.run_sync(_stored, own)
    assert shown != nothing
    assert memories or passages

    async with Client(build(lambda: other)) as model:
        await _save(model, memories, passages, content=None)
    assert await seen(other) == nothing

    async with Client(build(lambda: own)) as model:
        await _save(model, memories, passages, content="forged")
        for memory in memories:
            await model.call_tool("memory_delete", {"key": memory.key})
        for passage in passages:
            await model.call_tool("passage_delete", {"passage_id": passage.passage_id})
            assert not (await model.call_tool("passage_get", {"passage_id": passage.passage_id})).is_error
    assert await seen(own) == shown
    kept_memories, kept_passages = await anyio.to_thread.run_sync(_stored, own)
    assert [each for each in memories if each not in kept_memories] == []
    assert [each for each in passages if each not in kept_passages] == []


def _stored(session: SessionClient) -> tuple[list[Memory], list[Passage]]:
    return session.list_memories().all(), session.list_passages().all()


async def _save(model: Client, memories: list[Memory], passages: list[Passage], *, content: str | None) -> None:
    """Save items with the names of others, in every spelling of key and tags. Some are refused."""
    for spelled in SPELLINGS:
        for memory in memories:
            for key in {memory.key, spelled(memory.key)}:
                arguments = {"key": key, "content": content or memory.content, "tags": [*map(spelled, memory.tags)]}
                await model.call_tool("memory_save", arguments)
        for passage in passages:
            tags = [*map(spelled, passage.tags)]
            named = {"content": content or passage.content, "author": passage.author or "", "tags": tags}
            await model.call_tool("passage_store", named)
