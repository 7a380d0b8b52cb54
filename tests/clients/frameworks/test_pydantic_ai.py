"""The store for the memory of Pydantic AI's harness: its own store does the same, and its tools run on ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, ModelMessage, ModelResponse, ModelRetry, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness import Memory
from pydantic_ai_harness.memory import (
    InMemoryStore,
    MemoryConflictError,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
    MemoryStore,
    SearchableMemoryStore,
)

from muniment import Classification
from muniment.pydantic_ai import MunimentMemoryStore

pytestmark = pytest.mark.anyio

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification


async def steps(store: MemoryStore) -> AsyncIterator[Any]:
    """What a store answers, with versions by the order in which they were first seen."""
    seen: list[str] = []

    def plain(mutation: MemoryMutation | None) -> Any:
        if mutation is None:
            return None
        if mutation.version is not None and mutation.version not in seen:
            seen.append(mutation.version)
        version = None if mutation.version is None else seen.index(mutation.version)
        return version, mutation.replayed, mutation.existed

    async def attempt(call: Any) -> Any:
        try:
            return plain(await call)
        except (MemoryConflictError, MemoryOperationConflictError, ValueError) as error:
            return type(error)

    first, second = MemoryOperation("1", "write a"), MemoryOperation("2", "delete a")
    yield await store.read("main/a.md", max_chars=10)
    yield await attempt(store.get_operation(first))
    yield await attempt(store.write("main/a.md", "one two three", expected_version=None, operation=first))
    yield await attempt(store.write("main/a.md", "one two three", expected_version=None, operation=first))
    yield await attempt(store.get_operation(first))
    yield await attempt(store.get_operation(MemoryOperation("1", "something else")))
    yield await attempt(store.write("main/a.md", "x", expected_version=None))
    file = await store.read("main/a.md", max_chars=7)
    assert file is not None
    yield file.content, file.truncated
    yield await attempt(store.write("main/a.md", "one", expected_version=file.version))
    yield await attempt(store.write("main/a.md", "two", expected_version=file.version))
    yield await attempt(store.delete("main/a.md", expected_version=file.version))
    yield await attempt(store.write("main/b.md", "", expected_version=None))
    yield await attempt(store.write("other/c.md", "c", expected_version=None))
    yield await store.list_paths(limit=10)
    yield await store.list_paths("main/", limit=1)
    yield await store.list_paths("main/b", limit=10)
    file = await store.read("main/a.md", max_chars=7)
    assert file is not None
    yield await attempt(store.delete("main/a.md", expected_version=file.version, operation=second))
    yield await attempt(store.delete("main/a.md", expected_version=file.version, operation=second))
    yield await attempt(store.delete("main/none.md", expected_version=None))
    yield await store.list_paths(limit=10)
    for path in ("../a", "a/../b", "", "a//b", "./a"):
        yield await attempt(store.write(path, "x", expected_version=None))


@pytest.mark.parametrize("taint", [PUBLIC, CONFIDENTIAL])
async def test_it_answers_like_the_harness_own_store(opened, taint):
    ours = MunimentMemoryStore(opened(taint))
    assert isinstance(ours, MemoryStore)
    assert isinstance(ours, SearchableMemoryStore)
    assert [each async for each in steps(ours)] == [each async for each in steps(InMemoryStore())]


async def test_at_two_taints(opened):
    low, high = MunimentMemoryStore(opened(PUBLIC)), MunimentMemoryStore(opened(CONFIDENTIAL))
    await low.write("main/plan.md", "low", expected_version=None)
    await high.write("main/salary.md", "52,000", expected_version=None)

    assert await low.list_paths(limit=10) == ["main/plan.md"]
    assert await low.read("main/salary.md", max_chars=10) is None
    await low.write("main/salary.md", "none", expected_version=None)
    seen = await high.read("main/plan.md", max_chars=10)
    assert seen is not None
    await high.write("main/plan.md", "high", expected_version=seen.version)
    kept = await low.read("main/plan.md", max_chars=10)
    assert kept is not None
    assert kept.content == "low"


async def test_a_write_keeps_tags_and_expiry(opened):
    session, soon = opened(PUBLIC), datetime.now(UTC) + timedelta(hours=1)
    saved = session.save_memory("muniment:files/a", "one", tags=["tea"], expire_time=soon)
    await MunimentMemoryStore(session).write("a", "two", expected_version=saved.etag)
    memory = session.get_memory("muniment:files/a")
    assert (memory.content, memory.tags, memory.expire_time) == ("two", ("tea",), soon)


async def test_an_operation_that_many_make_is_done_once(opened):
    stores = [MunimentMemoryStore(opened(PUBLIC)) for _ in range(4)]
    operation = MemoryOperation("1", "write a")
    made = await asyncio.gather(
        *(store.write("a", "one", expected_version=None, operation=operation) for store in stores)
    )
    assert sorted(each.replayed for each in made) == [False, True, True, True]
    assert len({each.version for each in made}) == 1


async def test_a_file_leaves_room_for_the_record(opened):
    store, operation = MunimentMemoryStore(opened(PUBLIC)), MemoryOperation("1", "write a")
    await store.write("a", "x" * 131_072, expected_version=None)
    with pytest.raises(ModelRetry, match="split it"):
        await store.write("b", "x" * 131_072, expected_version=None, operation=operation)
    await store.write("b", "x" * 130_800, expected_version=None, operation=operation)


async def test_a_search_finds_words_in_any_form(opened):
    store = MunimentMemoryStore(opened(PUBLIC))
    await store.write("main/tea.md", "She likes her tea without sugar.", expected_version=None)
    await store.write("main/bus.md", "The bus leaves at nine.", expected_version=None)
    await store.write("main/deep/tea.md", "More tea.", expected_version=None)
    bounds = {"limit": 5, "max_files": 100, "max_chars": 1_000, "max_file_chars": 1_000}

    found = await store.search("main/", "does she like sugared teas?", **bounds)
    assert [match.path for match in found.matches] == ["main/tea.md"]
    assert "without sugar" in found.matches[0].snippet
    short = await store.search("main/", "tea", **{**bounds, "max_chars": 12})
    assert [len(match.snippet) for match in short.matches] == [6]
    assert (await store.search("main/", " ", **bounds)).matches == []


def calling(*calls: tuple[str, dict[str, Any]]) -> FunctionModel:
    """A model that makes some calls of tools, one after another, and then says what it was answered."""
    rest = list(calls)

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if rest:
            return ModelResponse([ToolCallPart(*rest.pop(0))])
        last = messages[-1].parts[-1]
        return ModelResponse([TextPart(str(getattr(last, "content", "")))])

    return FunctionModel(answer)


async def test_a_model_uses_the_tools(opened):
    session = opened(PUBLIC)
    agent = Agent(
        calling(
            ("write_memory", {"content": "Assam, no sugar", "file": "tea.md"}),
            ("write_memory", {"content": "Darjeeling", "file": "tea.md", "old_text": "Assam"}),
            ("search_memory", {"query": "sugar"}),
        ),
        capabilities=[Memory(MunimentMemoryStore(session))],
    )

    assert "Darjeeling" in (await agent.run("Go on.")).output
    (memory,) = session.list_memories(key_prefix="muniment:files/")
    assert (memory.key, memory.content.strip()) == ("muniment:files/main/tea.md", "Darjeeling, no sugar")


@pytest.mark.parametrize("name", ["tea time.md", "thé.md", "tea..md", ".tea.md", "t" * 81, "tea.md/old"])
async def test_a_file_with_a_name_of_another_adapter_does_not_break_the_search(opened, name):
    session = opened(PUBLIC)
    session.save_memory(f"muniment:files/main/{name}", "Assam, with sugar")
    session.save_memory("muniment:files/main/tea.md", "Assam, no sugar")
    agent = Agent(calling(("search_memory", {"query": "Assam"})), capabilities=[Memory(MunimentMemoryStore(session))])

    assert "no sugar" in (output := (await agent.run("Go on.")).output)
    assert "with sugar" not in output


async def test_a_model_learns_why_it_cannot_delete(opened):
    await MunimentMemoryStore(opened(PUBLIC)).write("main/tea.md", "Assam", expected_version=None)
    agent = Agent(
        calling(("delete_memory", {"file": "tea.md"})),
        capabilities=[Memory(MunimentMemoryStore(opened(CONFIDENTIAL)))],
    )

    assert "cannot be deleted from this conversation" in (await agent.run("Go on.")).output


@pytest.mark.parametrize("content", ["no JSON", "{}", "[" * 50_000])
async def test_what_is_no_record_of_an_operation_is_a_conflict(opened, content):
    session = opened(PUBLIC)
    store = MunimentMemoryStore(session)
    session.save_memory("muniment:file-operations/one", content)
    operation = MemoryOperation(id="one", fingerprint="f")
    with pytest.raises(MemoryOperationConflictError):
        await store.write("a.md", "x", expected_version=None, operation=operation)
