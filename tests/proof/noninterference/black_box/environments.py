"""The environments of the peers.

Each has its own, as its lock pins it, because they want different versions of the same packages.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

LOCKS = Path(__file__).parent / "environments"


def install(name: str, folder: Path) -> None:
    """Install what the lock of *name* pins into *folder*, from the registries that pip and npm are configured with."""
    place = folder / name
    if (LOCKS / name).is_dir():
        shutil.copytree(LOCKS / name, place, dirs_exist_ok=True)
        subprocess.run(["npm", "ci", "--loglevel=error", "--no-audit", "--no-fund"], cwd=place, check=True)
        return
    venv.create(place, with_pip=True)
    subprocess.run(
        [
            python(name, folder), "-m", "pip", "--disable-pip-version-check", "--quiet", "install",
            "--require-hashes", "--only-binary", ":all:", "-r", LOCKS / f"{name}.lock",
        ],
        check=True,
    )  # fmt: skip


def installed(name: str, folder: Path) -> bool:
    """Whether *folder* has the environment."""
    return (folder / name / "node_modules").exists() or python(name, folder).exists()


def python(name: str, folder: Path) -> Path:
    """The interpreter that runs the adapters of an environment: its own, or for Node.js packages this one."""
    return Path(sys.executable) if (LOCKS / name).is_dir() else (folder / name / "bin" / "python").absolute()


def names() -> list[str]:
    """All environments."""
    return sorted(path.stem for path in LOCKS.iterdir() if path.is_dir() or path.suffix == ".lock")
