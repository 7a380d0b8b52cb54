"""The label of each result: `_meta.ifc` for other guards, and the classification beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from muniment import Classification, Integrity
from tests.clients.mcp.conftest import Model, talking
from tests.clients.mcp.tools import TOOLS

pytestmark = pytest.mark.anyio

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
UNTRUSTED, TRUSTED = Integrity
MISSING = "5d0c4a0e-4f52-4d7b-9a53-6c2f6f6f2d10"


def label(level: Classification, integrity: str = "untrusted") -> dict[str, Any]:
    """What the metadata of a result at *level* must contain."""
    confidentiality = "public" if level == PUBLIC else "private"
    return {
        "ifc": {"integrity": integrity, "confidentiality": confidentiality},
        "muniment.v1/classification": level.name,
    }


def label_of(result: Any) -> dict[str, Any]:
    return {name: result.meta[name] for name in ("ifc", "muniment.v1/classification")}


async def called(model: Model, tool: str, **arguments: Any) -> dict[str, Any]:
    """The label of a tool's result, which must succeed."""
    result = await model.call(tool, **arguments)
    assert not result.is_error
    return label_of(result)


WRITES: dict[str, dict[str, Any]] = {
    "memory_save": {"key": "new", "content": "It is so."},
    "memory_delete": {"key": "own"},
    "note_add": {"content": "Ships on Mondays."},
    "note_update": {"note_id": "{note_id}", "content": "It is not so."},
    "note_edit": {"delete": ["{note_id}"]},
    "block_update": {"label": "personality", "content": "Dry humor."},
    "passage_store": {"content": "We met."},
    "passage_delete": {"passage_id": "{passage_id}"},
}


@pytest.mark.parametrize("level", Classification)
async def test_a_write_has_the_level_of_the_session(opened, level):
    session = opened(level)
    session.save_memory("own", "It is so.")
    made = {
        "{note_id}": session.add_note("It is so.").note.note_id,
        "{passage_id}": session.store_passage("It is so.").passage_id,
    }
    filled = {tool: _fill(arguments, made) for tool, arguments in WRITES.items()}
    async with talking(session) as model:
        labels = {tool: await called(model, tool, **arguments) for tool, arguments in filled.items()}
        labels["note_delete"] = await called(model, "note_delete", note_id=await _newest_note(model))

    assert labels == dict.fromkeys([*WRITES, "note_delete"], label(level))


def _fill(arguments: Any, made: dict[str, str]) -> Any:
    """*arguments* with the ids that were made."""
    if isinstance(arguments, dict):
        return {name: _fill(value, made) for name, value in arguments.items()}
    if isinstance(arguments, list):
        return [_fill(value, made) for value in arguments]
    return made.get(arguments, arguments)


async def _newest_note(model: Model) -> str:
    notes: list[dict[str, str]] = (await model.does("note_list"))["notes"]
    return notes[-1]["note_id"]


READS: dict[str, dict[str, Any]] = {
    "search": {"query": "so"},
    "memory_list": {},
    "note_list": {},
    "block_list": {},
    "passage_list": {},
}


@pytest.mark.parametrize("level", Classification)
async def test_a_read_has_the_highest_level_that_it_contains(opened, level):
    """That the session might see more does not matter."""
    for each in (PUBLIC, level):
        session = opened(each)
        session.save_memory("own", "It is so.")
        session.add_note(f"It is so at {each.name}.")
        session.update_block("personality", "It is so.")
        session.store_passage("It is so.")
    passage = next(opened(level).list_passages())
    async with talking(opened(RESTRICTED)) as model:
        labels = {tool: await called(model, tool, **arguments) for tool, arguments in READS.items()}
        labels["memory_get"] = await called(model, "memory_get", key="own")
        labels["versions"] = await called(model, "versions", kind="memory", name="own")
        labels["passage_get"] = await called(model, "passage_get", passage_id=passage.passage_id)
        labels["prompt"] = label_of(await model.client.get_prompt("memory"))
        labels["resource"] = label_of(await model.client.read_resource("muniment://prompt"))

    assert labels == dict.fromkeys(labels, label(level))
    assert {*labels} - {"prompt", "resource"} == {*TOOLS} - {*WRITES, "note_delete"}


@pytest.mark.parametrize("level", Classification)
async def test_an_answer_with_nothing_in_it_has_the_level_of_the_session(opened, level):
    """That there is nothing depends on all that the session sees."""
    public = opened(PUBLIC)
    for block in list(public.list_blocks()):
        public.delete_block(block.label)
    async with talking(opened(level)) as model:
        for tool, arguments in READS.items():
            result = await model.call(tool, **arguments)
            assert label_of(result) == label(level), tool
            assert result.structured_content is not None
            assert result.structured_content["classification"] == level.name, tool
        assert label_of(await model.client.get_prompt("memory")) == label(level)
        assert label_of(await model.client.read_resource("muniment://prompt")) == label(level)


