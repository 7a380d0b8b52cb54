"""Arguments that do not fit a tool: the model reads which, and what was expected, and nothing that it sent."""

from __future__ import annotations

from typing import Any

import pytest

from muniment import Classification
from tests.clients.mcp.conftest import said, talking
from tests.clients.mcp.over_http import serving

CANARY = "canary-in-an-argument"
CASES = [
    ("memory_save", {}, "key is missing; content is missing"),
    ("memory_save", {"key": 5, "content": [CANARY]}, "key must be text; content must be text"),
    ("memory_save", {"key": "", "content": CANARY}, "key must not be empty"),
    ("memory_save", {"key": CANARY * 20, "content": CANARY}, "key must have at most 256 characters"),
    ("memory_save", {"key": CANARY, "content": CANARY, "tags": 5}, "tags[0] must be text"),
    ("memory_save", {"key": CANARY, "content": None}, "content is missing"),
    ("memory_save", {"key": CANARY, "content": CANARY, "tags": [CANARY] * 33}, "tags must have at most 32 entries"),
    ("memory_save", {"key": CANARY, "content": CANARY, "tags": [CANARY, {CANARY: 1}]}, "tags[1] must be text"),
    ("note_add", {"content": CANARY, CANARY: "user"}, "takes no arguments but content, target"),
    ("block_list", {CANARY: CANARY}, "takes no arguments"),
    ("note_add", {"content": CANARY, "target": CANARY}, "target must be memory or user"),
    ("note_edit", {"update": [CANARY]}, "update[0] must be an object"),
    ("note_edit", {"update": [{"note_id": CANARY}]}, "update[0].content is missing"),
    ("note_edit", {"update": {"note_id": CANARY}}, "update[0].content is missing"),
    (
        "note_edit",
        {"update": [{"note_id": CANARY, "content": CANARY, "level": CANARY}]},
        "update[0] has an unknown field",
    ),
    ("search", {"query": CANARY, "kind": CANARY}, "kind must be all, memory, note or passage"),
    ("search", {"query": CANARY, "max_results": CANARY}, "max_results must be a whole number"),
    ("search", {"query": CANARY, "max_results": 1.5}, "max_results must be a whole number"),
    ("search", {"query": CANARY, "max_results": 0}, "max_results must be at least 1"),
    ("search", {"query": CANARY, "max_results": 101}, "max_results must be at most 100"),
    (
        "note_edit",
        {"add": [[CANARY]] * 9},
        "; ".join(f"add[{number}] must be text" for number in range(5)) + "; 4 more do not fit",
    ),
]
STRANGE: list[Any] = [
    None,
    True,
    5,
    1.5,
    "",
    "x",
    "9" * 5000,
    "x" * 300_000,
    "inf",
    [],
    [5],
    [[CANARY]],
    [{}],
    {CANARY: 1},
]


@pytest.fixture
def session(opened):
    return opened(Classification.PUBLIC)


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "arguments", "expected"), CASES, ids=[expected for *_, expected in CASES])
async def test_the_argument_is_named_with_what_it_must_be(session, tool, arguments, expected):
    async with talking(session) as model:
        text = await model.fails(tool, **arguments)

    assert text == f"Error executing tool {tool}: {expected}. Correct the arguments and call again."


@pytest.mark.anyio
async def test_every_rule_of_every_argument_has_its_words(session):
    """Of each argument, with values of every kind. Which of them fit is not the question."""
    async with talking(session) as model:
        for tool in (await model.client.list_tools()).tools:
            for name in tool.input_schema.get("properties", {}):
                results = [await model.call(tool.name, **{name: value}) for value in STRANGE]
                texts = "".join(said(result) for result in results if result.is_error)
                assert not [word for word in ("its schema", "pydantic", CANARY) if word in texts], (tool.name, name)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (None, ()),
        ("", ()),
        ("null", ()),
        ("[]", ()),
        ("work", ("work",)),
        ("two words", ("two words",)),
        ("5", ("5",)),
        ('["a", "b"]', ("a", "b")),
        (["a"], ("a",)),
    ],
    ids=str,
)
async def test_where_a_list_is_wanted_a_word_is_a_list_of_one_and_null_is_none(session, given, stored):
    async with talking(session) as model:
        await model.does("memory_save", key="plan", content="ship", tags=given)

    assert session.get_memory("plan").tags == stored


@pytest.mark.anyio
async def test_an_argument_that_is_null_is_absent(session):
    """Models send null for what they do not use, whether or not the tool has it."""
    async with talking(session) as model:
        await model.does("note_add", content="Ships on Fridays.", target=None, level=None)
        found = await model.does("search", query="ships", kind=None, max_results=None)
        listed = await model.does("memory_list", tag=None, after=None)

    assert [each["content"] for each in found["notes"]] == ["Ships on Fridays."]
    assert listed["memories"] == []


def test_nothing_of_a_call_comes_back_over_http(service, session):
    with serving(service.address) as endpoint:
        refused = endpoint.call(session.token, "memory_save", key=5, content=[CANARY])

    assert refused.status_code == 200
    assert refused.json()["result"]["isError"] is True
    assert CANARY not in refused.text
    assert "pydantic" not in refused.text
