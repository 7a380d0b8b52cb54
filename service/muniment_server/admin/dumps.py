"""Backups: pg_dump and pg_restore, in the order that works.

A dump has the content of all levels and the hashes of all tokens, so only its owner may read it. It has no roles, which
belong to a whole Postgres: `restore` makes them first, as `muniment migrate` does.

The schema of a Citus cluster fits no other database, and the reverse. Where a cluster is involved, migrations make the
schema, up to the version of the dump, and only the rows are taken from the dump.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from graphlib import TopologicalSorter
from pathlib import Path
from typing import IO, Any

import psycopg
from psycopg import conninfo as libpq
from psycopg import sql

from muniment.cli.failures import Failure
from muniment_server.admin.paused_writes import paused_writes
from muniment_server.embedded_postgres import find_bindir
from muniment_server.postgres import citus, migrate, queries, roles
from muniment_server.postgres.driver_errors import AFTER_DAMAGE
from muniment_server.postgres.pool import with_settings
from muniment_server.runtime import restoring
from muniment_server.runtime.census import checksum_failures

_QUERIES = queries.load(__package__, "operator.sql")

_SCHEMAS = ("vault", roles.CONTROL, roles.AUDITOR, roles.ERASER, *roles.LEVELS)
_DUMPED_FROM = re.compile(rb"Dumped from database version: (\d+)")
_HAS_DATA = "SELECT FROM vault.tenant LIMIT 1"
_IS_SERVED = "SELECT FROM pg_catalog.pg_stat_activity WHERE datname = current_database() AND usename = ANY(%s) LIMIT 1"
_MAY_SET_VERBOSITY = "SELECT WHERE has_parameter_privilege('log_error_verbosity', 'SET')"
_MIGRATION = re.compile(rb"^(\d+)\t[^\t\n]+\t([^\t\n]+)", re.MULTILINE)
_SESSIONS = re.compile(rb"^\d+; \d+ \d+ TABLE DATA vault session .*$", re.MULTILINE)
_ROW_POLICY = re.compile(rb"^\d+; \d+ \d+ ROW SECURITY vault session ", re.MULTILINE)
"""Only the schema of a cluster has row policies."""
_ROWS = re.compile(rb"^\d+; \d+ \d+ TABLE DATA (\S+) (\S+) .*$", re.MULTILINE)
_SEQUENCE = re.compile(rb"^\d+; \d+ \d+ SEQUENCE SET .*$", re.MULTILINE)
_ERROR = re.compile(
    r"^pg_\w+: error: +(.*)(?:\npg_dump: detail: Error message from server: ERROR: +(.*))?", re.MULTILINE
)
_COPY_SESSIONS = b"COPY vault.session "
_END_OF_COPY = b"\\.\n"


def dump(admin: str, target: IO[bytes]) -> None:
    """Write everything in the database of the conninfo *admin*, as of one moment, to *target*. Raises Failure.

    Writes to a cluster wait meanwhile: see `paused_writes`.
    """
    schemas = [f"--schema={name}" for name in _SCHEMAS]
    with psycopg.connect(admin) as connection:
        on_cluster = citus.is_cluster(connection)
    with paused_writes(admin) if on_cluster else contextlib.nullcontext():
        done = _run("pg_dump", admin, "--format=custom", *schemas, output=target)
        if done.returncode != 0:
            with psycopg.connect(admin) as connection:
                is_damaged = bool(checksum_failures(connection))
            advice = (
                f"the database is damaged: {AFTER_DAMAGE}" if is_damaged else "find the cause: muniment doctor --deep"
            )
            raise _failure("pg_dump", done.stderr, advice)


def without_rows_in_log(admin: str) -> str:
    """The conninfo *admin*, changed so that Postgres logs no part of a row whose copy fails or is canceled.

    Unchanged if that login may not choose what is logged. The nodes of a cluster log by their own settings.
    """
    with psycopg.connect(admin) as connection:
        if connection.execute(_MAY_SET_VERBOSITY).fetchone() is None:
            return admin
    return with_settings(admin, {"log_error_verbosity": "terse"})


def require_restorable(admin: str, file: Path) -> None:
    """Raise Failure if the Postgres of the conninfo *admin* is older than that of the dump *file*."""
    with psycopg.connect(admin) as connection:
        _require_same_or_newer(connection, _entries(file))


def load(admin: str, file: Path) -> None:
    """Load the dump *file* into the database of the conninfo *admin*, in the place of its schema.

    The sessions are left out, because they are open: see `load_sessions`. The database is marked from before the first
    change on, so that no server uses it: see `restoring`. Raises Failure, for one if the database has data.
    """
    entries = _entries(file)
    without_sessions, found = _SESSIONS.subn(b"", entries)
    if not found:
        raise Failure(f"{file} has no sessions", "check that it is a backup by `muniment backup`")
    with psycopg.connect(admin) as connection:
        rows_only = citus.is_cluster(connection) or _ROW_POLICY.search(entries) is not None
        version = _version_for_cluster(file) if rows_only else None
        _require_same_or_newer(connection, entries)
        connection.execute(_QUERIES["use_one_connection_to_each_node"])
        connection.execute("LOCK TABLE vault.tenant IN SHARE MODE")  # none is made until the schema is gone
        if connection.execute(_HAS_DATA).fetchone() is not None:
            raise Failure(
                "the database has data already",
                "restore into a new data directory (--data-dir), or into a new database; nothing was changed",
            )
        if connection.execute(_IS_SERVED, [list(roles.SERVING)]).fetchone() is not None:
            raise Failure("a server uses the database", "stop it until the restore has ended; nothing was changed")
        restoring.begin(connection)
        for name in _SCHEMAS:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))
    if version is None:
        _restore(admin, file, without_sessions)
    else:
        migrate.migrate(admin, until=version)
        with psycopg.connect(admin) as connection:
            connection.execute("DELETE FROM vault.migration")  # the dump has these rows, too
            chosen = _row_entries(connection, without_sessions)
        _restore(admin, file, chosen, "--data-only")


def _restore(admin: str, file: Path, entries: bytes, *options: str) -> None:
    """Restore the *entries* of *file*, in their order, or none."""
    with tempfile.NamedTemporaryFile(prefix="muniment-restore-") as chosen:
        chosen.write(entries)
        chosen.flush()
        # Only a verbose pg_restore prints the warnings of the database.
        options = ("--single-transaction", "--exit-on-error", "--verbose", f"--use-list={chosen.name}", *options)
        done = _run("pg_restore", admin, *options, str(file), output=subprocess.DEVNULL)
    if done.returncode != 0:
        raise _failure("pg_restore", done.stderr)
    if citus.COMMIT_WARNING in done.stderr.decode(errors="replace"):
        raise Failure(
            "a node of the cluster did not confirm the commit of the rows",
            "start the node, and restore the backup into another database without data: no server uses this one",
        )


def _version_for_cluster(file: Path) -> int:
    """The version of the schema that the dump *file* is of. Raises Failure if a cluster cannot have it."""
    version = max(_migrations(file))
    if version > migrate.newest_version():
        raise Failure("the backup was made by a later version of Muniment", "upgrade Muniment; nothing was changed")
    if version < migrate.OLDEST_ON_CLUSTER:
        raise Failure(
            "the backup was made before Muniment supported Citus clusters",
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


def load_sessions(connection: psycopg.Connection[Any], file: Path) -> None:
    """Copy the sessions of the dump *file* over *connection*, so that its transaction can close them. Raises Failure.

    `load` leaves them out: an interrupted restore would leave tokens that open conversations at an old taint.
    """
    with subprocess.Popen(_rows_of(file, "session"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            if line.startswith(_COPY_SESSIONS):
                with connection.cursor().copy(line) as copy:
                    for row in iter(process.stdout.readline, _END_OF_COPY):
                        if not row:
                            break
                        copy.write(row)
        errors = process.stderr.read()
    if process.returncode != 0:
        raise _failure("pg_restore", errors)


def first_migration(file: Path) -> datetime:
    """When the database that the dump *file* is of got its first migration: see `journal`. Raises Failure."""
    return datetime.fromisoformat(_migrations(file)[1])


def _migrations(file: Path) -> dict[int, str]:
    """The versions of the schema that the dump *file* has, and when each was applied. Raises Failure."""
    listed = subprocess.run(_rows_of(file, "migration"), capture_output=True, check=False)
    found = {int(version): time.decode() for version, time in _MIGRATION.findall(listed.stdout)}
    if listed.returncode != 0 or 1 not in found:
        raise _failure("pg_restore", listed.stderr)
    return found


def _rows_of(file: Path, table: str) -> list[str]:
    """The command that prints the rows of a table of the schema vault."""
    command = [str(_program("pg_restore", find_bindir())), "--data-only", "--schema=vault", f"--table={table}"]
    return [*command, "--file=-", str(file)]


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


def _run(program: str, admin: str, *options: str, output: IO[bytes] | int) -> subprocess.CompletedProcess[bytes]:
    """Run a program of Postgres on the database of *admin*. Its command line, which others can read, has no secrets.

    libpq takes the password from the environment, and sslpassword from a service file, which is in memory.
    """
    with psycopg.connect(admin) as connection:
        major = _major(connection)
    # A newer pg_restore fails with an older server, since it sets what that does not know.
    found = _program(program, Path(f"/usr/lib/postgresql/{major}/bin"), find_bindir())
    given = libpq.conninfo_to_dict(admin)
    environment = {**os.environ, "PGPASSWORD": str(given.pop("password"))} if "password" in given else {**os.environ}
    with os.fdopen(os.memfd_create("service"), "w") as service:
        if "sslpassword" in given:
            _require_no_service(given)
            service.write(f"[muniment]\nsslpassword={given.pop('sslpassword')}\n")
            service.flush()
            given["service"], environment["PGSERVICEFILE"] = "muniment", f"/dev/fd/{service.fileno()}"
        return subprocess.run(
            [str(found), "--no-password", f"--dbname={libpq.make_conninfo('', **given)}", *options],
            env=environment, pass_fds=[service.fileno()], stdout=output, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip


def _require_no_service(given: Mapping[str, object]) -> None:
    if "service" in given:
        raise Failure("the URL has a service and an sslpassword", "write the sslpassword into the service")


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


def _entries(file: Path) -> bytes:
    """The list of what the dump *file* has. Raises Failure."""
    command = [str(_program("pg_restore", find_bindir())), "--list", str(file)]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode != 0:
        raise _failure("pg_restore", listed.stderr)
    return listed.stdout


def _require_same_or_newer(connection: psycopg.Connection[Any], entries: bytes) -> None:
    """Raise Failure unless that Postgres can load the dump with those *entries*."""
    found, major = _DUMPED_FROM.search(entries), _major(connection)
    if found is not None and int(found[1]) > major:
        raise Failure(
            f"the backup is of PostgreSQL {int(found[1])}, and the database is of {major}",
            "restore it into the same version, or a newer one",
        )


def _failure(
    program: str, output: bytes, advice: str = "check that the file is a backup and that the login is an administrator"
) -> Failure:
    """Its first error, and that of the database behind it. Other lines may quote a statement, and so content."""
    found = _ERROR.search(output.decode(errors="replace"))
    reason = " ".join(filter(None, found.groups())) if found else "it gave no reason"
    return Failure(f"{program} failed: {reason}", advice)
