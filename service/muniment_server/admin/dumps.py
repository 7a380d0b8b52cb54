"""Backups: pg_dump and pg_restore, in the order that works.

A dump has the content of all levels and the hashes of all tokens, so only its owner may read it. It has no roles, which
belong to a whole Postgres: `restore` makes them first, as `muniment migrate` does.

The schema of a cluster fits no other database, and the reverse. Where a cluster is involved, migrations make the
schema, up to the version of the dump, and only the rows are taken from the dump.

The last line of a backup is the SHA-256 of all that is before it: pg_restore stops before that line. The head of the
file says that the line follows. A backup by a version that wrote no such line can be restored, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import IO, Any

import psycopg
from psycopg import conninfo as libpq
from psycopg import sql

from muniment.cli.failures import Failure
from muniment_server.admin.connection import QUERIES
from muniment_server.embedded_postgres import find_bindir
from muniment_server.postgres import migrate, queries, roles
from muniment_server.postgres.driver_errors import AFTER_DAMAGE, UNOPENED, UNUSABLE_FILES
from muniment_server.postgres.engine import engine_of, shows_doubt
from muniment_server.postgres.pool import with_settings
from muniment_server.process.input_files import open_file
from muniment_server.runtime import restoring

_QUERIES = {**QUERIES, **queries.load(__package__, "dumps.sql")}

_SCHEMAS = ("vault", roles.CONTROL, roles.AUDITOR, roles.ERASER, *roles.LABELS)
_DUMPED_FROM = re.compile(rb"Dumped from database version: (\d+)")
_IS_PREPARED = "SELECT WHERE to_regclass('vault.tenant') IS NOT NULL"
_HAS_DATA = "SELECT FROM vault.tenant LIMIT 1"
_IS_SERVED = "SELECT FROM pg_catalog.pg_stat_activity WHERE datname = current_database() AND usename = ANY(%s) LIMIT 1"
_MAY_SET_VERBOSITY = "SELECT WHERE has_parameter_privilege('log_error_verbosity', 'SET')"
_MIGRATION = re.compile(rb"^(\d+)\t[^\t\n]+\t([^\t\n]+)", re.MULTILINE)
_ROW_POLICY = re.compile(rb"^\d+; \d+ \d+ ROW SECURITY vault session ", re.MULTILINE)
"""Only the schema of a cluster has row policies."""
_ROWS = re.compile(rb"^\d+; \d+ \d+ TABLE DATA (\S+) (\S+) .*$", re.MULTILINE)
_SEQUENCE = re.compile(rb"^\d+; \d+ \d+ SEQUENCE SET .*$", re.MULTILINE)
_ERROR = re.compile(
    r"^pg_\w+: error: +(.*)(?:\npg_dump: detail: Error message from server: ERROR: +(.*))?", re.MULTILINE
)
_MARKS = (b"\nmuniment backup, sha256 ", b", end of muniment backup\n")
"""Around the digest."""
_DIGEST = re.compile(rb"%s([0-9a-f]{64})%s" % _MARKS)
_DIGEST_BYTES = len(b"".join(_MARKS)) + 64
_MINUS_ONE = b"\1\1"
"""How the head of a dump says -1: the sign, and the lowest byte."""
_HEAD_BYTES = 64
_OLDEST_ROWS = 25
"""The oldest schema whose rows alone can be restored: some migrations up to it need tables on one server."""
_STANDARD_OUTPUT = 1
_USE_ANOTHER_COPY = "use another copy of it, or another backup, and keep this one to find out why"
_CHUNK_BYTES = 1024 * 1024
_CAUSES = {
    "No space left on device": "make room on the disk, of the backup or of the database, and run the command again",
    "invalid page in block": f"the database is damaged: {AFTER_DAMAGE}",
    "no matching schemas": "prepare the database first: muniment migrate; or name another database",
    UNOPENED: UNUSABLE_FILES,
}
"""What to do about errors of pg_dump and pg_restore, by words in them."""


def dump(admin: str, target: IO[bytes]) -> None:
    """Write everything in the database of the conninfo *admin*, as of one moment, to *target*. Raises Failure.

    A file must be empty; pg_dump also writes into it where the rows of each table begin. Writes to a cluster wait
    until the dump has ended: see ADR 14.
    """
    path, streams = f"/dev/fd/{target.fileno()}", target.fileno() == _STANDARD_OUTPUT
    options = ["--format=custom", *(f"--schema={name}" for name in _SCHEMAS), *([] if streams else [f"--file={path}"])]
    with psycopg.connect(admin) as connection:
        engine = engine_of(connection)
        if max(migrate.applied_versions(connection), default=0) > migrate.newest_version():
            raise Failure("the schema was made by a later version of Muniment", "back it up with that version")
    with (
        engine.paused_writes(admin),
        _running("pg_dump", admin, *options, pass_fds=[target.fileno()], stdout=subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        digest = hashlib.sha256()
        head = _announcing_digest(process.stdout.read(_CHUNK_BYTES))
        for chunk in chain([head], iter(partial(process.stdout.read, _CHUNK_BYTES), b"")):
            target.write(chunk)
            digest.update(chunk)
    if not streams:
        with Path(path).open("r+b") as written:
            head = _announcing_digest(written.read(_HEAD_BYTES))
            written.seek(0)
            written.write(head)
            written.seek(0)
            digest = hashlib.file_digest(written, "sha256")
        target.seek(0, os.SEEK_END)
    target.write(digest.hexdigest().encode().join(_MARKS))


def require_whole(file: Path) -> bool:
    """Whether the backup *file* has a digest. Raises Failure if it is damaged, or of a later version of Muniment.

    One without a digest is read from beginning to end, which shows whether it was cut off.
    """
    has_digest = _has_right_digest(file)
    if not has_digest:
        _read(file, "--file=/dev/null")
    if max(_migrations(file)) > migrate.newest_version():
        raise Failure("the backup was made by a later version of Muniment", "upgrade Muniment; nothing was changed")
    return has_digest


def _announcing_digest(head: bytes) -> bytes:
    """The *head* of a dump, changed to say that a digest follows.

    The format has no field for that. So the flag for daylight saving time, for which pg_dump writes 0 or 1, becomes -1,
    which stands for "unknown" in C, and which pg_restore accepts.
    """
    offset = _offset_of_summer_time(head)
    return head[:offset] + _MINUS_ONE + head[offset + len(_MINUS_ONE) :] if head else head


def _offset_of_summer_time(head: bytes) -> int:
    """Magic word, version, sizes, format; the compression, a byte since version 1.15; seconds to year, which is 6."""
    if len(head) < _HEAD_BYTES:
        return 0
    integer = 1 + head[8]
    return 11 + (1 if head[5:7] >= b"\1\x0f" else integer) + 6 * integer


def _has_right_digest(file: Path) -> bool:
    """Whether *file* has a digest. Raises Failure if that is wrong, or missing although the head announces it."""
    with open_file(file) as opened:
        head = opened.read(_HEAD_BYTES)
        size = max(opened.seek(0, os.SEEK_END) - _DIGEST_BYTES, 0)
        opened.seek(size)
        last = _DIGEST.fullmatch(opened.read())
        if last is None and not head.startswith(_MINUS_ONE, _offset_of_summer_time(head)):
            return False
        opened.seek(0)
        found = hashlib.sha256()
        for chunk in iter(lambda: opened.read(min(_CHUNK_BYTES, size - opened.tell())), b""):
            found.update(chunk)
        if last is None or found.hexdigest().encode() != last[1]:
            raise Failure(
                f"{file} is not as `muniment backup` wrote it: it was changed, cut off or extended",
                f"nothing was changed; {_USE_ANOTHER_COPY}",
            )
        return True


def without_rows_in_log(admin: str) -> str:
    """The conninfo *admin*, changed so that Postgres logs no part of a row whose copy fails or is canceled.

    Unchanged if that login may not choose what is logged. The nodes of a cluster log by their own settings.
    """
    with psycopg.connect(admin) as connection:
        if connection.execute(_MAY_SET_VERBOSITY).fetchone() is None:
            return admin
    return with_settings(admin, {"log_error_verbosity": "terse"})


@contextmanager
def emptied(admin: str, file: Path, *, is_left: bool = False) -> Iterator[None]:
    """Remove the schema of the database of the conninfo *admin*, so that the block can restore the dump *file* there.

    The database is marked first, so that no server uses it: see `restoring`. What an interrupted restore has left there
    is removed; *is_left* says that all of it was left by one. Raises Failure, before anything is changed, if the
    database has other data, if it is in use, or if its Postgres is too old for the dump.
    """
    with psycopg.connect(admin, autocommit=True) as connection:
        entries = _read(file, "--list")
        _require_same_or_newer(connection, entries)
        _version_of_rows(connection, file, entries)
        if connection.execute(_QUERIES["lock_for_restore"]).fetchone() != (True,):
            raise Failure("another restore into the database is under way", "wait until it has ended")
        with connection.transaction():
            engine_of(connection).before_schema_change(connection)
            _require_unused(connection, is_left=is_left)
            restoring.begin(connection)
            for name in _SCHEMAS:
                connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))
        yield


def _require_unused(connection: psycopg.Connection[Any], *, is_left: bool) -> None:
    """Raise Failure if a server uses the database, or if it has data that no interrupted restore has left there."""
    if is_left or restoring.problems(connection):
        connection.execute(_QUERIES["end_killed_loads"])
    elif connection.execute(_IS_PREPARED).fetchone() is not None:
        connection.execute("LOCK TABLE vault.tenant IN SHARE MODE")  # none is made until the schema is gone
        if connection.execute(_HAS_DATA).fetchone() is not None:
            raise Failure(
                "the database has data already",
                "restore into a new data directory (--data-dir), or into a new database; nothing was changed",
            )
    if connection.execute(_IS_SERVED, [list(roles.SERVING)]).fetchone() is not None:
        raise Failure("a server uses the database", "stop it until the restore has ended; nothing was changed")


def load(admin: str, file: Path) -> None:
    """Load the dump *file* into the database of the conninfo *admin*, which is `emptied` and has the roles.

    Sessions that were open in the dump are open again, so the database stays marked as not restored until they are
    closed. Raises Failure.
    """
    entries = _read(file, "--list")
    with psycopg.connect(admin) as connection:
        version = _version_of_rows(connection, file, entries)
        restoring.give_to_owner(connection)
    if version is None:
        _restore(admin, file, entries)
    else:
        migrate.migrate(admin, until=version)
        with psycopg.connect(admin) as connection:
            connection.execute("DELETE FROM vault.migration")  # the dump has these rows, too
            chosen = _row_entries(connection, entries)
        _restore(admin, file, chosen, "--data-only")


def _restore(admin: str, file: Path, entries: bytes, *options: str) -> None:
    """Restore the *entries* of *file*, in their order, or none."""
    with tempfile.NamedTemporaryFile(prefix="muniment-restore-") as chosen:
        chosen.write(entries)
        chosen.flush()
        # Only a verbose pg_restore prints the warnings of the database.
        options = ("--single-transaction", "--exit-on-error", "--verbose", f"--use-list={chosen.name}", *options)
        with _running("pg_restore", admin, *options, str(file)):
            pass


def _version_of_rows(connection: psycopg.Connection[Any], file: Path, entries: bytes) -> int | None:
    """The version of the schema that the dump *file* is of, if only its rows can be restored.

    Raises Failure if the database is a cluster, which cannot have that version.
    """
    if engine_of(connection).is_plain and _ROW_POLICY.search(entries) is None:
        return None
    version = max(_migrations(file))
    if version < _OLDEST_ROWS:
        raise Failure(
            "the backup was made before Muniment supported clusters",
            "restore it into plain Postgres, back that up, and restore the new backup here; nothing was changed",
        )
    return version


def _row_entries(connection: psycopg.Connection[Any], entries: bytes) -> bytes:
    """The *entries* that have rows, in the order of the foreign keys; and the numbers that sequences have reached."""
    connection.execute(_QUERIES["use_schema"], {"schema": ""})  # names are qualified, as in the dump
    found = connection.execute(_QUERIES["referenced_tables"], {"owner": roles.OWNER}).fetchall()
    references: dict[str, list[str]] = dict(found)
    rows = {b".".join(row.groups()).decode(): row[0] for row in _ROWS.finditer(entries)}
    ordered = [rows[table] for table in TopologicalSorter(references).static_order() if table in rows]
    if len(ordered) != len(rows):
        raise Failure("the backup has rows of tables that the schema lacks", "check that it is by `muniment backup`")
    return b"\n".join([*ordered, *_SEQUENCE.findall(entries)])


def first_migration(file: Path) -> datetime:
    """When the database that the dump *file* is of got its first migration: see `journal`. Raises Failure."""
    return datetime.fromisoformat(_migrations(file)[1])


def _migrations(file: Path) -> dict[int, str]:
    """The versions of the schema that the dump *file* has, and when each was applied. Raises Failure."""
    rows = _read(file, *_rows_of("migration"))
    found = {int(version): time.decode() for version, time in _MIGRATION.findall(rows)}
    if 1 not in found:
        raise _unreadable(file, b"")
    return found


def _rows_of(table: str) -> list[str]:
    """The options that print the rows of a table of the schema vault."""
    return ["--data-only", "--schema=vault", f"--table={table}", "--file=-"]


def _reading(file: Path, *options: str) -> list[str]:
    """The command that reads the dump *file* with these *options*."""
    return [str(_program("pg_restore", find_bindir())), *options, str(file)]


def _read(file: Path, *options: str) -> bytes:
    """What pg_restore prints of the dump *file*, without a database. Raises Failure."""
    done = subprocess.run(_reading(file, *options), capture_output=True, check=False)
    if done.returncode != 0:
        raise _unreadable(file, done.stderr)
    return done.stdout


@contextmanager
def new_file(path: Path, *, replaces: bool = False) -> Iterator[IO[bytes]]:
    """A file for the block, which only its owner may read. It gets its name once it is complete and on disk.

    Raises Failure if there is one of that name, unless it *replaces* that.
    """
    if not replaces:
        _require_absent(path)
    with contextlib.ExitStack() as undo:
        descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)
        part = Path(name)  # of this command alone: another one to the same name may be under way
        undo.callback(part.unlink, missing_ok=True)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not replaces:
            _require_absent(path)
        part.replace(path)


def _require_absent(path: Path) -> None:
    if path.exists():
        raise Failure(f"{path} exists", "choose another name: a backup replaces no file")


@contextmanager
def _running(
    program: str, admin: str, *options: str, stdout: int = subprocess.DEVNULL, pass_fds: Sequence[int] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of Postgres on the database of *admin*. It ends with the block, after which this raises Failure.

    Its command line, which others can read, has no secrets: libpq takes the password from the environment.
    """
    with psycopg.connect(admin) as connection:
        major = connection.info.server_version // 10_000
    # A newer pg_restore fails with an older server, since it sets what that does not know.
    found = _program(program, Path(f"/usr/lib/postgresql/{major}/bin"), find_bindir())
    given = libpq.conninfo_to_dict(admin)
    if "sslpassword" in given:
        raise Failure("other users could see the sslpassword of the URL", "write it into a service, and name that")
    environment = {**os.environ, "PGPASSWORD": str(given.pop("password"))} if "password" in given else {**os.environ}
    command = [str(found), "--no-password", f"--dbname={libpq.make_conninfo('', **given)}", *options]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, env=environment, pass_fds=pass_fds, stdout=stdout, stderr=errors) as process,
    ):
        try:
            yield process
            failed = process.wait() != 0
        finally:
            process.kill()  # unless it has ended
        errors.seek(0)
        output = errors.read()
    if failed:
        raise _failure(program, output)
    if shows_doubt(output.decode(errors="replace")):
        raise Failure(
            "a node of the cluster did not confirm the commit of the rows",
            "start the node, and run the command again: no server uses this database",
        )


