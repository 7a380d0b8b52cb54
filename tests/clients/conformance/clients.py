"""The clients: what each needs, how its runner is built, and how it is run.

A runner is a process: `RUNNER FILE`, which finds the server in its environment. README.md has the whole protocol.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.clients.conformance.transcripts import Broken

ROOT = Path(__file__).parents[3]
_SECONDS = 300
"""For all scenarios, on a machine that has other work."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client: one for each language, two for Python. Paths are relative to the repository."""

    name: str
    needs: tuple[str, ...]
    """Programs on the PATH, without which it can be neither built nor run."""
    build: tuple[str, ...]
    """Makes *built*, or makes it anew where something changed."""
    built: str
    """What is run. Absent: it was never built here."""
    command: tuple[str, ...]
    """Before the name of the file."""
    repeats: bool = True
    """Whether it repeats calls that failed, as clients/README.md says. Stubs alone do not."""

    @property
    def language(self) -> str:
        """Whose tests include those of this client."""
        return self.name.partition("-")[0]

    @property
    def missing(self) -> tuple[str, ...]:
        """What it needs and is not here."""
        return tuple(program for program in self.needs if shutil.which(program) is None)

    @property
    def is_built(self) -> bool:
        return (ROOT / self.built).exists()

    @property
    def is_current(self) -> bool:
        """Whether neither the contract nor the folder of its language has changed since it was built."""
        files = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
        listed = subprocess.run(
            [*files, "proto", f"clients/{self.language}"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        sources = [ROOT / name for name in listed.stdout.split("\0") if name]
        return bool(sources) and self.is_built and max(map(_changed, sources)) <= _changed(ROOT / self.built)

    def make(self) -> None:
        """Build the runner, unless it is current. Raises Broken."""
        if self.build and not self.is_current:
            done = subprocess.run(self.build, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Broken(f"{' '.join(self.build)} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")

    def start(
        self,
        file: str,
        environment: Mapping[str, str],
        *,
        errors: int | IO[str] = subprocess.PIPE,
        signals: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[str]:
        """The runner, which plays the scenarios in a file and prints to a pipe.

        *errors*: where its errors go. A pipe that is not read stops it once it is full. *signals*: its standard
        input, from which a step that waits reads.
        """
        return subprocess.Popen(
            [*self.command, file],
            cwd=ROOT,
            env={**_PLAIN, **environment},
            stdin=signals,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
        )

    def play(self, scenarios: str, environment: Mapping[str, str]) -> str:
        """What the runner prints for the scenarios, which are JSON. Raises Broken."""
        with tempfile.NamedTemporaryFile("w", prefix="muniment-scenarios-", suffix=".json", encoding="utf-8") as file:
            file.write(scenarios)
            file.flush()
            with self.start(file.name, environment) as runner:
                try:
                    printed, errors = runner.communicate(timeout=_SECONDS)
                except subprocess.TimeoutExpired:
                    runner.kill()
                    raise Broken(f"it was not done after {_SECONDS} seconds") from None
        if runner.returncode != 0:
            raise Broken(f"it ended with {runner.returncode}: {errors[-4000:]}")
        return printed


def _changed(path: Path) -> float:
    """When a file was changed; a file that was deleted, which no one knows, counts as changed now."""
    return path.stat().st_mtime if path.exists() else float("inf")


_PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}

CLIENTS = (
    Client(
        name="python",
        needs=(),
        build=(),
        built="clients/python/conformance/runner.py",
        command=(sys.executable, "clients/python/conformance/runner.py"),
    ),
    Client(
        name="python-aio",
        needs=(),
        build=(),
        built="clients/python/conformance/runner.py",
        command=(sys.executable, "clients/python/conformance/runner.py", "--aio"),
    ),
    Client(
        name="go",
        needs=("go",),
        build=("make", "--silent", "conformance-go"),
        built="clients/go/bin/conformance",
        command=("clients/go/bin/conformance",),
    ),
    Client(
        name="typescript",
        needs=("node", "npm"),
        build=("make", "--silent", "build-typescript"),
        built="clients/typescript/dist/conformance/runner.js",
        command=("node", "clients/typescript/dist/conformance/runner.js"),
    ),
    Client(
        name="java",
        needs=("java", "javac", "mvn"),
        build=("mvn", "-B", "-q", "-f", "clients/java/pom.xml", "process-test-classes"),
        built="clients/java/target/conformance.classpath",
        command=("clients/java/conformance",),
    ),
    Client(
        name="rust",
        needs=("cargo",),
        build=("make", "--silent", "conformance-rust"),
        built="clients/rust/bin/conformance",
        command=("clients/rust/bin/conformance",),
    ),
    # No client of ours, and no gRPC: JSON by HTTP, through `muniment http`.
    Client(
        name="python-http",
        needs=(),
        build=(),
        built="tests/clients/conformance/http/runner.py",
        command=(sys.executable, "tests/clients/conformance/http/runner.py"),
        repeats=False,
    ),
    # No client of ours: it shows that stubs from proto/api.binpb are enough, made by the old protoc of Debian 12.
    Client(
        name="ruby",
        needs=("ruby", "protoc", "grpc_ruby_plugin"),
        build=("make", "--silent", "conformance-ruby"),
        built="tests/clients/conformance/ruby/stubs",
        command=("ruby", "tests/clients/conformance/ruby/runner.rb"),
        repeats=False,
    ),
)
