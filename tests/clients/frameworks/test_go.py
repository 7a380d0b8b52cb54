"""The memory service for Google's ADK in Go, beside ADK's own, on a real server."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.conformance.toolchains import not_run
from tests.support.services import Service

MODULE = Path(__file__).parents[3] / "clients/go/adk"


@pytest.mark.proof
def test_the_adapter_in_go(service: Service, mcp: str) -> None:
    go = shutil.which("go")
    if go is None:
        not_run("GO", "there is no go on the PATH")
        return
    environment = os.environ | {
        "MUNIMENT_ADDRESS": service.address,
        "MUNIMENT_HOST_KEY": service.host().token,
        "MUNIMENT_MCP": mcp,
        "MUNIMENT_TLS_CA": "",
    }
    command = [go, "test", "-count=1", "./..."]
    done = subprocess.run(
        command, cwd=MODULE, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
