"""grpcurl and ghz, built from `proto/tools/go.mod` where there is Go."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools.tour.readme import ROOT

TOOLS = ROOT / "proto" / "tools"
MODULES = {"grpcurl": "github.com/fullstorydev/grpcurl", "ghz": "github.com/bojand/ghz"}
"""Each has its program in `cmd`."""
_SECONDS = 900
"""Go compiles for about 60 seconds of CPU when its cache is empty."""


def build(name: str, folder: Path) -> None:
    """Put a program into *folder*. Skips the test where it cannot; fails it when REQUIRE_ALL_CLIENTS=1."""
    if shutil.which("go") is None:
        not_run(name, "there is no Go on the PATH to build it with")
    done = subprocess.run(
        ["go", "-C", str(TOOLS), "install", f"{MODULES[name]}/cmd/{name}"],
        env={**os.environ, "GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        not_run(name, f"Go could not build it: {done.stderr.strip()[-400:]}")


def not_run(what: str, why: str) -> None:
    """Say that this part of the tour was not run."""
    if os.environ.get("REQUIRE_ALL_CLIENTS") == "1":
        pytest.fail(f"{what} is required, and {why}")
    pytest.skip(f"{what.upper()} NOT RUN: {why}")
