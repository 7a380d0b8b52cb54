"""The clients of all languages, each calling without end in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

from tests.clients.conformance.clients import CLIENTS, Client
from tests.clients.conformance.toolchains import make


class Caller:
    """The runner of one client, which makes calls one after the other."""

    def __init__(
        self, client: Client, steps: Iterable[dict[str, Any]], folder: Path, *, address: str, host_key: str
    ) -> None:
        self.name = client.name
        self._steps = list(steps)
        file = folder / f"{client.name}.json"
        file.write_text(json.dumps({"scenarios": [{"name": client.name, "steps": self._steps}]}))
        environment = {"MUNIMENT_ADDRESS": address, "MUNIMENT_HOST_KEY": host_key}
        self._errors = folder / f"{client.name}.errors"
        with self._errors.open("w") as errors:
            self.process = client.start(str(file), environment, errors=errors)
        self.lines: list[Any] = []
        self._reading = Thread(target=self._read)
        self._reading.start()

    def made(self, calls: int) -> bool:
        """Whether it has made that many calls. Fails if the runner has ended."""
        errors = self._errors.read_text()[-4000:]
        assert self.process.poll() is None, f"{self.name}: {len(self.lines)} of {len(self._steps)} calls: {errors}"
        return len(self.lines) >= calls

    def failures(self) -> list[Any]:
        """The calls that failed, except for those that may be lost."""
        failed = [(step, line) for step, line in self._made() if line["status"] != "OK"]
        return [line for step, line in failed if not ("may_be_lost" in step and line["status"] == "UNAVAILABLE")]

    def stored(self) -> set[str]:
        """The contents of the passages that were acknowledged."""
        return {step["request"]["content"] for step, line in self._made() if stores(step) and line["status"] == "OK"}

    def succeeded(self) -> int:
        """How many calls have."""
        return sum(line["status"] == "OK" for line in self.lines)

    def lost(self) -> int:
        return sum(line["status"] == "UNAVAILABLE" for line in self.lines)

    def end(self) -> None:
        with self.process as process:
            process.kill()
            self._reading.join()

    def _made(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """The calls that were answered, with their answers."""
        return zip(self._steps, self.lines, strict=False)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):  # the last one may have been cut off
                self.lines.append(json.loads(line))


def made_clients() -> list[Client]:
    """Those that can be built here, and repeat calls that failed."""
    repeating = [client for client in CLIENTS if client.repeats]
    clients = [client for client in repeating if not client.missing and client.is_built] or repeating
    for client in clients:
        make(client)
    return clients


def stores(step: dict[str, Any]) -> bool:
    """Whether *step* stores a passage."""
    return bool(step["call"] == "PassageService.StorePassage")
