"""The Pythons of this machine on which the packages should run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PYTHON: str = getattr(sys, "_base_executable", sys.executable)
"""The one below the environment of these tests, which is in the repository."""
OLDEST = (3, 11)
_PLACES = [Path("/usr/bin"), Path("/usr/local/bin"), *Path.home().glob(".pyenv/versions/*/bin")]


def interpreters() -> dict[str, str]:
    """One for each version from the oldest supported one on, by its version, as in `3.13`."""
    places = [path for place in _PLACES for path in place.glob("python3.[0-9]*")]
    found = {path.name.removeprefix("python"): str(path) for path in places if re.fullmatch(r"python3\.\d+", path.name)}
    usable = {version: path for version, path in found.items() if _parts(version) >= OLDEST and _makes_venvs(path)}
    return dict(sorted({**usable, "{}.{}".format(*sys.version_info): PYTHON}.items(), key=lambda each: _parts(each[0])))


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _makes_venvs(path: str) -> bool:
    return subprocess.run([path, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode == 0
