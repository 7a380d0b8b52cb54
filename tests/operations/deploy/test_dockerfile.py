"""The image that any builder makes, built by buildah on a base from Debian's packages, and the quickstart with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operations.deploy.containers import DEPLOY, ROOT, Host
from tests.operations.deploy.test_images import LIST_PYTHON
from tests.support.commands import wait_until
from tests.support.ports import free_port
from tests.tools.tour.readme import README

DOCKERFILE = DEPLOY / "Dockerfile"
_PIN = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)
_BUILDERS = {"editables", "hatchling", "pathspec", "pluggy", "trove-classifiers"}
_BASE = "python3,python3-venv,ca-certificates"


def _pins(lock: Path) -> set[tuple[str, str]]:
    return set(_PIN.findall(lock.read_text()))


def test_the_lock_of_the_image_pins_what_the_tests_have():
    pins = _pins(DEPLOY / "image.lock")

    assert pins <= _pins(ROOT / "service" / "requirements.lock")
    assert pins >= _pins(ROOT / "service" / "server.lock")
    assert {"connectrpc", "granian", "opentelemetry-sdk", *_BUILDERS} <= {name for name, _ in pins}


def test_the_image_is_of_this_version():
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)

    assert version is not None
    assert f"ARG VERSION={version[1]}\n" in DOCKERFILE.read_text()


@pytest.fixture(scope="module")
def plain(machine: Host, build: Path) -> Iterator[Host]:
    """A host where `muniment` is the image of the quickstart, and afterwards that of build.sh again."""
    rootfs = build / "base.tar"
    if not rootfs.exists():
        part = f"{rootfs}.part"
        sources = [str(path) for path in Path("/etc/apt").rglob("*") if path.suffix in {".list", ".sources"}]
        machine.run(
            "mmdebstrap", "--quiet", f"--include={_BASE}", "--variant=minbase", "--format=tar", "", part, *sources
        )
        Path(part).rename(rootfs)
    machine.run("podman", "import", "--quiet", str(rootfs), "localhost/base")
    (command,) = re.findall(r"^docker build (.*)$", _quickstart(), re.MULTILINE)
    # Where pip is set up to look, and which authorities it trusts, is as on this machine.
    given = [path for path in ("/etc/ssl/certs", "/etc/pip.conf") if Path(path).exists()]
    mounts = " ".join(f"--volume={path}:{path}:ro" for path in given)
    machine.run("podman", "tag", "localhost/muniment", "localhost/kept")
    machine.shell(f"buildah bud --format docker --isolation chroot --build-arg BASE=localhost/base {mounts} {command}")
    yield machine
    machine.run("podman", "tag", "localhost/kept", "localhost/muniment")


def _quickstart() -> str:
    (text,) = re.findall(r"^```sh docker\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    return str(text)


@pytest.fixture
def started(plain: Host) -> Iterator[Host]:
    """The container of the README's quickstart, at another port."""
    address = f"127.0.0.1:{free_port()}"
    (command,) = re.findall(r"^docker (run (?:.*\\\n)*.*)$", _quickstart(), re.MULTILINE)
    plain.shell(f"podman {command.replace('127.0.0.1:50051', address).replace(':8080', f':{free_port()}')}")
    plain.wait_for("muniment", f"serves on {address}")
    yield plain
    plain.run("podman", "rm", "--force", "--time=20", "muniment")


@pytest.mark.deploy
def test_the_quickstart_with_docker_serves_the_embedded_database(started):
    def inside(script: str) -> str:
        return str(started.run("podman", "exec", "muniment", "bash", "-euc", script))

    inside("muniment agent create ada && muniment memory save plan 'ship on Friday' --agent ada --taint internal")

    assert "ship on Friday" in inside("muniment memory list --agent ada --taint internal")
    assert re.search(r"^Uid:\s+65532\b", inside("cat /proc/1/status"), re.MULTILINE)
    assert "Read-only file system" in started.attempt("podman", "exec", "muniment", "touch", "/opt/new").stderr
    address = re.findall(r"serves on (\S+)", started.logs("muniment"))[-1]
    wait_until(lambda: inside(f"MUNIMENT_ADDRESS={address} muniment-health liveness") == "", "alive", 60)


@pytest.mark.deploy
def test_the_image_has_what_the_lock_pins_and_nothing_that_builds(plain):
    run = ("podman", "run", "--rm", "--entrypoint=/opt/muniment/bin/python3", "muniment", "-c", LIST_PYTHON)
    names = {name for name, _ in _pins(DEPLOY / "image.lock")}

    # What other platforms need is pinned, and not installed.
    assert set(plain.run(*run).split()) == {"muniment", "muniment-server", *names} - _BUILDERS - {"tzdata"}


@pytest.mark.deploy
def test_the_image_has_no_program_that_changes_the_user(plain):
    search = ("-xdev", "-type", "f", "-perm", "/6000")

    assert plain.run("podman", "run", "--rm", "--user=0", "--entrypoint=find", "muniment", "/", *search) == ""
