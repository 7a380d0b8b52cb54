"""The MCP Inspector's command line, as somebody would try the server out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muniment import Classification
from tests.clients.mcp.conftest import COMMAND
from tests.clients.mcp.tools import TOOLS

PACKAGE = Path(__file__).parent / "inspector"
_SECONDS = 300
_FILES = ("package.json", "package-lock.json", ".npmrc")

Inspect = Callable[..., dict[str, Any]]


@pytest.fixture
def inspect(request, service, opened) -> Inspect:
    """The Inspector, installed by npm as its lock says; later runs find it in pytest's cache."""
    if shutil.which("npm") is None:
        not_run("there is no npm on the PATH to install it with")
    folder = request.config.cache.mkdir("mcp-inspector")
    lock = (PACKAGE / "package-lock.json").read_text()
    installed = folder / "installed"
    if not installed.exists() or installed.read_text() != lock:
        for name in _FILES:
            shutil.copy(PACKAGE / name, folder)
        done = run("npm", "ci", "--no-audit", "--no-fund", folder=folder)
        if done.returncode != 0:
            not_run(f"npm could not install it: {done.stderr.strip()[-400:]}")
        installed.write_text(lock)
    session = opened(Classification.PUBLIC)
    given = ("-e", f"MUNIMENT_ADDRESS={service.address}", "-e", f"MUNIMENT_TOKEN={session.token}")

    def inspected(*arguments: str) -> dict[str, Any]:
        program = str(folder / "node_modules" / ".bin" / "mcp-inspector-cli")
        done = run(program, "--cli", COMMAND, *given, *arguments, folder=folder)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return inspected


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)


def not_run(why: str) -> None:
    """Say that this test was not run."""
    if os.environ.get("REQUIRE_ALL_CLIENTS") == "1":
        pytest.fail(f"the MCP Inspector is required, and {why}")
    pytest.skip(f"MCP INSPECTOR NOT RUN: {why}")


@pytest.mark.proof
def test_it_lists_and_calls_the_tools(inspect):
    listed = inspect("--method", "tools/list")
    saved = call(inspect, "memory_save", "key=tea", "content=Assam, no sugar", 'tags=["taste"]')
    missing = call(inspect, "memory_get", "key=coffee")

    assert [tool["name"] for tool in listed["tools"]] == TOOLS
    assert saved["structuredContent"] == {"classification": "PUBLIC", "key": "tea"}
    assert missing["isError"]
    assert "MEMORY_NOT_FOUND" in missing["content"][0]["text"]


def call(inspect: Inspect, tool: str, *arguments: str) -> dict[str, Any]:
    return inspect("--method", "tools/call", "--tool-name", tool, "--tool-arg", *arguments)


def test_its_lock_names_no_registry():
    packages = json.loads((PACKAGE / "package-lock.json").read_text())["packages"]

    assert [name for name, package in packages.items() if "resolved" in package] == []
