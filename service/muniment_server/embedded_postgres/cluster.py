"""The cluster: made once by initdb, checked at each start, open to one operating-system user."""

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
from muniment_server.embedded_postgres.errors import DidNotStart, WrongVersion

SUPERUSER = "postgres"
DATABASE = "muniment"

_HBA = "local all all peer map=muniment\n"  # no network, no passwords: the kernel vouches for the caller
_IDENT_KNOWS_ALL = 16
_BUILTIN_LOCALES = 17


def ensure_cluster(data: Path, binaries: Binaries, account: Account, *, durable: bool) -> None:
    """Make the cluster where there is none. Raises WrongVersion when another major version made it."""
    if not (data / "PG_VERSION").exists():
        _init(data, binaries, account, durable=durable)
    made_by = (data / "PG_VERSION").read_text().strip()
    if made_by != str(binaries.major):
        raise WrongVersion(
            f"{data} was made by PostgreSQL {made_by}, and {binaries.bindir} is PostgreSQL {binaries.major}: "
            f"start with the binaries of {made_by}, or dump with them (pg_dump), move the directory away, "
            "start anew and restore"
        )


def write_access(directory: Path, *, major: int, roles: Iterable[str]) -> None:
    """Let this process's user log in as the superuser and as *roles*, and nobody else as anybody."""
    _replace(directory / "pg_hba.conf", _HBA)
    _replace(directory / "pg_ident.conf", _ident(service_user(), major=major, roles=roles))


def create_database(conninfo: str) -> None:
    """Make our database, unless it is there."""
    statement = resources.files(__package__).joinpath("create_database.sql").read_bytes()
    with psycopg.connect(conninfo, autocommit=True, connect_timeout=10) as connection:
        try:
            connection.execute(statement)
        except psycopg.errors.DuplicateDatabase:
            return


def _init(data: Path, binaries: Binaries, account: Account, *, durable: bool) -> None:
    """Run initdb aside, then rename: half a cluster never bears the name."""
    part = data.with_name(data.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    make_private(part, account)
    try:
        child.run(_initdb(binaries, part, durable=durable), account)
    except subprocess.CalledProcessError as error:
        raise DidNotStart(f"initdb could not make {data}: {error.stderr.strip()}") from error
    part.rename(data)
    if durable:
        _sync(data.parent)


def _initdb(binaries: Binaries, data: Path, *, durable: bool) -> list[str | Path]:
    """The locale is pinned: under plain `C`, lower() and trigrams fail on all but ASCII."""
    provider = ["--locale-provider=builtin"] if binaries.major >= _BUILTIN_LOCALES else []
    return [
        binaries.bindir / "initdb",
        *("--pgdata", data, "--username", SUPERUSER),
        *("--encoding=UTF8", "--locale=C.UTF-8", *provider),
        *("--data-checksums", "--auth-local=peer", "--auth-host=reject", "--no-instructions"),
        *([] if durable else ["--no-sync"]),
    ]


def _ident(user: str, *, major: int, roles: Iterable[str]) -> str:
    """The map from *user* to roles; before 16 there is no word for all of them."""
    if major >= _IDENT_KNOWS_ALL:
        return f"muniment {_quoted(user)} all\n"
    names = dict.fromkeys([SUPERUSER, *roles])
    return "".join(f"muniment {_quoted(user)} {_quoted(name)}\n" for name in names)


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def _replace(path: Path, text: str) -> None:
    """Write *text*, readable to Postgres's account, unless it is there already."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.chmod(0o644)
    part.replace(path)


def _sync(directory: Path) -> None:
    """Make a rename in *directory* outlast a power failure."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
