"""The runner of `tests/conformance`, where that suite cannot see: without a server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[3] / "clients/python/conformance/runner.py"


@pytest.mark.parametrize("options", [[], ["--aio"]], ids=["synchronous", "asyncio"])
def test_a_lost_connection_is_no_answer(tmp_path, options):
    """For a host, a session and a caller without credentials, which bypasses the client."""
    for caller in ("host", "mun_s_1_token", "none"):
        step: dict[str, object] = {"as": caller, "call": "AgentService.CreateAgent", "request": {}, "deadline_ms": 2000}
        file = tmp_path / "scenarios.json"
        file.write_text(json.dumps({"scenarios": [{"name": "s", "steps": [step]}]}))
        environment = {"MUNIMENT_ADDRESS": "127.0.0.1:1", "MUNIMENT_HOST_KEY": "mun_h_1_key"}

        done = subprocess.run(
            [sys.executable, RUNNER, *options, file], env=environment, capture_output=True, text=True, check=False
        )

        assert (done.returncode, done.stdout) == (2, "")
        assert "ConnectionError" in done.stderr
