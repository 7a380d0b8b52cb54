"""Two worlds, seen through each adapter: what a session above does changes nothing below; and a leak is found."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from functools import partial

import pytest
from anthropic.lib.tools import ToolError
from langgraph.store.base import BaseStore
from pydantic_ai_harness.memory import MemoryConflictError

from muniment import SessionClient
from muniment.anthropic import MunimentMemoryTool
from muniment.files import File, FileError, FileView
from muniment.langgraph import MunimentStore
from muniment.openai_agents import LowerItems, MunimentSession
from muniment.pydantic_ai import MunimentMemoryStore
from tests.clients.frameworks import worlds
from tests.clients.frameworks.worlds import Calls, Opened, leaking

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its stores are experimental, and say so
    from muniment.agent_framework import MunimentFileStore

PATHS = ("plan.md", "pay/salary.md", "pay")
seen_below = partial(
    worlds.seen_below, refusals=(FileError, LowerItems, MemoryConflictError, ToolError, *worlds.REFUSALS)
)


def files(session: SessionClient, text: str) -> Calls:
    """Calls of the file view. What is written has *text* in it."""
    view = FileView(session)

    def of(path: str) -> Calls:
        yield lambda: view.create(path, text).content
        yield lambda: view.replace(path, text, f"{text}!")[0].content
        yield lambda: view.exists(path)

    for path in PATHS:
        yield from of(path)
    yield lambda: [(file.path, file.content) for file in view.walk()]
    yield lambda: (view.ls(depth=3), view.glob("**"), view.grep("e"))
    yield lambda: view.rename("pay", "paid")
    yield lambda: view.delete("plan.md")
    yield lambda: view.ls()


def anthropic(session: SessionClient, text: str) -> Calls:
    tool = MunimentMemoryTool(session)

    def of(path: str) -> Calls:
        yield lambda: tool.call({"command": "create", "path": path, "file_text": text})
        yield lambda: tool.call({"command": "insert", "path": path, "insert_line": 0, "insert_text": text})
        yield lambda: tool.call({"command": "view", "path": path})

    for path in (f"/memories/{each}" for each in PATHS):
        yield from of(path)
    yield lambda: tool.call({"command": "view", "path": "/memories"})
    yield lambda: tool.call({"command": "rename", "old_path": "/memories/pay", "new_path": "/memories/paid"})
    yield lambda: tool.call({"command": "delete", "path": "/memories/plan.md"})
    yield lambda: tool.call({"command": "view", "path": "/memories"})


def agent_framework(session: SessionClient, text: str) -> Calls:
    store = MunimentFileStore(session)

    def of(path: str) -> Calls:
        yield lambda: asyncio.run(store.write(path, text, overwrite=False))
        yield lambda: asyncio.run(store.read(path))

    for path in PATHS:
        yield from of(path)
    yield lambda: [each.to_dict() for each in asyncio.run(store.search("", "e", recursive=True))]
    yield lambda: asyncio.run(store.delete("plan.md"))
    yield lambda: [each.to_dict() for each in asyncio.run(store.list_children())]


def pydantic_ai(session: SessionClient, text: str) -> Calls:
    store = MunimentMemoryStore(session)
    bounds = {"limit": 5, "max_files": 100, "max_chars": 1_000, "max_file_chars": 1_000}

    def of(path: str) -> Calls:
        yield lambda: asyncio.run(store.write(path, text, expected_version=None)).existed
        yield lambda: getattr(asyncio.run(store.read(path, max_chars=100)), "content", None)

    for path in PATHS:
        yield from of(path)
    yield lambda: asyncio.run(store.list_paths(limit=10))
    yield lambda: asyncio.run(store.search("", "salary plan low high", **bounds))


def openai_agents(session: SessionClient, text: str) -> Calls:
    history = MunimentSession("one", session)
    for _ in range(2):
        yield lambda: asyncio.run(history.add_items([{"role": "user", "content": text}]))
        yield lambda: asyncio.run(history.get_items())
    yield lambda: asyncio.run(history.pop_item())
    yield lambda: asyncio.run(history.clear_session())
    yield lambda: asyncio.run(history.get_items())


def langgraph(session: SessionClient, text: str) -> Calls:
    store: BaseStore = MunimentStore(session)

    def of(key: str) -> Calls:
        yield lambda: getattr(store.get(("files",), key), "value", None)
        yield lambda: store.put(("files",), key, {"text": text})
        yield lambda: getattr(store.get(("files",), key), "value", None)

    for key in (*PATHS, text):
        yield from of(key)
    yield lambda: [(item.key, item.value) for item in store.search(())]
    yield lambda: store.delete(("files",), "plan.md")
    yield lambda: store.list_namespaces()


@pytest.fixture
def someone(owner) -> Callable[[], Opened]:
    """Opens sessions of a new agent, which knows nothing of the others."""

    def anyone() -> Opened:
        agent_id = owner.create_agent().agent_id
        return lambda taint: owner.open_session(agent_id, taint)

    return anyone


ADAPTERS = [files, anthropic, agent_framework, pydantic_ai, openai_agents, langgraph]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__)
def test_what_happens_above_changes_nothing_below(someone, adapter):
    seen = seen_below(someone(), adapter, above=True)
    assert len(seen) > 5
    assert seen == seen_below(someone(), adapter, above=False)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__)
def test_an_adapter_that_shares_its_session_would_show(someone, adapter):
    alone = seen_below(someone(), leaking(adapter), above=False)
    assert alone == seen_below(someone(), adapter, above=False)
    assert alone != seen_below(someone(), leaking(adapter), above=True)


@pytest.mark.parametrize("adapter", [files, anthropic, agent_framework], ids=lambda adapter: adapter.__name__)
def test_an_adapter_that_shares_what_it_read_would_show(someone, adapter, monkeypatch):
    """A cache by path: of a class, and not of a session."""
    cached: dict[str, File] = {}
    read = FileView.read

    def shared(self: FileView, path: str) -> File:
        if path not in cached:
            cached[path] = read(self, path)
        return cached[path]

    alone = seen_below(someone(), adapter, above=False)
    monkeypatch.setattr(FileView, "read", shared)
    assert seen_below(someone(), adapter, above=True) != alone
