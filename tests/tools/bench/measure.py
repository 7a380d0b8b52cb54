"""One measurement: a load against processes, and what it cost them."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


class ToolMissing(RuntimeError):
    """A load generator is not installed. The text says how to install it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one load reached."""

    requests: int
    seconds: float
    cpu_seconds: float
    """Of the serving processes, without the database and the load generator."""
    p50: float
    p99: float
    """Seconds."""

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def cpu_microseconds(self) -> float:
        return self.cpu_seconds / self.requests * 1e6


def h2load(url: str, body: bytes, *, pids: Sequence[int], in_flight: int, seconds: float, token: str = "") -> Result:
    """Keep *in_flight* equal calls in flight with h2load, which costs a fifth of a Python client's CPU."""
    if shutil.which("h2load") is None:
        raise ToolMissing("h2load is not installed: apt-get install nghttp2-client")
    with tempfile.TemporaryDirectory() as folder:
        request, log = Path(folder, "request"), Path(folder, "log")
        request.write_bytes(b"\0" + struct.pack(">I", len(body)) + body)
        command = h2load_command(url, request, in_flight=in_flight, seconds=seconds, token=token)
        command.append(f"--log-file={log}")
        before = _cpu(pids)
        subprocess.run(command, check=True, capture_output=True)
        cpu = _cpu(pids) - before
        rows = [line.split("\t") for line in log.read_text().splitlines()]
    bad = [row[1] for row in rows if row[1] != "200"]
    if bad:
        raise RuntimeError(f"{len(bad)} calls failed")
    return _result([int(row[2]) / 1e6 for row in rows], seconds=seconds, cpu=cpu)


def h2load_command(url: str, request: Path, *, in_flight: int, seconds: float, token: str) -> list[str]:
    """h2load's arguments, to keep *in_flight* calls in flight. *request* is a file with a gRPC message."""
    connections = min(8, in_flight)
    return [
        "h2load", "-c", str(connections), "-m", str(in_flight // connections), "-D", str(int(seconds)),
        "-d", str(request), "-H", "te: trailers", "-H", "content-type: application/grpc",
        "-H", f"authorization: Bearer {token}", url,
    ]  # fmt: skip


def savers(address: str, token: str, *, pids: Sequence[int], in_flight: int, seconds: float) -> Result:
    """Keep *in_flight* saves in flight from two processes."""
    before = _cpu(pids)
    loads = [_saver(address, token, in_flight // 2, seconds, name) for name in ("a", "b")]
    reports = [json.loads(load.communicate()[0]) for load in loads]
    cpu = _cpu(pids) - before
    failures = [failure for report in reports for failure in report["failures"]]
    if failures:
        raise RuntimeError(f"{len(failures)} saves failed: {sorted(set(failures))}")
    latencies = [latency for report in reports for latency in report["latencies"]]
    return _result(latencies, seconds=max(report["took"] for report in reports), cpu=cpu)


def _saver(address: str, token: str, in_flight: int, seconds: float, name: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.tools.bench.saver", address, str(in_flight), str(seconds), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(token + "\n")
    process.stdin.flush()
    return process


def interleaved(
    loads: Mapping[str, Callable[[], Result]], *, rounds: int, on_load: Callable[[str], None]
) -> dict[str, list[Result]]:
    """Run all loads in turn, several times, so that a noisy minute hits all alike; return each one's rounds."""
    results: dict[str, list[Result]] = {name: [] for name in loads}
    for _ in range(rounds):
        for name, load in loads.items():
            on_load(name)
            results[name].append(load())
    return results


class Spread(NamedTuple):
    """What the rounds of one load differ by."""

    least: float
    median: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of some values."""
        ordered = sorted(values)
        return cls(ordered[0], statistics.median(ordered), ordered[-1])


def memory_mib(pid: int) -> float:
    """The resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _cpu(pids: Sequence[int]) -> float:
    return sum(_cpu_of(pid) for pid in pids)


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _result(latencies: Sequence[float], *, seconds: float, cpu: float) -> Result:
    hundredths = statistics.quantiles(latencies, n=100)
    return Result(len(latencies), seconds, cpu, hundredths[49], hundredths[98])
