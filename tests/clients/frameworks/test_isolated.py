"""The adapters whose frameworks cannot be installed beside the server, tested in an environment of their own.

Marked `proof` for their time, most of which the frameworks take to be imported.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.clients.conformance.toolchains import not_run
from tests.support.services import Service

ROOT = Path(__file__).parents[3]
ISOLATED = Path(__file__).parent / "isolated"
PYTHON = ROOT / ".venv-frameworks/bin/python"


@pytest.mark.proof
@pytest.mark.parametrize("module", sorted(path.name for path in ISOLATED.glob("test_*.py")))
def test_in_its_own_environment(service: Service, module: str) -> None:
    if not PYTHON.with_name("pytest").exists():
        not_run(module, "its framework is not installed: `make .venv-frameworks/.stamp`")
    environment = {
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
        "MUNIMENT_ADDRESS": service.address,
        "MUNIMENT_HOST_KEY": service.host().token,
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "clients/python/src"),
        # Nothing is traced to anywhere, and nothing is asked for over the network.
        "LANGCHAIN_TRACING_V2": "false",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "OTEL_SDK_DISABLED": "true",
    }
    options = ("-q", "-c", "pytest.ini", "--confcutdir", str(ISOLATED))
    command = [str(PYTHON), "-m", "pytest", *options, module]
    done = subprocess.run(
        command, cwd=ISOLATED, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
