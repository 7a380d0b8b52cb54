"""deepagents with memory in MunimentStore, as the README of the client shows it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from muniment import Classification, SessionClient
from tests.clients.frameworks.isolated.readme import names_of
from tests.clients.frameworks.worlds import Calls, leaking, seen_below

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification


class Scripted(GenericFakeChatModel):
    """A model that makes some calls of tools, one after another."""

    def bind_tools(self, tools: Any, **_: Any) -> Scripted:
        return self


def answers(session: Any, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """What a model is answered that calls the tools of deepagents."""
    script = [
        AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": str(number)}])
        for number, (name, arguments) in enumerate(calls)
    ]
    model = Scripted(messages=iter([*script, AIMessage("Done.")]))
    agent = names_of("For deepagents")["butler"](model, session)
    state = agent.invoke({"messages": [("user", "Go on.")]})
    return [str(each.content) for each in state["messages"] if isinstance(each, ToolMessage)]


@pytest.mark.parametrize("taint", [PUBLIC, CONFIDENTIAL])
def test_a_model_uses_the_tools(opened, taint):
    session = opened(taint)
    said = answers(
        session,
        ("write_file", {"file_path": "/memories/tea.md", "content": "Assam\nno sugar\n"}),
        ("edit_file", {"file_path": "/memories/tea.md", "old_string": "Assam", "new_string": "Darjeeling"}),
        ("read_file", {"file_path": "/memories/tea.md"}),
        ("ls", {"path": "/memories/"}),
        ("grep", {"pattern": "sugar", "path": "/memories/"}),
        ("glob", {"pattern": "*.md", "path": "/memories/"}),
    )
    assert "Darjeeling" in said[2]
    assert all("tea.md" in each for each in said[3:]), said
    (memory,) = session.list_memories()
    assert (memory.key, memory.classification) == ("muniment:langgraph/memories/%2Ftea%2Emd", taint)


def test_at_two_taints(opened):
    low, high = opened(PUBLIC), opened(CONFIDENTIAL)
    answers(low, ("write_file", {"file_path": "/memories/plan.md", "content": "ship on Friday"}))
    answers(high, ("write_file", {"file_path": "/memories/salary.md", "content": "52,000"}))

    unseen = answers(
        low,
        ("read_file", {"file_path": "/memories/salary.md"}),
        ("ls", {"path": "/memories/"}),
        ("grep", {"pattern": "52,000", "path": "/memories/"}),
    )
    assert "not found" in unseen[0]
    assert "salary" not in unseen[1]
    assert "salary" not in unseen[2]
    answers(
        high,
        ("edit_file", {"file_path": "/memories/plan.md", "old_string": "Friday", "new_string": "Monday"}),
    )
    read = ("read_file", {"file_path": "/memories/plan.md"})
    assert ["Friday" in answers(low, read)[0], "Monday" in answers(high, read)[0]] == [True, True]


def test_a_file_of_100_kb(opened):
    session = opened(PUBLIC)
    answers(session, ("write_file", {"file_path": "/memories/long.md", "content": "é tea\n" * 14_000}))
    (memory,) = session.list_memories()
    assert len(memory.content.encode()) > 100_000


def deepagents(session: SessionClient, text: str) -> Calls:
    """Calls of the tools. What is written has *text* in it."""
    for path in ("/memories/plan.md", f"/memories/{text}.md"):
        for name, arguments in (
            ("write_file", {"content": text}),
            ("edit_file", {"old_string": text, "new_string": f"{text}!"}),
            ("read_file", {}),
        ):
            yield partial(answers, session, (name, {"file_path": path, **arguments}))
    yield partial(answers, session, ("ls", {"path": "/memories/"}))
    yield partial(answers, session, ("glob", {"pattern": "**/*", "path": "/memories/"}))
    yield partial(answers, session, ("grep", {"pattern": "!", "path": "/memories/"}))


def test_what_happens_above_changes_nothing_below_and_a_leak_is_found(owner):
    """As tests/clients/frameworks/test_two_worlds.py plays the other adapters."""

    def someone() -> Any:
        agent_id = owner.create_agent().agent_id
        return lambda taint: owner.open_session(agent_id, taint)

    alone = seen_below(someone(), deepagents, above=False)
    assert "low!" in str(alone)
    assert alone == seen_below(someone(), deepagents, above=True)
    assert alone != seen_below(someone(), leaking(deepagents), above=True)
