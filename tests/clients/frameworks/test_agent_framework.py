"""The store of files for Microsoft's Agent Framework: its own store does the same, and its tools run on ours."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from muniment import Classification

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its stores are experimental, and say so
    from agent_framework import Agent, AgentFileStore, FileAccessProvider, InMemoryAgentFileStore

    from muniment.agent_framework import MunimentFileStore
    from tests.clients.mcp.test_agent_framework import Calls, ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::FutureWarning")]

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification

Call = Callable[[AgentFileStore], Awaitable[Any]]
SCRIPT: list[Call] = [
    lambda store: store.read("a.md"),
    lambda store: store.write("a.md", "One\ntwo\n"),
    lambda store: store.write("a.md", "one\ntwo\n"),
    lambda store: store.write("a.md", "x", overwrite=False),
    lambda store: store.write("d/b.md", "", overwrite=False),
    lambda store: store.write("d/e/c.txt", "TWO"),
    lambda store: store.read("a.md"),
    lambda store: store.read("d/b.md"),
    lambda store: store.file_exists("a.md"),
    lambda store: store.file_exists("d"),
    lambda store: store.create_directory("new"),
    lambda store: store.list_children(),
    lambda store: store.list_children("d"),
    lambda store: store.list_children("none"),
    lambda store: store.search("", "two"),
    lambda store: store.search("", "TWO", "*.md", recursive=True),
    lambda store: store.search("d", "t.o", recursive=True),
    lambda store: store.delete("none"),
    lambda store: store.delete("d"),
    lambda store: store.delete("a.md"),
    lambda store: store.read("../a.md"),
    lambda store: store.write("", "x"),
    lambda store: store.list_children(),
]


async def outcome(store: AgentFileStore, call: Call) -> Any:
    try:
        answer = await call(store)
    except (OSError, ValueError) as error:
        return type(error)
    return [each.to_dict() for each in answer] if isinstance(answer, list) else answer


async def used(store: AgentFileStore, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """What a model is answered that calls the framework's tools."""
    given: Calls = [(f"file_access_{name}", arguments) for name, arguments in calls]
    model = ScriptedModel(given)
    provider = FileAccessProvider(store, disable_readonly_tool_approval=True, disable_write_tool_approval=True)
    await Agent(client=model, context_providers=[provider]).run("Go on.")
    return model.answers


@pytest.mark.parametrize("taint", [PUBLIC, CONFIDENTIAL])
async def test_it_answers_like_the_frameworks_own_store(opened, taint):
    theirs, ours = InMemoryAgentFileStore(), MunimentFileStore(opened(taint))
    for number, call in enumerate(SCRIPT):
        assert await outcome(ours, call) == await outcome(theirs, call), number


async def test_a_model_uses_the_tools(opened):
    store = MunimentFileStore(opened(PUBLIC))
    answers = await used(
        store,
        ("write", {"file_name": "a.md", "content": "one\ntwo"}),
        ("replace", {"file_name": "a.md", "old_string": "two", "new_string": "2"}),
        ("read", {"file_name": "a.md"}),
        ("ls", {}),
        ("grep", {"regex_pattern": "on."}),
        ("delete", {"file_name": "a.md"}),
        ("read", {"file_name": "a.md"}),
    )
    assert answers[0] == "File 'a.md' written."
    assert answers[2] == "one\n2"
    assert "a.md" in answers[3]
    assert "one" in answers[4]
    assert answers[5:] == ["File 'a.md' deleted.", "File 'a.md' not found."]


async def test_a_model_at_two_taints(opened):
    low, high = MunimentFileStore(opened(PUBLIC)), MunimentFileStore(opened(CONFIDENTIAL))
    await low.write("plan.md", "ship on Friday")
    await high.write("salary.md", "52,000")

    assert (
        await used(low, ("read", {"file_name": "salary.md"}), ("delete", {"file_name": "salary.md"}))
        == ["File 'salary.md' not found."] * 2
    )
    assert await used(
        high,
        ("delete", {"file_name": "plan.md"}),
        ("write", {"file_name": "plan.md", "content": "ship on Monday", "overwrite": True}),
    ) == [
        "Could not delete file 'plan.md': plan.md cannot be deleted from this conversation, because it was written at "
        "a lower classification. It stays readable. To change what this conversation sees, edit it: conversations at "
        "the lower classification keep their version.",
        "File 'plan.md' written.",
    ]
    assert (await low.read("plan.md"), await high.read("plan.md")) == ("ship on Friday", "ship on Monday")


async def test_an_edit_keeps_tags_and_expiry(opened):
    session, soon = opened(PUBLIC), datetime.now(UTC) + timedelta(hours=1)
    session.save_memory("muniment:files/a.md", "one", tags=["tea"], expire_time=soon)
    edit = {"file_name": "a.md", "old_string": "one", "new_string": "two"}
    await used(MunimentFileStore(session), ("replace", edit))
    memory = session.get_memory("muniment:files/a.md")
    assert (memory.content, memory.tags, memory.expire_time) == ("two", ("tea",), soon)


async def test_what_somebody_else_changed_is_not_overwritten(opened):
    mine, other = MunimentFileStore(opened(PUBLIC)), MunimentFileStore(opened(PUBLIC))
    await mine.write("a", "one")
    await other.write("a", "two")

    with pytest.raises(ValueError, match="changed by somebody else"):
        await mine.write("a", "three")
    assert await mine.read("a") == "two"
    await mine.write("a", "three")
    assert await other.read("a") == "three"


@pytest.mark.parametrize("look", ["search", "file_exists"])
async def test_a_file_that_was_only_searched_has_not_been_read(opened, look):
    mine, other = MunimentFileStore(opened(PUBLIC)), MunimentFileStore(opened(PUBLIC))
    await mine.write("a", "one")
    await other.write("a", "two")
    assert await (mine.search("", "two") if look == "search" else mine.file_exists("a"))

    with pytest.raises(ValueError, match="changed by somebody else"):
        await mine.write("a", "three")
    assert await other.read("a") == "two"
