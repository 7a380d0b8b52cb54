"""Examples of the Go client's README, on a server of ours. That they are the README's, the client's own tests say."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.tools.tour.go_tools import not_run
from tests.tools.tour.readme import ROOT

_SECONDS = 600
"""Go compiles gRPC first when its cache is empty."""


@pytest.mark.proof  # it compiles gRPC, which takes a minute
def test_the_go_of_the_client(compilers):
    if shutil.which("go") is None:
        not_run("Go", "it is not on the PATH")

    done = subprocess.run(
        ["go", "test", "-count=1", "-v", "-run", "^Example(Collect|Host_Conversation)?$", "."],
        cwd=ROOT / "clients" / "go",
        env=compilers,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )

    examples = ("Example", "ExampleCollect", "ExampleHost_Conversation")
    passed = [name for name in examples if f"--- PASS: {name} (" in done.stdout]
    assert len(passed) == 3, done.stdout + done.stderr
