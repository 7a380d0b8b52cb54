"""The unit of systemd, checked by systemd, and started by a systemd in a container."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operations.deploy.containers import DEPLOY, Host, block
from tests.support.commands import wait_until

UNIT = DEPLOY / "muniment.service"
EXPOSURE = "12"
"""In tenths, as the page says."""
PACKAGES = "python3,libstdc++6,tzdata,passwd,procps,systemd,systemd-sysv"

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="NOT RUN: no systemd-analyze")


def analyze(folder: Path, text: str, *command: str) -> subprocess.CompletedProcess[str]:
    """What systemd says of a unit whose program exists."""
    unit = folder / "muniment.service"
    unit.write_text(text.replace("/opt/muniment/bin/muniment", "/bin/true"))
    return subprocess.run(
        ["systemd-analyze", *command, str(unit)], capture_output=True, text=True, timeout=60, check=False
    )


def complaints(folder: Path, text: str) -> list[str]:
    """The lines about this unit. An unknown key is one of them, and no failure."""
    output = analyze(folder, text, "verify", "--man=no").stderr
    return [line for line in output.splitlines() if "muniment.service" in line]


@needs_systemd
def test_systemd_has_no_complaint(tmp_path):
    text = UNIT.read_text()

    assert complaints(tmp_path, text) == []
    assert len(complaints(tmp_path, text.replace("ProtectSystem=", "ProtectTheSystem="))) == 1


@needs_systemd
def test_the_exposure_is_what_the_page_says(tmp_path):
    text = UNIT.read_text()
    security = ("security", "--offline=true", "--no-pager", f"--threshold={EXPOSURE}")

    assert analyze(tmp_path, text, *security).returncode == 0
    assert analyze(tmp_path, text.replace("NoNewPrivileges=yes", ""), *security).returncode != 0
    assert f"at {int(EXPOSURE) / 10} of 10" in (DEPLOY / "README.md").read_text()


@pytest.fixture
def booted(machine: Host, build: Path) -> Iterator[str]:
    """A container in which systemd is the first process, with the server in /opt/muniment."""
    rootfs = build / "systemd.tar"
    if not rootfs.exists():
        part = f"{rootfs}.part"
        sources = [str(path) for path in Path("/etc/apt").rglob("*") if path.suffix in {".list", ".sources"}]
        machine.run(
            "mmdebstrap", "--quiet", f"--include={PACKAGES}", "--variant=essential", "--format=tar", "", part, *sources
        )
        Path(part).rename(rootfs)
    machine.run("podman", "import", "--quiet", str(rootfs), "localhost/systemd")
    program = machine.folder / "program"
    program.write_text("#!/usr/bin/python3\nfrom muniment.cli import main\nmain()\n")
    program.chmod(0o755)
    mounts = {
        build / "site": "/usr/local/lib/python3.11/dist-packages",
        program: "/opt/muniment/bin/muniment",
        DEPLOY: "/root/service/deploy",
    }
    machine.run(
        *("podman", "run", "--detach", "--name=systemd", "--systemd=always", "--privileged", "--workdir=/root"),
        *(f"--volume={source}:{target}:ro" for source, target in mounts.items()),
        *("localhost/systemd", "/lib/systemd/systemd"),
    )
    yield "systemd"
    machine.run("podman", "rm", "--force", "--time=10", "systemd")


@pytest.mark.deploy
def test_the_unit_serves_reloads_and_stops(machine: Host, booted: str) -> None:
    def inside(script: str) -> str:
        return machine.run("podman", "exec", booted, "bash", "-euc", script)

    def logged(words: str) -> bool:
        return words in inside("journalctl --no-pager --unit muniment")

    wait_until(
        lambda: machine.attempt("podman", "exec", booted, "systemctl", "list-units").returncode == 0, "no systemd"
    )
    inside(block("unit"))
    wait_until(lambda: logged("Muniment serves on 127.0.0.1:50051"), "it does not serve", 180)
    inside(block("reload-unit"))
    wait_until(lambda: logged("INFO reloaded"), "it does not reload", 180)
    inside("systemctl stop muniment")

    assert inside("systemctl show --property=Result --property=ExecMainStatus muniment").split() == [
        "Result=success",
        "ExecMainStatus=0",
    ]
    assert not logged("Traceback")
