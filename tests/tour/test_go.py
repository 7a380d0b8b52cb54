"""The example of the Go client's README, on a server of ours. That it is the README's, the client's own tests say."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.tour.go_tools import not_run
from tests.tour.readme import ROOT

_SECONDS = 600
"""Go compiles gRPC first when its cache is empty."""


@pytest.mark.proof  # it compiles gRPC, which takes a minute
def test_the_go_of_the_client(exported):
    if shutil.which("go") is None:
        not_run("Go", "it is not on the PATH")

    done = subprocess.run(
        ["go", "test", "-count=1", "-v", "-run", "^Example$", "."],
        cwd=ROOT / "clients" / "go",
        env={**os.environ, **exported, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )

    assert "--- PASS: Example" in done.stdout, done.stdout + done.stderr
