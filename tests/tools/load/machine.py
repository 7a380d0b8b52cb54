"""The machine and the code that were measured."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from tests.tools.bench.processes import Service
from tests.tools.load.side_by_side import ROOT


def described() -> dict[str, str]:
    """The machine, before the run."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "commit": _commit(),
        "CPU": f"{_field('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores",
        "memory": f"{int(_field('/proc/meminfo', 'MemTotal').split()[0]) / 2**20:.0f} GiB",
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "load average before the run": " ".join(f"{one:.2f}" for one in os.getloadavg()),
    }


def postgres_version(service: Service) -> str:
    """The version of the embedded Postgres."""
    with psycopg.connect(service.conninfo("postgres")) as connection:
        return connection.info.parameter_status("server_version") or ""


def _commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def _field(file: str, name: str) -> str:
    """The value of the first field with this name, or an empty string."""
    lines = (line.partition(":") for line in Path(file).read_text().splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "")
