"""What the tour walks on: a folder with `.venv` in it, and the server that `make run` starts."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import Server, environment_in
from tests.tools.tour.readme import ROOT


def recipe(target: str, *variables: str) -> list[str]:
    """The command that a target of the Makefile runs, once its environment is there.

    Whatever `make` and its variables started these tests, this one does not inherit.
    """
    dry = [
        "make",
        "--dry-run",
        "--no-print-directory",
        "--old-file=.venv/.stamp",
        "--old-file=.venv/.server",
        target,
        *variables,
    ]
    done = subprocess.run(dry, cwd=ROOT, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True)
    return shlex.split(done.stdout)


@pytest.fixture
def folder() -> Iterator[Path]:
    """In place of the repository: `.venv` is there, and `.muniment` will be."""
    with tempfile.TemporaryDirectory(prefix="muniment-tour-") as name:
        place = Path(name)
        place.chmod(0o711)
        (place / ".venv").symlink_to(sys.prefix)
        yield place


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """A plain one: what `make run` prints puts `.venv` on the PATH."""
    return {**environment_in(folder), "PATH": os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"])}


@pytest.fixture
def pasted(folder: Path) -> Iterator[str]:
    """The `export` lines that `make run` prints, as one block, while its server runs on a free port."""
    command = recipe("run", "LISTEN=127.0.0.1:0")
    assert command[:2] == [".venv/bin/muniment", "serve"]
    server = Server(folder, *command[2:], environment=environment_in(folder), on_a_terminal=True)
    try:
        output = server.read_to_the_last_line()
        yield "".join(
            line.removeprefix("  ") for line in output.splitlines(keepends=True) if line.startswith("  export ")
        )
    finally:
        server.end()


@pytest.fixture
def exported(pasted: str, environment: dict[str, str]) -> dict[str, str]:
    """The environment of a shell into which they were pasted."""
    done = subprocess.run(
        ["bash", "-e", "-c", f"{pasted}\nenv -0"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if line)


@pytest.fixture
def compilers(exported: dict[str, str]) -> dict[str, str]:
    """The environment of these tests, whose home has what compilers keep, with the variables that were pasted."""
    return os.environ | {name: value for name, value in exported.items() if name.startswith("MUNIMENT_")}
