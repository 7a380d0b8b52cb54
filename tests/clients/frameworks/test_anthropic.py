"""Anthropic's memory tool: its own file system tool does the same beside ours, and ours does it at two taints."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaLocalFilesystemMemoryTool,
)

from muniment import Classification
from muniment.anthropic import MunimentAsyncMemoryTool, MunimentMemoryTool
from tests.clients.frameworks.conftest import Opened

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification

Command = dict[str, Any]
DOCUMENTED = {
    "excluding hidden items:": "excluding hidden items and node_modules:",
    "It should be within the range [": "It should be within the range of lines of the file: [",
}
"""Where the Python tool says otherwise than the documentation and the tool in TypeScript."""


def answer(tool: BetaAbstractMemoryTool, command: Command) -> str:
    """What the model reads."""
    try:
        return str(tool.call(command))
    except ToolError as error:
        return f"Error: {error}"


def do(tool: BetaAbstractMemoryTool, command: str, path: str = "/memories", **arguments: Any) -> str:
    return answer(tool, {"command": command, "path": path, **arguments})


def documented(text: str) -> str:
    for said, written in DOCUMENTED.items():
        text = text.replace(said, written)
    if text.startswith("Error: Invalid `insert_line`"):
        text = text.removesuffix(".")
    # The size of a directory is that of the files in it, not what a file system says.
    return re.sub(r"(?<=node_modules:\n)\S+(?=\t)|^\S+(?=\t\S+/$)", "SIZE", text, flags=re.MULTILINE)


@pytest.fixture
def tools(opened: Opened) -> Callable[[Classification], MunimentMemoryTool]:
    return lambda taint: MunimentMemoryTool(opened(taint))


A = "/memories/a.md"
SCRIPT: list[Command] = [
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": A},
    {"command": "create", "path": A, "file_text": "one\ntwo\nthree\nfour\nfive\nsix\n"},
    {"command": "create", "path": A, "file_text": "other"},
    {"command": "view", "path": A},
    {"command": "view", "path": A, "view_range": [2, 4]},
    {"command": "view", "path": A, "view_range": [5, -1]},
    {"command": "view", "path": A, "view_range": [0, 2]},
    {"command": "view", "path": A, "view_range": [9, 12]},
    {"command": "str_replace", "path": A, "old_str": "four", "new_str": "4\n4.5"},
    {"command": "str_replace", "path": A, "old_str": "one", "new_str": "1"},
    {"command": "str_replace", "path": A, "old_str": "six\n", "new_str": "6"},
    {"command": "str_replace", "path": A, "old_str": "seven", "new_str": "7"},
    {"command": "str_replace", "path": A, "old_str": "t", "new_str": "T"},
    {"command": "str_replace", "path": A, "old_str": "4", "new_str": "T"},
    {"command": "str_replace", "path": "/memories/none", "old_str": "a", "new_str": "b"},
    {"command": "insert", "path": A, "insert_line": 0, "insert_text": "zero\n"},
    {"command": "insert", "path": A, "insert_line": 3, "insert_text": "in between"},
    {"command": "insert", "path": A, "insert_line": 99, "insert_text": "x"},
    {"command": "insert", "path": A, "insert_line": -1, "insert_text": "x"},
    {"command": "insert", "path": "/memories/none", "insert_line": 0, "insert_text": "x"},
    {"command": "view", "path": A},
    {"command": "create", "path": "/memories/empty", "file_text": ""},
    {"command": "view", "path": "/memories/empty"},
    {"command": "insert", "path": "/memories/empty", "insert_line": 0, "insert_text": "no longer"},
    {"command": "create", "path": "/memories/d/e/f/deep.md", "file_text": "x" * 1536},
    {"command": "create", "path": "/memories/d/b.md", "file_text": "x" * 2048},
    {"command": "create", "path": "/memories/d-1/b.md", "file_text": "x" * 1023},
    {"command": "create", "path": "/memories/.hidden/b.md", "file_text": "x"},
    {"command": "create", "path": "/memories/d/.hidden", "file_text": "x"},
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/memories/d"},
    {"command": "view", "path": "/memories/d/e/f"},
    {"command": "view", "path": "/memories/d/.hidden"},
    {"command": "create", "path": "/memories/d", "file_text": "x"},
    {"command": "str_replace", "path": "/memories/d", "old_str": "a", "new_str": "b"},
    {"command": "insert", "path": "/memories/d", "insert_line": 0, "insert_text": "x"},
    {"command": "rename", "old_path": A, "new_path": "/memories/d"},
    {"command": "rename", "old_path": A, "new_path": "/memories/d/b.md"},
    {"command": "rename", "old_path": "/memories/none", "new_path": A},
    {"command": "rename", "old_path": "/memories/none", "new_path": "/memories/other"},
    {"command": "rename", "old_path": "/memories", "new_path": "/memories/other"},
    {"command": "rename", "old_path": A, "new_path": "/memories"},
    {"command": "rename", "old_path": A, "new_path": "/memories/new/place/a.md"},
    {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/new/d"},
    {"command": "view", "path": "/memories/new"},
    {"command": "view", "path": "/memories/new/place/a.md"},
    {"command": "delete", "path": "/memories"},
    {"command": "delete", "path": "/memories/none"},
    {"command": "delete", "path": "/memories/empty"},
    {"command": "delete", "path": "/memories/new/d"},
    {"command": "view", "path": "/memories/new/d"},
    {"command": "view", "path": "/memories/../etc/passwd"},
    {"command": "view", "path": "/memories/a/../../../x"},
    {"command": "delete", "path": "/memories/.."},
    {"command": "create", "path": "/etc/passwd", "file_text": "x"},
    {"command": "rename", "old_path": "/etc/passwd", "new_path": A},
    {"command": "view", "path": "/memories"},
]


@pytest.mark.parametrize("taint", [PUBLIC, CONFIDENTIAL])
def test_it_answers_like_anthropics_own_tool(tools, tmp_path: Path, taint):
    theirs, ours = BetaLocalFilesystemMemoryTool(str(tmp_path)), tools(taint)
    for command in SCRIPT:
        assert documented(answer(ours, command)) == documented(answer(theirs, command)), command


def test_the_size_of_a_directory_is_that_of_its_files(tools):
    tool = tools(PUBLIC)
    for path, size in (("d/a", 1000), ("d/e/b", 536), ("c", 2560)):
        do(tool, "create", f"/memories/{path}", file_text="x" * size)

    assert do(tool, "view").splitlines()[1:] == [
        "4K\t/memories",
        "2.5K\t/memories/c",
        "1.5K\t/memories/d/",
        "1000B\t/memories/d/a",
        "536B\t/memories/d/e/",
    ]


def test_node_modules_are_not_shown(tools):
    tool = tools(PUBLIC)
    do(tool, "create", "/memories/node_modules/a", file_text="x")
    assert do(tool, "view").splitlines()[1:] == ["0B\t/memories"]


def test_a_file_above_the_taint_does_not_exist(tools):
    low, high = tools(PUBLIC), tools(CONFIDENTIAL)
    do(high, "create", "/memories/pay/salary", file_text="52,000")
    absent = "Error: The path /memories/pay/salary does not exist. Please provide a valid path."

    assert do(low, "view", "/memories/pay/salary") == absent
    assert do(low, "str_replace", "/memories/pay/salary", old_str="a", new_str="b") == absent
    assert do(low, "view").splitlines()[1:] == ["0B\t/memories"]
    assert do(low, "delete", "/memories/pay") == "Error: The path /memories/pay does not exist"
    assert do(low, "create", "/memories/pay/salary", file_text="?").startswith("File created")
    assert "52,000" in do(high, "view", "/memories/pay/salary")


def test_a_lower_file_is_edited_at_the_taint_and_not_deleted(tools):
    low, high = tools(PUBLIC), tools(CONFIDENTIAL)
    do(low, "create", A, file_text="one\n")
    kept = (
        "from this conversation, because it was written at a lower classification. It stays readable. To change what "
        "this conversation sees, edit it: conversations at the lower classification keep their version."
    )

    assert do(high, "delete", A) == f"Error: {A} cannot be deleted {kept}"
    moved = {"command": "rename", "old_path": A, "new_path": "/memories/b"}
    assert answer(high, moved) == f"Error: {A} cannot be renamed {kept}"
    assert do(high, "view", "/memories/b").startswith("Error")
    assert do(high, "str_replace", A, old_str="one", new_str="two").startswith("The memory file has been edited.")
    shown = f"Here's the content of {A} with line numbers:\n     1\t{{}}\n     2\t"
    assert (do(low, "view", A), do(high, "view", A)) == (shown.format("one"), shown.format("two"))


def test_a_deletion_that_uncovers_a_lower_version_says_so(tools):
    low, high = tools(PUBLIC), tools(CONFIDENTIAL)
    do(low, "create", A, file_text="one\n")
    again = f". An earlier version of {A}, which was written at a lower classification, is visible again."

    do(high, "insert", A, insert_line=0, insert_text="zero")
    assert do(high, "delete", A) == f"Successfully deleted {A}{again}"
    do(high, "insert", A, insert_line=0, insert_text="zero")
    moved = {"command": "rename", "old_path": A, "new_path": "/memories/b"}
    assert answer(high, moved) == f"Successfully renamed {A} to /memories/b{again}"


def test_after_a_raise_the_same_tool_writes_higher(owner, opened):
    session = opened(PUBLIC)
    tool, low = MunimentMemoryTool(session), MunimentMemoryTool(opened(PUBLIC))
    do(tool, "create", A, file_text="one\n")
    owner.raise_taint(session, RESTRICTED, reason="read the payroll")

    do(tool, "str_replace", A, old_str="one", new_str="two")

    assert "one" in do(low, "view", A)
    assert "two" in do(tool, "view", A)


def test_a_file_that_somebody_else_changes_is_not_overwritten(opened, monkeypatch):
    session, other = opened(PUBLIC), MunimentMemoryTool(opened(PUBLIC))
    tool = MunimentMemoryTool(session)
    do(tool, "create", A, file_text="one\n")
    read = session.get_memory

    def overtaken(key):
        memory = read(key)
        do(other, "insert", A, insert_line=0, insert_text="theirs")
        return memory

    monkeypatch.setattr(session, "get_memory", overtaken)
    assert do(tool, "str_replace", A, old_str="one", new_str="mine") == (
        f"Error: {A} was changed by somebody else meanwhile: read it again."
    )
    assert do(other, "view", A).endswith("     1\ttheirs\n     2\tone\n     3\t")


def test_the_host_can_clear_it(tools):
    low, high = tools(PUBLIC), tools(CONFIDENTIAL)
    do(high, "create", "/memories/b", file_text="x")
    assert high.clear_all_memory() == "All memory cleared"
    assert do(high, "view").splitlines()[1:] == ["0B\t/memories"]

    do(low, "create", A, file_text="x")
    with pytest.raises(ToolError, match="cannot be deleted from this conversation"):
        high.clear_all_memory()


def test_the_model_is_offered_anthropics_tool_and_no_level(opened):
    session = opened(PUBLIC)
    assert MunimentMemoryTool(session).to_dict() == {"type": "memory_20250818", "name": "memory"}
    tool = MunimentAsyncMemoryTool(session, cache_control={"type": "ephemeral"})
    assert tool.to_dict()["cache_control"] == {"type": "ephemeral"}


@pytest.mark.anyio
async def test_the_asynchronous_tool_does_the_same(opened, tmp_path):
    ours: BetaAsyncAbstractMemoryTool = MunimentAsyncMemoryTool(opened(PUBLIC))
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path))
    for command in SCRIPT:
        try:
            said = str(await ours.call(command))
        except ToolError as error:
            said = f"Error: {error}"
        assert documented(said) == documented(answer(theirs, command)), command
    assert await ours.clear_all_memory() == "All memory cleared"


@pytest.mark.parametrize(
    ("command", "parameter"),
    [
        ({"command": "view"}, "path"),
        ({"command": "view", "path": 5}, "path"),
        ({"command": "view", "path": A, "view_range": ["one", 2]}, "view_range"),
        ({"command": "view", "path": A, "view_range": [1.5, 2]}, "view_range"),
        ({"command": "create", "path": "/memories/b"}, "file_text"),
        ({"command": "str_replace", "path": A}, "old_str"),
        ({"command": "str_replace", "path": A, "old_str": "one", "new_str": ["two"]}, "new_str"),
        ({"command": "insert", "path": A, "insert_line": 0}, "insert_text"),
        ({"command": "insert", "path": A, "insert_text": "x"}, "insert_line"),
        ({"command": "insert", "path": A, "insert_line": 0.5, "insert_text": "x"}, "insert_line"),
        ({"command": "rename", "old_path": A}, "path"),
        ({"command": "delete", "path": None}, "path"),
    ],
)
def test_a_parameter_that_is_missing_or_of_another_type_is_explained(tools, command, parameter):
    """The SDK hands over what the model wrote."""
    tool = tools(PUBLIC)
    do(tool, "create", A, file_text="one\n")
    assert answer(tool, command).startswith(f"Error: Invalid `{parameter}` parameter")
    assert do(tool, "view", A).endswith("     1\tone\n     2\t")


def test_a_replacement_that_is_left_out_is_empty(tools):
    tool = tools(PUBLIC)
    do(tool, "create", A, file_text="one two\n")
    assert do(tool, "str_replace", A, old_str=" two").startswith("The memory file has been edited.")
    assert do(tool, "view", A).endswith("     1\tone\n     2\t")