def _program(name: str, *bindirs: Path) -> Path:
    """The program of that name in the first of *bindirs* that has it."""
    for bindir in bindirs:
        if (bindir / name).exists():
            return bindir / name
    raise Failure(
        f"there is no {name} in {' or '.join(map(str, bindirs))}", "install the client programs of PostgreSQL"
    )


def _require_same_or_newer(connection: psycopg.Connection[Any], entries: bytes) -> None:
    """Raise Failure unless that Postgres can load the dump with those *entries*."""
    found, major = _DUMPED_FROM.search(entries), connection.info.server_version // 10_000
    if found is not None and int(found[1]) > major:
        raise Failure(
            f"the backup is of PostgreSQL {int(found[1])}, and the database is of {major}",
            "restore it into the same version, or a newer one",
        )


def _unreadable(file: Path, output: bytes) -> Failure:
    """That pg_restore cannot read *file*. No login is involved."""
    return Failure(
        f"{file} is no backup, or is damaged or cut off: {_reason(output)}", _remedy(output, _USE_ANOTHER_COPY)
    )


def _failure(program: str, output: bytes) -> Failure:
    check = "check that the login is an administrator, and find the cause: muniment doctor --deep"
    check = check if program == "pg_dump" else "check that the file is a backup and that the login is an administrator"
    return Failure(f"{program} failed: {_reason(output)}", _remedy(output, check))


def _reason(output: bytes) -> str:
    """The first error of a program, and that of the database behind it. Other lines may quote content."""
    found = _ERROR.search(output.decode(errors="replace"))
    return " ".join(filter(None, found.groups())) if found else "it gave no reason"


def _remedy(output: bytes, otherwise: str) -> str:
    """What to do about the error in *output*, or *otherwise* where that is not known."""
    return next((do for cause, do in _CAUSES.items() if cause.encode() in output), otherwise)
