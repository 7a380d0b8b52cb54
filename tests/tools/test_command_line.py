"""What pytest says of its command line, which `make test ARGS=…` passes on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.tools.tour.readme import ROOT


@pytest.mark.parametrize("missing", ["tests/telemetry", "tests/calls/domain/test_nothing.py"])
def test_that_a_path_does_not_exist_is_said_also_with_workers(missing):
    """The workers only say that no tests ran."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", f"{missing}::test[a::b]"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: there is no {missing} in {ROOT}" in done.stderr
