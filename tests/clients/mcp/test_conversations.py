"""What a model remembers, over standard input and output, at the taint its host sets."""

from __future__ import annotations

import pytest

from muniment import Classification
from tests.clients.mcp.conftest import talking, talking_over_stdio

pytestmark = pytest.mark.anyio

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification


async def test_a_raise_during_a_conversation(service, owner, opened):
    """The same process, the same tool, the same arguments: the next save lands higher, and below it is not seen."""
    session, colleague = opened(PUBLIC), opened(PUBLIC)
    async with (
        talking_over_stdio(service.address, session.token) as model,
        talking_over_stdio(service.address, colleague.token) as low,
    ):
        assert await model.does("memory_save", key="plan", content="ship on Friday") == {
            "classification": "PUBLIC",
            "key": "plan",
        }
        owner.raise_taint(session, CONFIDENTIAL, reason="read the payroll")
        saved = await model.does("memory_save", key="salary", content="52,000 a year")
        both = await model.does("memory_list")
        hidden = await low.fails("memory_get", key="salary")
        seen = await low.does("memory_list")
        found = await low.does("search", query="salary 52,000")

    assert saved["classification"] == "CONFIDENTIAL"
    assert [(each["key"], each["classification"]) for each in both["memories"]] == [
        ("plan", "PUBLIC"),
        ("salary", "CONFIDENTIAL"),
    ]
    assert both["classification"] == "CONFIDENTIAL"
    assert [each["key"] for each in seen["memories"]] == ["plan"]
    assert seen["classification"] == "PUBLIC"
    assert found.pop("hint").startswith("Nothing was found.")
    assert found == {"classification": "PUBLIC", "memories": [], "notes": [], "passages": []}
    async with talking(colleague) as low:
        assert hidden == await low.fails("memory_get", key="no-such-key")


@pytest.mark.parametrize("taint", Classification)
async def test_each_taint_sees_what_is_at_or_below_it(opened, taint):
    for level in Classification:
        opened(level).save_memory(f"at-{level.name.lower()}", "It is so.")

    async with talking(opened(taint)) as model:
        listed = await model.does("memory_list")

    assert {each["classification"] for each in listed["memories"]} == {
        level.name for level in Classification if level <= taint
    }
    assert listed["classification"] == taint.name


async def test_a_delete_uncovers_what_is_below_and_stops_there(opened):
    opened(PUBLIC).save_memory("plan", "ship on Friday")
    session = opened(INTERNAL)
    session.save_memory("plan", "ship on Monday")

    async with talking(session) as model:
        assert await model.does("memory_delete", key="plan") == {"deleted": "plan", "revealed": True}
        refused = await model.fails("memory_delete", key="plan")
        seen = await model.does("memory_get", key="plan")

    assert "WRITE_LEVEL_MISMATCH" in refused
    assert "save a correction under the same key" in refused
    assert seen["content"] == "ship on Friday"


async def test_a_session_that_is_over_says_so_and_the_server_goes_on(owner, opened):
    session = opened(PUBLIC)
    async with talking(session) as model:
        owner.close_session(session.session_id)
        error = await model.fails("memory_list")
        again = await model.fails("note_add", content="Ships on Fridays.")

    assert "CREDENTIAL_INVALID" in error
    assert "do not retry" in error
    assert session.token not in error
    assert error.split(": ", 1)[1] == again.split(": ", 1)[1]


@pytest.mark.parametrize("name", ["classification", "level", "agent_id", "taint", "session_id"])
async def test_an_argument_that_names_a_level_or_an_agent_is_refused(name, opened):
    session = opened(CONFIDENTIAL)
    async with talking(session) as model:
        refused = await model.fails("memory_save", key="plan", content="x", **{name: "PUBLIC"})
        nothing = await model.fails("memory_get", key="plan")
        saved = await model.does("memory_save", key="plan", content="x")

    assert "takes no arguments but key, content, tags." in refused
    assert name not in refused
    assert "MEMORY_NOT_FOUND" in nothing
    assert saved["classification"] == "CONFIDENTIAL"
