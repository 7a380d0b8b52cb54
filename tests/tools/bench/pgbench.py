"""The baseline of writes: the very statement of SaveMemory, run by pgbench as the level's role, without the service."""

from __future__ import annotations

import re
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from muniment_server.embedded_postgres import find_bindir
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.tools.bench import bare
from tests.tools.bench.measure import Result

_CONSTANT = {
    "kind": "1",
    "tier": "1",
    "position": "0",
    "method": "'SaveMemory'",
    "etag_item": "NULL::uuid",
    "etag_revision": "NULL::integer",
    "expire_time": "NULL",
    "tags": "'{bench}'",
    "name": "'pgbench-' || :name",
    "content": "lpad(:content::text, 400)",
    "item_id": "('00000000-0000-4000-8000-' || lpad(to_hex(:item::bigint), 12, '0'))::uuid",
    "successor_id": "('00000000-0000-4000-8000-' || lpad(to_hex(:item::bigint), 12, '0'))::uuid",
    "change_id": "('00000000-' || substr(lpad(to_hex(:change::bigint), 12, '0'), 1, 4) || '-4000-8000-'"
    " || lpad(to_hex(:change::bigint), 12, '0'))::uuid",
}
_VARIABLES = "\n".join(
    rf"\set {name} random(1, {limit})" for name, limit in (("content", 10**12), ("item", 2**47), ("change", 2**47))
)


def saves(conninfo: str, *, tenant: int, session_id: str, clients: int, seconds: float) -> Result:
    """Run save_item from *clients* connections."""
    latencies, rate = timed(
        save_script(tenant=tenant, session_id=session_id), conninfo, clients=clients, seconds=seconds
    )
    return Result(
        requests=len(latencies),
        seconds=len(latencies) / rate,
        cpu_seconds=0.0,
        p50=latencies[len(latencies) // 2],
        p99=latencies[len(latencies) * 99 // 100],
    )


def select_script(*, tenant: int, agent: int, names: Sequence[str]) -> str:
    """A script that reads the content of one of *names*, as the bare server does."""
    quoted = ", ".join(f"'{name}'" for name in names)
    values = {"tenant": str(tenant), "agent": str(agent), "key": f"(ARRAY[{quoted}])[:name]"}
    return f"\\set name random(1, {len(names)})\n{_filled(bare.SELECT, values)};\n"


def save_script(*, tenant: int, session_id: str, names: int = 1000) -> str:
    """A script that runs save_item once, for one of *names* names. It makes no index entry."""
    return (
        f"\\set name random(1, {names})\n{_VARIABLES}\n{_statement(tenant=tenant, session_id=uuid.UUID(session_id))};\n"
    )


def timed(
    script: str, conninfo: str, *, clients: int, seconds: float, rate: float | None = None
) -> tuple[list[float], float]:
    """Run *script* from *clients* connections; return the latencies in seconds, sorted, and how many a second.

    With *rate*, that many transactions a second start by a schedule, from which latencies are counted.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "script.sql")
        file.write_text(script)
        finished = subprocess.run(
            [
                str(find_bindir() / "pgbench"), "--no-vacuum", "--protocol=prepared",
                f"--client={clients}", f"--jobs={min(2, clients)}",
                f"--time={max(1, int(seconds))}", f"--file={file}", "--random-seed=rand",
                "--log", f"--log-prefix={folder}/log", *([f"--rate={rate:.3f}"] if rate else []), conninfo,
            ],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        latencies = sorted(_latencies(Path(folder)))
    found = re.search(r"^tps = ([0-9.]+)", finished.stdout, re.MULTILINE)
    return latencies, float(found[1]) if found else 0.0  # a low rate may come to nothing


def _statement(*, tenant: int, session_id: uuid.UUID) -> str:
    return _filled(SESSION_QUERIES["save_item"], _CONSTANT | {"tenant": str(tenant), "session_id": f"'{session_id}'"})


def _filled(query: str, values: Mapping[str, str]) -> str:
    return re.sub(r"%\((\w+)\)s", lambda match: values[match[1]], query)


def _latencies(folder: Path) -> list[float]:
    return [int(line.split()[2]) / 1e6 for log in folder.glob("log*") for line in log.read_text().splitlines()]
