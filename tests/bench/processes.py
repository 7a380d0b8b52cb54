"""What is measured, as processes: the service as people start it, and bare pings."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from muniment.settings import find_settings
from muniment_server.embedded_postgres import conninfo_of_running
from muniment_server.runtime.databases import cluster_directory

WORDS_ALONE = Path(__file__).parents[1] / "support" / "words_alone"


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


@contextmanager
def serving(folder: Path, *, workers: int, threads: int, words_alone: bool = False) -> Iterator[Service]:
    """A server; with *words_alone* one that finds no embedder."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "muniment.cli",
            "serve",
            "--dev",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            str(folder),
            "--workers",
            str(workers),
            "--threads",
            str(threads),
        ],
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
def pinging(*, workers: int, threads: int) -> Iterator[tuple[str, list[int]]]:
    port = _free_port()
    pings = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.bench.ping", f"127.0.0.1:{port}", str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(workers)
    ]  # fmt: skip
    for ping in pings:
        assert ping.stdout is not None
        ping.stdout.readline()
    try:
        yield f"127.0.0.1:{port}", [ping.pid for ping in pings]
    finally:
        for ping in pings:
            ping.communicate("")


def _children(pid: int) -> list[int]:
    """The worker processes of the supervisor *pid*."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if "app.worker" in Path(f"/proc/{child}/cmdline").read_text()]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
