"""What is measured, as processes: the service as people start it, and the baselines."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from muniment.settings import find_settings
from muniment_server.embedded_postgres import conninfo_of_running
from muniment_server.runtime.databases import cluster_directory
from tests.support.commands import WORDS_ALONE


@dataclass(slots=True)
class Service:
    """A running service."""

    folder: Path

    process: subprocess.Popen[str]
    address: str
    host_key: str
    workers: list[int]
    seconds_to_ready: float

    def conninfo(self, role: str) -> str:
        """How to reach its database as *role*."""
        found = conninfo_of_running(cluster_directory(self.folder), user=role)
        assert found is not None
        return found

    def stop(self) -> None:
        """End it, in order."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.communicate()


OURS: Sequence[str] = (str(Path(sys.executable).with_name("muniment")),)
"""The `muniment` command of this checkout."""


@contextmanager
def serving(
    folder: Path,
    *,
    workers: int,
    threads: int,
    words_alone: bool = False,
    command: Sequence[str] = OURS,
    more: Sequence[str] = (),
) -> Iterator[Service]:
    """A server, started by the `muniment` command *command* with *more* options.

    With *words_alone* it finds no embedder.
    """
    begun = time.monotonic()
    options = {"listen": "127.0.0.1:0", "data-dir": folder, "workers": workers, "threads": threads}
    process = subprocess.Popen(
        [*command, "serve", "--dev", *(f"--{name}={value}" for name, value in options.items()), *more],
        env={**os.environ, "PYTHONPATH": str(WORDS_ALONE)} if words_alone else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # it speaks when it serves
    took = time.monotonic() - begun
    found = find_settings({}, folder / "development.json")
    assert found.host_key is not None
    service = Service(folder, process, found.address, found.host_key, _children(process.pid), took)
    try:
        yield service
    finally:
        service.stop()


@contextmanager
def running(module: str, *arguments: str, workers: int, threads: int) -> Iterator[tuple[str, list[int]]]:
    """Processes of one of the baselines, `ping` or `bare`, that share a port; its address, and their ids."""
    address = f"127.0.0.1:{free_port()}"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", f"tests.tools.bench.{module}", address, str(threads), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(workers)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    try:
        yield address, [process.pid for process in processes]
    finally:
        for process in processes:
            process.communicate("")


def _children(pid: int) -> list[int]:
    """The worker processes of the supervisor *pid*, in whichever package this checkout has them."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if ".worker" in Path(f"/proc/{child}/cmdline").read_text()]


def free_port() -> int:
    """A TCP port of the loopback address that nothing uses yet."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
