"""A place outside of the repository, in which the repository is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.operations.release import packages
from tests.operations.release.interpreters import PYTHON
from tests.operations.release.packages import Archive
from tests.support.commands import Server
from tests.tools.tour.readme import ROOT

HIDDEN = ["unshare", "--mount", "sh", "-euc", 'mount -t tmpfs none "$0"; exec "$@"', str(ROOT)]
"""Runs a command that sees an empty folder in place of the repository."""
KINDS = {
    "wheel": (packages.WHEEL, packages.SERVER_WHEEL),
    "sdist": (packages.SDIST, packages.SERVER_SDIST),
}
_SECONDS = 900
_OURS = ("MUNIMENT_", "PYTHON", "PYTEST_", "VIRTUAL_ENV", "CARGO_TARGET_DIR", "COVERAGE_")


def environment() -> dict[str, str]:
    """That of this process, without what it has of the repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    path = [each for each in kept["PATH"].split(os.pathsep) if not Path(each).is_relative_to(ROOT)]
    return {**kept, "PATH": os.pathsep.join(path)}


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A folder with a copy of `dist` in it, and with projects that use its packages."""

    folder: Path

    @property
    def dist(self) -> Path:
        """The copy."""
        return self.folder / "dist"

    def project(self, name: str, files: Mapping[str, str]) -> Path:
        """A new folder with these files."""
        made = self.folder / name
        for path, text in files.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_text(text, "utf-8")
        return made

    def run(self, *command: str | Path, cwd: Path, given: Mapping[str, str] | None = None) -> str:
        """What a command says that must succeed, and that does not see the repository."""
        done = subprocess.run(
            [*HIDDEN, *map(str, command)],
            cwd=cwd,
            env={**environment(), **(given or {})},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout

    def as_shown(self, commands: str, *, cwd: Path, given: Mapping[str, str] | None = None) -> str:
        """The same of the commands of a README, with the folder that has `dist` in place of the checkout."""
        script = commands.replace("/path/to/muniment", str(self.folder))
        return self.run("bash", "-euc", script, cwd=cwd, given=given)

    def unpack(self, archive: Archive, into: Path) -> Path:
        """The files of a package, in a new folder."""
        for path, text in archive.files(self.dist).items():
            (into / path).parent.mkdir(parents=True, exist_ok=True)
            (into / path).write_bytes(text)
        return into

    def install(self, name: str, *, python: str = PYTHON, kind: str = "wheel") -> Path:
        """An environment of Python with the server in it; returns the folder of its programs."""
        client, server = (self.dist / archive.path for archive in KINDS[kind])
        self.run(python, "-m", "venv", self.folder / name, cwd=self.folder)
        programs = self.folder / name / "bin"
        pip = [str(programs / "pip"), "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
        self.run(*pip, f"{client}[cli]", str(server), cwd=self.folder)
        return programs

    @contextmanager
    def serving(self, programs: Path, *options: str, given: Mapping[str, str] | None = None) -> Iterator[Server]:
        """A server of that environment, on a free port."""
        folder = programs.parent / "served"
        folder.mkdir(exist_ok=True)
        server = Server(
            folder,
            *("--listen", "127.0.0.1:0", *options),
            environment={**environment(), **(given or {})},
            command=[*HIDDEN, str(programs / "muniment")],
        )
        try:
            yield server
        finally:
            server.end()


def copy_of_dist(into: Path) -> None:
    """Copy what `make dist` built."""
    built = ROOT / "dist"
    assert (built / "SHA256SUMS").exists(), f"there is nothing in {built}: run make dist"
    shutil.copytree(built, into)
