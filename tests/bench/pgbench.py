"""The baseline of writes: the very statement of SaveMemory, run by pgbench as the level's role, without the service."""

from __future__ import annotations

import re
import subprocess
import tempfile
import uuid
from pathlib import Path

from muniment_server.embedded_postgres import find_bindir
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.bench.measure import Result

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
    rf"\set {name} random(1, {limit})"
    for name, limit in (("name", 1000), ("content", 10**12), ("item", 2**47), ("change", 2**47))
)


def saves(conninfo: str, *, tenant: int, session_id: str, clients: int, seconds: float) -> Result:
    """Run save_item from *clients* connections."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "save.sql")
        script.write_text(f"{_VARIABLES}\n{_statement(tenant=tenant, session_id=uuid.UUID(session_id))};\n")
        finished = subprocess.run(
            [
                str(find_bindir() / "pgbench"), "--no-vacuum", "--protocol=prepared",
                f"--client={clients}", "--jobs=2",
                f"--time={int(seconds)}", f"--file={script}", "--random-seed=rand",
                "--log", f"--log-prefix={folder}/log", conninfo,
            ],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        latencies = sorted(_latencies(Path(folder)))
    found = re.search(r"^tps = ([0-9.]+)", finished.stdout, re.MULTILINE)
    assert found is not None, finished.stdout
    rate = float(found[1])
    return Result(
        requests=len(latencies),
        seconds=len(latencies) / rate,
        cpu_seconds=0.0,
        p50=latencies[len(latencies) // 2],
        p99=latencies[len(latencies) * 99 // 100],
    )


def _statement(*, tenant: int, session_id: uuid.UUID) -> str:
    values = _CONSTANT | {"tenant": str(tenant), "session_id": f"'{session_id}'"}
    return re.sub(r"%\((\w+)\)s", lambda match: values[match[1]], SESSION_QUERIES["save_item"])


def _latencies(folder: Path) -> list[float]:
    return [int(line.split()[2]) / 1e6 for log in folder.glob("log*") for line in log.read_text().splitlines()]
