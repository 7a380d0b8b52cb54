"""Systems under test: processes that read a line of JSON for each operation, and answer with one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from .programs import Operation, Step


class AdapterFailed(Exception):
    """The adapter did not start, ended, or answered something that is not of the protocol."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """One way to keep `high` and `low` apart in a system."""

    name: str
    boundary: Literal["above", "another user", "untrusted"]
    """Whether `high` is the same user at a higher level, another user, or the same user in a context that has read what
    no one vouches for, while `low` is trusted."""


@dataclass(frozen=True, slots=True)
class Description:
    """What an adapter says of itself."""

    system: str
    version: str
    arrangements: Sequence[Arrangement]
    """The first is the one that separates best: planted leaks are looked for in it."""
    operations: Sequence[Operation]
    made: Mapping[str, str]
    """Regular expressions of values that the system makes up, beside uuids and times."""


class System(Protocol):
    """A memory in one world."""

    description: Description

    def begin(self, arrangement: str) -> None:
        """Begin with an empty memory."""

    def send(self, step: Step) -> None:
        """Start one operation."""

    def receive(self) -> Any:
        """Its answer, or its error, as JSON."""


class Process:
    """A system behind an adapter that is a process."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._command = command
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=folder,
            env={**os.environ, **environment},
        )
        try:
            self.description = description_of(self._read())
        except BaseException:
            self.close()
            raise

    def begin(self, arrangement: str) -> None:
        """Begin with an empty memory."""
        self._write({"begin": arrangement})
        self._read()

    def send(self, step: Step) -> None:
        """Start one operation."""
        self._write({"actor": step.actor, "operation": step.operation, "arguments": step.arguments})

    def receive(self) -> Any:
        """Its answer, or its error."""
        return self._read()

    def close(self) -> None:
        """Close the adapter's input, and wait for it to end."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed() from None

    def _read(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        try:
            return json.loads(line)
        except ValueError:
            raise self._failed(line) from None

    def _failed(self, line: str = "") -> AdapterFailed:
        said = f"printed {line[:200]!r}" if line else "ended"
        return AdapterFailed(f"the adapter {said}, which is no answer: {' '.join(self._command)}")


def description_of(said: Any) -> Description:
    """What an adapter says of itself, from the first line of the protocol. AdapterFailed: it is none."""
    try:
        return Description(
            system=said["system"],
            version=said["version"],
            arrangements=[Arrangement(**each) for each in said["arrangements"]],
            operations=[Operation(name, each["arguments"], each["reads"]) for name, each in said["operations"].items()],
            made=said["made"],
        )
    except (KeyError, TypeError) as error:
        raise AdapterFailed(f"the adapter's first line does not describe it: {error!r}") from None
