"""The adapters in TypeScript, each beside the one that its framework brings, on a real server."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conformance.toolchains import not_run
from tests.support.services import Service

CLIENT = Path(__file__).parents[3] / "clients/typescript"
BUILT = CLIENT / "dist/test/live"


@pytest.mark.proof
def test_the_adapters_in_typescript(service: Service) -> None:
    node = shutil.which("node")
    if node is None or not BUILT.exists():
        not_run("TYPESCRIPT", "there is no Node.js, or the client was never built: `make build-typescript`")
        return
    environment = os.environ | {
        "MUNIMENT_ADDRESS": service.address,
        "MUNIMENT_HOST_KEY": service.host().token,
        "MUNIMENT_TLS_CA": "",
    }
    command = [node, "--test", "--test-reporter=spec", *map(str, sorted(BUILT.glob("*.test.js")))]
    done = subprocess.run(
        command, cwd=CLIENT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
