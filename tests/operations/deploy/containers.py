"""Containers in a storage of their own, and the commands of the page that starts them."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.commands import wait_until

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "service" / "deploy"
TOOLS = ("mmdebstrap", "buildah", "podman", "podman-compose", "runc", "iptables", "openssl")
_SECONDS = 900


def missing() -> list[str]:
    """What a run needs, and this machine lacks."""
    root = [] if os.geteuid() == 0 else ["root"]
    return [*root, *(tool for tool in TOOLS if shutil.which(tool) is None)]


def block(way: str) -> str:
    """The one block of the page with this second word."""
    (text,) = re.findall(rf"^```sh {way}\n(.*?)^```$", (DEPLOY / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    return str(text)


@dataclass(frozen=True, slots=True)
class Host:
    """A place for images and containers, which no other on this machine sees."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, *command: str, cwd: Path = ROOT) -> str:
        """What a command says that must succeed."""
        done = self.attempt(*command, cwd=cwd)
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout

    def attempt(self, *command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return subprocess.run(
            command, cwd=cwd, env=self.environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )

    def shell(self, script: str, cwd: Path = ROOT) -> str:
        """What the lines of *script* say, which must all succeed."""
        return self.run("bash", "-euo", "pipefail", "-c", script, cwd=cwd)

    def logs(self, container: str) -> str:
        """What a container has logged."""
        done = self.attempt("podman", "logs", container)
        return done.stdout + done.stderr

    def wait_for(self, container: str, words: str) -> None:
        """Wait until a container has logged *words*."""
        wait_until(lambda: words in self.logs(container), f"no {words!r} in the log of {container}", 180)


@contextmanager
def host() -> Iterator[Host]:
    """A host, removed afterwards with all that is in it."""
    with TemporaryDirectory(prefix="deploy-") as name:
        folder = Path(name)
        (folder / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/images"\nrunroot = "{folder}/run"\n'
        )
        (folder / "containers.conf").write_text(_CONTAINERS.format(folder=folder, files=_files()))
        own = {"CONTAINERS_STORAGE_CONF": "storage.conf", "CONTAINERS_CONF": "containers.conf"}
        environment = {
            **os.environ,
            **{variable: str(folder / file) for variable, file in own.items()},
            "PYTHON": sys.executable,
        }
        made = Host(folder, environment)
        try:
            yield made
        finally:
            made.attempt("podman", "rm", "--force", "--all", "--time", "2")
            made.attempt("podman", "network", "prune", "--force")
            made.attempt("umount", str(folder / "images" / "overlay"))


# By default, podman asks for more open files and processes than a root without CAP_SYS_RESOURCE may have, and crun for
# version 2 of cgroups.
_CONTAINERS = """\
[containers]
default_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]
[engine]
runtime = "runc"
static_dir = "{folder}/static"
tmp_dir = "{folder}/tmp"
volume_path = "{folder}/volumes"
[network]
network_config_dir = "{folder}/networks"
"""


def _files() -> int:
    return min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1 << 20)
