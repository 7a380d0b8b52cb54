"""Adapters refuse a session of `muniment.aio` at once: its writes would not be awaited, and would be lost."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from muniment import aio
from muniment.anthropic import MunimentAsyncMemoryTool, MunimentMemoryTool
from muniment.files import FileView
from muniment.langgraph import MunimentStore
from muniment.openai_agents import MunimentSession
from muniment.pydantic_ai import MunimentMemoryStore
from muniment.searching import search_tool
from tests.support.examples import TOKEN

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its stores are experimental, and say so
    from muniment.agent_framework import MunimentFileStore

ADAPTERS: dict[str, Callable[[Any], object]] = {
    "files": FileView,
    "langgraph": MunimentStore,
    "search": search_tool,
    "anthropic": MunimentMemoryTool,
    "anthropic, asyncio": MunimentAsyncMemoryTool,
    "pydantic_ai": MunimentMemoryStore,
    "agent_framework": MunimentFileStore,
    "openai_agents": lambda session: MunimentSession("tea", session),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", ADAPTERS)
async def test_a_session_of_asyncio_is_refused(name):
    async with aio.connect("127.0.0.1:1", token=TOKEN) as session:
        with pytest.raises(TypeError, match=r"muniment\.aio: pass one of muniment\.connect"):
            ADAPTERS[name](session)
