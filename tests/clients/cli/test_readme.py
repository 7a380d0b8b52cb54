"""The commands of the client's README run, in processes of their own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import at, environment_in, run_process

README = Path(__file__).parents[3] / "clients/python/README.md"


def test_the_commands_of_the_readme_run(dev):
    (script,) = re.findall(r"^```bash\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    script = "set -e\n" + script.replace("alice", "readme")
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=dev.folder,
        env=environment_in(dev.folder),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    *_, found = done.stdout.splitlines()
    assert found.split("\t")[:3] == ["memory", "plan", "INTERNAL"]


@pytest.mark.parametrize("command", ["note list", "block list", "passage list"])
def test_a_command_of_each_group_runs_in_a_process_of_its_own(dev, agent, command):
    done = run_process(dev.folder, *command.split(), *at(agent, "public"))

    assert done.returncode == 0, done.stderr
