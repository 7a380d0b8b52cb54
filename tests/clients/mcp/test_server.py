"""What a model can name, what it reads, and what leaves the process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from muniment import Classification
from tests.clients.mcp.conftest import COMMAND, talking, talking_over_stdio
from tests.clients.mcp.tools import TOOLS
from tests.operations.release.packages import WHEEL

READS = {name for name in TOOLS if name.endswith(("_get", "search", "versions", "_list"))}
ADDS = {"note_add", "passage_store"}
MOST_BYTES = 12_000
"""Of the list of tools, which is part of each prompt: it took 24,264 bytes in 0.1.0."""
_SPEAKS_OF_LEVELS = re.compile(
    r"agent|owner|tenant|session|taint|level|classif|label_of|public|internal|confid|restrict"
)
_CANARY = "canary-in-a-content"


def names_in(schema: Any) -> Iterator[str]:
    """The names of arguments, at any depth, and the values that they are chosen from."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        yield from map(str, schema.get("enum", []))
        for part in schema.values():
            yield from names_in(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from names_in(part)


def closed_in(schema: Any) -> Iterator[bool]:
    """Of each object in *schema*, at any depth, whether it has no properties but those that are named."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema.get("additionalProperties") is False
        for part in schema.values():
            yield from closed_in(part)


@pytest.fixture
def session(opened):
    return opened(Classification.PUBLIC)


@pytest.mark.anyio
async def test_no_argument_names_an_agent_or_a_level(session):
    async with talking(session) as model:
        tools = (await model.client.list_tools()).tools

    assert [tool.name for tool in tools] == TOOLS
    named = {name for tool in tools for name in names_in(tool.input_schema)}
    assert {"key", "target", "note_id"} < named
    assert [name for name in named if _SPEAKS_OF_LEVELS.search(name.lower())] == []


@pytest.mark.anyio
async def test_every_tool_says_when_to_use_it_and_what_it_does(session):
    async with talking(session) as model:
        tools = (await model.client.list_tools()).tools

    for tool in tools:
        hints = tool.annotations
        assert hints is not None
        assert len(tool.description or "") > 60
        assert hints.read_only_hint == (tool.name in READS)
        assert hints.destructive_hint == (None if tool.name in READS else tool.name not in ADDS)
        assert hints.idempotent_hint == (
            None if tool.name in READS else tool.name not in ("note_edit", "passage_store")
        )
        assert all(each.get("description") for each in tool.input_schema.get("properties", {}).values())


@pytest.mark.anyio
async def test_recalled_text_may_have_come_from_anywhere(session):
    """A guard takes what a tool of a closed world gives for trusted."""
    async with talking(session) as model:
        tools = (await model.client.list_tools()).tools

    assert {tool.name for tool in tools if tool.annotations and tool.annotations.open_world_hint} == set(TOOLS)


@pytest.mark.anyio
async def test_the_tools_take_half_of_what_they_took(session):
    async with talking(session) as model:
        tools = (await model.client.list_tools()).tools

    listed = json.dumps([tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools])
    assert len(listed) <= MOST_BYTES
    assert '"title"' not in json.dumps([tool.input_schema for tool in tools])


@pytest.mark.anyio
async def test_every_tool_has_a_title_and_says_that_it_refuses_what_it_does_not_know(session):
    async with talking(session) as model:
        tools = (await model.client.list_tools()).tools

    assert len({tool.title for tool in tools if tool.title}) == len(tools)
    assert [tool.name for tool in tools if not all(closed_in(tool.input_schema))] == []


@pytest.mark.anyio
async def test_the_instructions_ask_to_save_unasked_and_never_at_a_level(session):
    async with talking(session) as model:
        instructions = model.client.instructions

    assert instructions is not None
    for words in ("on your own", "personal details", "project context", "preferences", "descriptive key"):
        assert words in instructions
    assert not re.search(r"PUBLIC|INTERNAL|CONFIDENTIAL|RESTRICTED", instructions)
    assert set(re.findall(r"\b(?:memory|note|block|passage)_\w+", instructions)) < set(TOOLS)
    assert "search" in instructions


def test_nothing_but_the_protocol_is_on_stdout_and_no_secret_anywhere(service, session):
    calls: list[tuple[str, dict[str, object]]] = [
        ("memory_save", {"key": "plan", "content": _CANARY}),
        ("memory_get", {"key": "plan"}),
        ("memory_save", {"key": "", "content": _CANARY}),
        ("note_add", {"content": _CANARY * 200}),
        ("no_such_tool", {"content": _CANARY}),
    ]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    sent = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(calls, start=1)
        ),
    ]
    environment = {"MUNIMENT_ADDRESS": service.address, "MUNIMENT_TOKEN": session.token}
    with subprocess.Popen(
        [COMMAND], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write("".join(f"{json.dumps(each)}\n" for each in sent))
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(len(calls) + 1)]
        process.stdin.close()
        lines += process.stdout.readlines()
        errors = process.stderr.read()
        assert process.wait(30) == 0

    answers = [json.loads(line) for line in lines]
    assert {answer["jsonrpc"] for answer in answers} == {"2.0"}
    assert sorted(answer["id"] for answer in answers) == list(range(len(calls) + 1))
    assert session.token not in "".join(lines)
    assert session.token not in errors
    assert _CANARY not in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"MUNIMENT_ADDRESS": "127.0.0.1:1"},
        {"MUNIMENT_TOKEN": "mun_s_1_secret"},
        {"MUNIMENT_ADDRESS": "127.0.0.1:1", "MUNIMENT_TOKEN": "mun_s_1_secret", "MUNIMENT_TLS_CA": "/no/such/file"},
        {"MUNIMENT_ADDRESS": "127.0.0.1:1", "MUNIMENT_TOKEN": "mun_s_1_secret with a space"},
        {"MUNIMENT_ADDRESS": "127.0.0.1:1", "MUNIMENT_HOST_KEY": "mun_h_1_secret"},
    ],
    ids=["nothing", "no token", "no address", "no such authority", "no token at all", "a host key"],
)
def test_without_a_session_it_says_what_is_missing(environment, tmp_path):
    done = subprocess.run([COMMAND], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert "MUNIMENT_TOKEN" in done.stderr
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("state", ["closed", "unknown", "host key"])
def test_a_bad_token_ends_the_server_at_its_start(state, service, session, tmp_path):
    """Before a model has called anything, and without showing the token."""
    tokens = {"closed": session.token, "unknown": "mun_s_1_" + "x" * 43, "host key": service.host().token}
    if state == "closed":
        session.close()
    environment = {"MUNIMENT_ADDRESS": service.address, "MUNIMENT_TOKEN": tokens[state]}
    done = subprocess.run(
        [COMMAND], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert "MUNIMENT_TOKEN is " in done.stderr
    assert "muniment session open" in done.stderr
    assert ("a host key" in done.stderr) == (state == "host key")
    assert tokens[state] not in done.stderr


def test_a_memory_that_is_not_there_yet_may_come_later(tmp_path):
    environment = {"MUNIMENT_ADDRESS": "127.0.0.1:1", "MUNIMENT_TOKEN": "mun_s_1_a-session-token"}
    done = subprocess.run(
        [COMMAND], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )

    assert (done.returncode, done.stdout) == (0, "")
    assert "cannot be reached yet: UNAVAILABLE" in done.stderr


@pytest.mark.parametrize("absent", ["mcp", "uvicorn"])
@pytest.mark.parametrize("served", ["run()", "run_http('127.0.0.1:0')"])
def test_without_the_sdk_it_says_what_to_install(absent, served, tmp_path):
    absent = f"sys.modules['mcp'] = None; sys.modules[{absent!r}] = None"
    script = f"import sys; {absent}; from muniment.mcp import run, run_http; {served}"
    environment = {"MUNIMENT_ADDRESS": "127.0.0.1:1", "MUNIMENT_TOKEN": "mun_s_1_a-session-token"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert "in a checkout of Muniment: pip install './clients/python[mcp]'\n" in done.stderr
    assert f"pip install 'dist/{WHEEL.path}[mcp]'\n" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command", [(COMMAND,), (COMMAND.removesuffix("-mcp"), "mcp")], ids=["muniment-mcp", "muniment"]
)
@pytest.mark.parametrize("option", ["--tls-cert", "--tls-key", "--name"])
def test_an_option_that_needs_http_is_not_ignored_without_it(command, option, tmp_path):
    done = subprocess.run(
        [*command, option, "x"],
        env={},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "--tls-cert, --tls-key and --name are for --http" in done.stderr


def test_it_has_a_help(tmp_path):
    done = subprocess.run([COMMAND, "--help"], cwd=tmp_path, env={}, capture_output=True, text=True, check=True)

    assert "MUNIMENT_TOKEN" in done.stdout


@pytest.mark.anyio
async def test_muniment_mcp_is_the_same(service, session):
    """Where the server package is installed, too."""
    command = COMMAND.removesuffix("-mcp")
    async with talking_over_stdio(service.address, session.token, command, "mcp") as model:
        assert [tool.name for tool in (await model.client.list_tools()).tools] == TOOLS
