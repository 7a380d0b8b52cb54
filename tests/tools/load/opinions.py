"""Second opinions: GetMemory, measured by other people's load generators."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from muniment.v1 import memory_service_pb2
from muniment_server.domain.classification import Classification
from tests.tools.bench import measure
from tests.tools.load.calls import GET, method
from tests.tools.load.cells import Served
from tests.tools.load.side_by_side import ENVIRONMENT, is_installed
from tests.tools.load.world import World

IN_FLIGHT = 64
_ROOT = Path(__file__).parents[3]
_GHZ = "github.com/bojand/ghz/cmd/ghz@v0.121.0"


class Opinion(NamedTuple):
    """What a load generator says."""

    tool: str
    command: str
    says: str


def opinions(on: Served, world: World, seconds: float) -> Iterator[Opinion]:
    """h2load's and ghz's, each of the same session and key."""
    caller = world.one_level(on.service, 1, Classification.INTERNAL)[0]
    key, token, address = caller["own_keys"][0], caller["token"], on.service.address
    yield _h2load(address, key, token, on.service.workers, seconds)
    yield _ghz(address, key, token, seconds)


def _h2load(address: str, key: str, token: str, pids: Sequence[int], seconds: float) -> Opinion:
    body = memory_service_pb2.GetMemoryRequest(key=key).SerializeToString()
    parts = measure.h2load_command(
        f"http://$ADDRESS{method(GET)}", Path("get.bin"), in_flight=IN_FLIGHT, seconds=seconds, token="$TOKEN"
    )
    command = " ".join(f'"{part}"' if " " in part else part for part in parts)
    try:
        result = measure.h2load(
            f"http://{address}{method(GET)}", body, pids=pids, in_flight=IN_FLIGHT, seconds=seconds, token=token
        )
    except measure.ToolMissing as missing:
        return Opinion("h2load", command, str(missing))
    says = f"{result.per_second:,.0f} calls/s, p50 {1000 * result.p50:.1f} ms, p99 {1000 * result.p99:.1f} ms"
    return Opinion("h2load", command, says)


def _ghz(address: str, key: str, token: str, seconds: float) -> Opinion:
    command = (
        "ghz --insecure --protoset proto/api.binpb --call muniment.v1.MemoryService.GetMemory "
        '-d "{\\"key\\": \\"$KEY\\"}" -m "{\\"authorization\\": \\"Bearer $TOKEN\\"}" '
        f"-c {IN_FLIGHT} --connections 8 -z {seconds:.0f}s --duration-stop wait $ADDRESS"
    )
    program = _installed_ghz()
    if program is None:
        return Opinion("ghz", command, "not measured: `make load-report` builds ghz where Go is installed")
    finished = subprocess.run(
        ["sh", "-c", command], cwd=_ROOT, capture_output=True, text=True, check=False,
        env={"PATH": f"{program.parent}{os.pathsep}{os.defpath}", "ADDRESS": address, "KEY": key, "TOKEN": token},
    )  # fmt: skip
    return Opinion("ghz", command, (finished.stdout or finished.stderr).strip())


def _installed_ghz() -> Path | None:
    """ghz, built by Go once. None without Go."""
    program, go = ENVIRONMENT / "bin" / "ghz", shutil.which("go")
    if go and is_installed() and not program.exists():
        environment = {**os.environ, "GOBIN": str(program.parent)}
        subprocess.run([go, "install", _GHZ], env=environment, capture_output=True, check=False)
    return program if program.exists() else None
