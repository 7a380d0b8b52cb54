"""The examples of the Rust client's README, on a server of ours. That they are the README's, its own tests say."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.tools.tour.go_tools import not_run
from tests.tools.tour.readme import ROOT

_SECONDS = 900
"""Cargo compiles the crates first when they were never built."""

pytestmark = [pytest.mark.proof, pytest.mark.sampled]  # it compiles tonic, which takes a minute


@pytest.mark.parametrize(
    ("example", "printed"),
    [
        ("quickstart", "tea Public Assam, no sugar\n"),
        ("conversation", "chat-42 Confidential\n"),
        ("taint", "read errands\nthe list ends here\nread all 2\n"),
    ],
)
def test_an_example_of_the_client(example, printed, compilers):
    if shutil.which("cargo") is None:
        not_run("Rust", "cargo is not on the PATH")
    subprocess.run(["make", "--silent", "clients/rust/Cargo.lock"], cwd=ROOT, check=True)

    done = subprocess.run(
        ["cargo", "run", "--quiet", "--locked", "--example", example],
        cwd=ROOT / "clients" / "rust",
        env=compilers,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )

    assert done.stdout == printed, done.stderr
