"""The database cluster: created by initdb, checked at each start, open to a single operating-system user."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

import psycopg

from muniment_server.embedded_postgres import child
from muniment_server.embedded_postgres.account import Account, service_user
from muniment_server.embedded_postgres.binaries import Binaries
from muniment_server.embedded_postgres.directory import make_private
from muniment_server.embedded_postgres.errors import DidNotStart, UnusableDirectory, WrongVersion

SUPERUSER = "postgres"
DATABASE = "muniment"
AFTER_LOSS = "copy the directory before anything else is done to it, and restore a backup into another data directory"
"""What an operator does about a file that is missing or damaged."""

_HBA = "local all all peer map=muniment\n"  # no network, no passwords: the kernel identifies the caller
_IDENT_SUPPORTS_ALL = 16
_BUILTIN_LOCALES = 17


def ensure_cluster(data: Path, binaries: Binaries, account: Account, *, durable: bool) -> None:
    """Create the cluster if there is none. Raises WrongVersion if another major version created it.

    Raises UnusableDirectory if its files are there and the one that names its version is not.
    """
    if not (data / "PG_VERSION").exists():
        if data.exists() and any(data.iterdir()):
            raise UnusableDirectory(f"{data} has lost its file PG_VERSION, and perhaps others: {AFTER_LOSS}")
        _init(data, binaries, account, durable=durable)
    version = (data / "PG_VERSION").read_text().strip()
    if version != str(binaries.major):
        raise WrongVersion(
            f"{data} was created by PostgreSQL {version}, but {binaries.bindir} is PostgreSQL {binaries.major}: "
            f"start with the binaries of {version}, or dump with them (pg_dump), move the directory away, "
            "start again and restore"
        )


def write_access(directory: Path, *, major: int, roles: Iterable[str]) -> None:
    """Let this process's user log in as the superuser and as *roles*, and no other user as any role."""
    _replace(directory / "pg_hba.conf", _HBA)
    _replace(directory / "pg_ident.conf", _ident(service_user(), major=major, roles=roles))


def create_database(conninfo: str) -> None:
    """Create the database unless it exists."""
    statement = resources.files(__package__).joinpath("create_database.sql").read_bytes()
    with psycopg.connect(conninfo, autocommit=True, connect_timeout=10) as connection:
        try:
            connection.execute(statement)
        except psycopg.errors.DuplicateDatabase:
            return


def _init(data: Path, binaries: Binaries, account: Account, *, durable: bool) -> None:
    """Run initdb in another directory, then rename that: *data* is never half a cluster."""
    part = data.with_name(data.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    make_private(part, account)
    try:
        child.run(_initdb(binaries, part, durable=durable), account)
    except subprocess.CalledProcessError as error:
        raise DidNotStart(f"initdb could not create {data}: {error.stderr}", "choose another directory") from error
    part.rename(data)
    if durable:
        sync_directory(data.parent)


def _initdb(binaries: Binaries, data: Path, *, durable: bool) -> list[str | Path]:
    """The command. The locale is fixed: in plain `C`, lower() and trigrams work for ASCII only."""
    provider = ["--locale-provider=builtin"] if binaries.major >= _BUILTIN_LOCALES else []
    return [
        binaries.bindir / "initdb",
        *("--pgdata", data, "--username", SUPERUSER),
        *("--encoding=UTF8", "--locale=C.UTF-8", *provider),
        *("--data-checksums", "--auth-local=peer", "--auth-host=reject", "--no-instructions"),
        *([] if durable else ["--no-sync"]),
    ]


def _ident(user: str, *, major: int, roles: Iterable[str]) -> str:
    """The map from *user* to roles. Before Postgres 16, there is no keyword for all of them."""
    if major >= _IDENT_SUPPORTS_ALL:
        return f"muniment {_quoted(user)} all\n"
    names = dict.fromkeys([SUPERUSER, *roles])
    return "".join(f"muniment {_quoted(user)} {_quoted(name)}\n" for name in names)


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def _replace(path: Path, text: str) -> None:
    """Write *text* to *path*, readable for the account of Postgres, unless it is there already."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.chmod(0o644)
    part.replace(path)


def sync_directory(directory: Path) -> None:
    """Make a rename in *directory* survive a power failure."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
