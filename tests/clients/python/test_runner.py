"""The runner of `tests/clients/conformance`, where that suite cannot see: without a server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[3] / "clients/python/conformance/runner.py"


def played(options: list[str], file: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """How the runner ended, and its output."""
    return subprocess.run(
        [sys.executable, RUNNER, *options, file], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("options", [[], ["--aio"]], ids=["synchronous", "asyncio"])
def test_a_lost_connection_is_no_answer(tmp_path, options):
    """For a host, a session and a caller without credentials, which bypasses the client.

    The deadline may cut off the last attempt, if hardly any time was left: then the step is made once more.
    """
    for caller in ("host", "mun_s_1_token", "none"):
        step: dict[str, object] = {"as": caller, "call": "AgentService.CreateAgent", "request": {}, "deadline_ms": 2000}
        file = tmp_path / "scenarios.json"
        file.write_text(json.dumps({"scenarios": [{"name": "s", "steps": [step]}]}))
        environment = {"MUNIMENT_ADDRESS": "127.0.0.1:1", "MUNIMENT_HOST_KEY": "mun_h_1_key"}

        done = played(options, file, environment)
        for _ in range(2):
            if "DEADLINE_EXCEEDED" in done.stdout:
                done = played(options, file, environment)

        assert (done.returncode, done.stdout) == (2, "")
        assert "ConnectionError" in done.stderr
