"""Backups: pg_dump and pg_restore, in the order that works.

A dump has the content of all levels and the hashes of all tokens, so only its owner may read it. It has no roles, which
belong to a whole Postgres: `restore` makes them first, as `muniment migrate` does.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import psycopg
from psycopg import conninfo as libpq
from psycopg import sql

from muniment.cli.failures import Failure
from muniment_server.embedded_postgres import find_bindir
from muniment_server.postgres import roles

_SCHEMAS = ("vault", roles.CONTROL, roles.AUDITOR, roles.ERASER, *roles.LEVELS)
_DUMPED_FROM = re.compile(rb"Dumped from database version: (\d+)")
_HAS_DATA = "SELECT FROM vault.tenant LIMIT 1"


def dump(admin: str, target: IO[bytes]) -> None:
    """Write everything in the database of the conninfo *admin*, as of one moment, to *target*. Raises Failure."""
    schemas = [f"--schema={name}" for name in _SCHEMAS]
    command, environment = _command("pg_dump", admin)
    done = subprocess.run(
        [*command, "--format=custom", *schemas],
        stdout=target, stderr=subprocess.PIPE, env=environment, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise _failure("pg_dump", done.stderr)


def load(admin: str, file: Path) -> None:
    """Replace the schema of the database of the conninfo *admin*, which has no data, by what the dump *file* has.

    Raises Failure, also if the database has data. After that the database may be without a schema: `muniment migrate`.
    """
    with psycopg.connect(admin) as connection:
        _require_as_new(_major(connection), file)
        if connection.execute(_HAS_DATA).fetchone() is not None:
            raise Failure("the database is in use", "restore into a new data directory, or into a new database")
        for name in _SCHEMAS:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))
    command, environment = _command("pg_restore", admin)
    done = subprocess.run(
        [*command, "--single-transaction", "--exit-on-error", str(file)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise _failure("pg_restore", done.stderr)


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file for the block, which only its owner may read. It gets its name once it is complete and on disk."""
    if path.exists():
        raise Failure(f"{path} exists", "choose another name: a backup replaces no file")
    part = path.with_name(path.name + ".part")
    with contextlib.ExitStack() as undo:
        undo.callback(part.unlink, missing_ok=True)
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)


def _command(program: str, admin: str) -> tuple[list[str], dict[str, str]]:
    """How to run a program of Postgres on the database of *admin*: the password is not on its command line."""
    with psycopg.connect(admin) as connection:
        major = _major(connection)
    # A newer pg_restore fails with an older server, since it sets what that does not know.
    found = _program(program, Path(f"/usr/lib/postgresql/{major}/bin"), find_bindir())
    given = libpq.conninfo_to_dict(admin)
    password = given.pop("password", None)
    environment = {**os.environ, "PGPASSWORD": str(password)} if password else dict(os.environ)
    return [str(found), "--no-password", f"--dbname={libpq.make_conninfo('', **given)}"], environment


def _program(name: str, *bindirs: Path) -> Path:
    """The program of that name in the first of *bindirs* that has it."""
    for bindir in bindirs:
        if (bindir / name).exists():
            return bindir / name
    raise Failure(
        f"there is no {name} in {' or '.join(map(str, bindirs))}", "install the client programs of PostgreSQL"
    )


def _major(connection: psycopg.Connection[Any]) -> int:
    return connection.info.server_version // 10_000


def _require_as_new(major: int, file: Path) -> None:
    """Raise Failure unless Postgres *major* can load the dump *file*."""
    command = [str(_program("pg_restore", find_bindir())), "--list", str(file)]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode != 0:
        raise _failure("pg_restore", listed.stderr)
    found = _DUMPED_FROM.search(listed.stdout)
    if found is not None and int(found[1]) > major:
        raise Failure(
            f"the backup is of PostgreSQL {int(found[1])}, and the database is of {major}",
            "restore it into the same version, or a newer one",
        )


def _failure(program: str, output: bytes) -> Failure:
    """Its first error. Later lines may quote a statement, and so content."""
    lines = [line for line in output.decode(errors="replace").splitlines() if "error:" in line]
    first = lines[0].partition("error:")[2].strip() if lines else "it gave no reason"
    return Failure(
        f"{program} failed: {first}", "check that the file is a backup and that the login is an administrator"
    )