@pytest.mark.parametrize("level", Classification)
async def test_an_error_has_the_level_of_the_session(opened, level):
    session = opened(level)
    session.add_note("x" * 2200)
    async with talking(session) as model:
        results = [
            await model.call("memory_get", key="no-such-key"),
            await model.call("note_add", content="One more."),
            await model.call("passage_get", passage_id=MISSING),
            await model.call("memory_save", key="", content=""),
        ]

    assert [result.is_error for result in results] == [True] * len(results)
    assert [label_of(result) for result in results] == [label(level)] * len(results)


async def test_a_raise_raises_the_label(owner, opened):
    session = opened(PUBLIC)
    async with talking(session) as model:
        before = await called(model, "memory_list")
        owner.raise_taint(session, INTERNAL, reason="read the payroll")
        after = await called(model, "memory_list")

    assert (before, after) == (label(PUBLIC), label(INTERNAL))


async def test_an_unknown_level_is_the_highest(opened):
    session = opened(PUBLIC)
    session.close()
    async with talking(session) as model:
        result = await model.call("memory_list")

    assert label_of(result) == label(RESTRICTED)


@pytest.mark.parametrize("level", Classification)
async def test_what_a_trusted_session_is_answered_is_trusted(owner, level):
    """Reads, writes, deletions, answers with nothing in them and errors, and the rendered prompt."""
    session = owner.open_session("alice", level, integrity=TRUSTED)
    async with talking(session) as model:
        empty = [await called(model, "passage_list"), await called(model, "search", query="so")]
        wrong = label_of(await model.call("memory_get", key="no-such-key"))
        saved = await called(model, "memory_save", key="plan", content="It is so.")
        read = [await called(model, "memory_get", key="plan"), await called(model, "memory_list")]
        prompt = label_of(await model.client.get_prompt("memory"))
        deleted = await called(model, "memory_delete", key="plan")

    own = label(level, "trusted")
    assert [*empty, wrong, saved, *read, deleted] == [own] * 7
    assert prompt["ifc"]["integrity"] == "trusted"


async def test_an_answer_is_as_trusted_as_the_session_and_an_item_as_itself(owner, opened):
    """What an untrusted session is shown depends on what is untrusted, also if all that it is shown is trusted."""
    trusted = owner.open_session("alice", PUBLIC, integrity=TRUSTED)
    trusted.save_memory("plan", "It is so.")
    async with talking(opened(PUBLIC)) as model:
        await model.does("memory_save", key="web", content="It is not so.")
        result = await model.call("memory_get", key="plan")
        listed = await model.does("memory_list")
        versions = await model.does("versions", kind="memory", name="plan")

    assert label_of(result) == label(PUBLIC)
    assert result.structured_content is not None
    assert result.structured_content["integrity"] == "TRUSTED"
    assert {each["key"]: each.get("integrity") for each in listed["memories"]} == {"plan": "TRUSTED", "web": None}
    assert [each.get("integrity") for each in versions["versions"]] == ["TRUSTED"]


async def test_a_raise_in_the_middle_of_a_call_makes_its_answer_untrusted(owner, monkeypatch):
    """The session was trusted when the call began, and is not when it is answered."""
    session = owner.open_session("alice", PUBLIC, integrity=TRUSTED)
    read = session.list_memories_page

    def raised(*given: Any, **named: Any) -> Any:
        owner.raise_taint(session, PUBLIC, reason="read a page")
        return read(*given, **named)

    monkeypatch.setattr(session, "list_memories_page", raised)
    session.save_memory("plan", "It is so.")
    async with talking(session) as model:
        before = await called(model, "memory_get", key="plan")
        during = await called(model, "memory_list")

    assert (before, during) == (label(PUBLIC, "trusted"), label(PUBLIC))


async def test_the_label_costs_an_untrusted_session_no_call(opened, monkeypatch):
    session = opened(PUBLIC)
    session.save_memory("plan", "It is so.")
    monkeypatch.setattr(session, "get_session", lambda: pytest.fail("asked for the session"))
    async with talking(session) as model:
        assert await called(model, "memory_get", key="plan") == label(PUBLIC)


Act = Callable[[Model], Awaitable[Any]]


@pytest.mark.parametrize(
    "act",
    [
        lambda model: model.call("search", query="so"),
        lambda model: model.call("memory_get", key="plan"),
        lambda model: model.call("memory_list"),
        lambda model: model.call("memory_save", key="plan", content="It is so."),
        lambda model: model.call("memory_delete", key="plan"),
        lambda model: model.client.get_prompt("memory"),
    ],
    ids=["search", "get", "list", "save", "delete", "prompt"],
)
async def test_a_label_does_not_depend_on_what_is_above(opened, act: Act):
    """The whole result of a public session is the same before and after others write above it."""
    session = opened(PUBLIC)
    async with talking(session) as model:
        before = await act(model)
        for level in (INTERNAL, CONFIDENTIAL, RESTRICTED):
            above = opened(level)
            above.save_memory("plan", "It is so.")
            above.add_note("It is so.")
            above.update_block("personality", "It is so.")
            above.store_passage("It is so.")
        after = await act(model)

    assert label_of(after) == label_of(before) == label(PUBLIC)
    assert after.model_dump() == before.model_dump()
