"""The programs in Go that `go.mod` pins. Go builds each once, which takes minutes, and keeps it in its cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parent
HELM = "helm.sh/helm/v4/cmd/helm"
COMPOSE = "github.com/compose-spec/compose-go/v2/cmd"
"""The reference of the Compose Specification: checks files by its schema, and for what belongs together."""


def run_tool(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of the tools of `go.mod`."""
    return subprocess.run([_program(tool), *arguments], capture_output=True, text=True, timeout=120, check=False)


@cache
def _program(tool: str) -> str:
    done = subprocess.run(
        [require_go(), "-C", _FOLDER, "tool", "-n", tool], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def build(package: str, folder: Path) -> Path:
    """Build a program of this folder into *folder*, unless it is there."""
    program = folder / package
    subprocess.run([require_go(), "-C", _FOLDER, "build", "-o", program, f"./{package}"], check=True)
    return program


def require_go() -> str:
    """Go, or skip the test: CI requires it."""
    go = shutil.which("go")
    if go is None and os.environ.get("REQUIRE_ALL_CLIENTS") == "1":
        pytest.fail("Go is required, and is not installed")
    if go is None:
        pytest.skip("NOT RUN: there is no go")
    return go
