"""What the processes of a service use, apart: its workers, its embedder and its Postgres."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from muniment_server.embedded_postgres.postmaster import postmaster_of
from muniment_server.runtime.databases import cluster_directory
from tests.tools.bench.processes import Service

_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """A figure of each part of a service."""

    server: float
    """Of the supervisor and its workers."""
    embedder: float
    postgres: float

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(one - before for one, before in zip(self, other, strict=True)))

    def per(self, count: float) -> Usage:
        """Each figure divided by *count*."""
        return Usage(*(one / count for one in self))


def cpu_seconds(service: Service) -> Usage:
    """The CPU seconds that each part has used so far, with those of children that have ended."""
    server, embedder, postgres = _parts(service)
    return Usage(cpu_of(server), cpu_of(embedder), cpu_of(postgres))


def cpu_beside(service: Service, pids: Iterable[int]) -> Usage:
    """The CPU seconds of a baseline's processes, and of the Postgres of *service*, which the baseline uses."""
    return Usage(cpu_of(pids), 0.0, cpu_of(_parts(service)[2]))


def memory_mib(service: Service) -> Usage:
    """The resident memory of each part. What processes share is counted once."""
    server, embedder, postgres = _parts(service)
    return Usage(_memory(server), _memory(embedder), _memory(postgres))


def _parts(service: Service) -> tuple[set[int], set[int], set[int]]:
    children = _children()
    postmaster = postmaster_of(cluster_directory(service.folder) / "data")
    assert postmaster is not None
    everything = _tree(service.process.pid, children)
    postgres = _tree(postmaster.pid, children)
    embedder = {pid for pid in everything - postgres if ".embedder." in _read(pid, "cmdline")}
    return everything - postgres - embedder, embedder, postgres


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _read(int(name), "stat")):
            found.setdefault(int(_fields(stat)[1]), []).append(int(name))
    return found


def _tree(root: int, children: dict[int, list[int]]) -> set[int]:
    found = {root}
    for child in children.get(root, ()):
        found |= _tree(child, children)
    return found


def cpu_of(pids: Iterable[int]) -> float:
    """User and system time, of each process and of its children that have ended."""
    stats = [_fields(stat) for pid in pids if (stat := _read(pid, "stat"))]
    return sum(sum(map(int, fields[11:15])) for fields in stats) / _TICKS


def _memory(pids: Iterable[int]) -> float:
    lines = [line for pid in pids for line in _read(pid, "smaps_rollup").splitlines() if line.startswith("Pss:")]
    return sum(int(line.split()[1]) for line in lines) / 1024


def _fields(stat: str) -> list[str]:
    """The fields of /proc/PID/stat after the command, which may contain blanks."""
    return stat.rsplit(")", 1)[1].split()


def _read(pid: int, name: str) -> str:
    """A file of a process. Empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
