"""`muniment backup`, `muniment restore`, `muniment verify` and `muniment journal`."""

from __future__ import annotations

import functools
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
import psycopg
from rich.console import Console

from muniment.cli.failures import Failure, report_file_errors
from muniment.cli.output import print_note
from muniment_server.admin import dumps
from muniment_server.admin.audit import verify_audit
from muniment_server.admin.checks import REINDEX, Finding, Verdict, check_database, report
from muniment_server.admin.connection import Operator, connect_operator
from muniment_server.admin.database import (
    existing_database,
    report_database_errors,
    require_newest_server,
    with_database,
    with_operator,
)
from muniment_server.admin.inspection import size_of
from muniment_server.admin.journal import Entry, Journal, from_bytes, journal_of, replay, to_bytes
from muniment_server.admin.sessions import end_what_is_open
from muniment_server.admin.tenants import tenant_names
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.postgres import roles
from muniment_server.postgres.driver_errors import AFTER_DAMAGE
from muniment_server.postgres.engine import engine_of
from muniment_server.postgres.transaction import lift_idle_timeout
from muniment_server.process.input_files import LOG_BYTES, read_file
from muniment_server.runtime import databases, restoring, schema
from muniment_server.runtime.configuration import DatabaseConfig
from muniment_server.runtime.passfile import migrate_with_passfile, require_known

_STANDARD = Path("-")
_KEEP = "keep the backup and its database as they are, and find out which of the two was damaged or changed"
"""What to do about a backup that is not consistent: its database may be the only evidence."""
_FILE = click.Path(path_type=Path, dir_okay=False)


def _cleans_up_on_sigterm(command: Callable[..., None]) -> Callable[..., None]:
    """Make SIGTERM end *command* as Ctrl-C does: no partial backup and no temporary database remain."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        before = signal.signal(signal.SIGTERM, _end)
        try:
            command(**given)
        finally:
            signal.signal(signal.SIGTERM, before)

    return run


def _end(number: int, _: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # a second one does not interrupt the removal
    sys.exit(128 + number)


@click.command
@click.argument("file", type=_FILE)
@with_database()
@_cleans_up_on_sigterm
def backup(config: DatabaseConfig, file: Path) -> None:
    """Write everything in the database to FILE, as of one moment, while the server goes on.

    On a cluster, writes wait meanwhile, and calls that write fail with UNAVAILABLE after 5 seconds. Reads go on,
    except those that are audited. If the command is killed, the writes go on.

    The file contains the text of all levels, unencrypted, and only its owner may read it. With - the backup goes to
    standard output, where a program such as age can encrypt it.

    \b
    Examples:
      muniment backup muniment.dump
      muniment backup - > /mnt/encrypted/muniment.dump
      muniment backup muniment.dump --database-url postgresql://postgres@db.example/muniment
    """
    if file == _STANDARD and sys.stdout.isatty():
        raise Failure(
            "a backup is binary, and standard output is a terminal", "name a file, or redirect standard output"
        )
    with existing_database(config) as admin, Console(stderr=True).status("Backing up…"):
        if file == _STANDARD:
            dumps.dump(admin, sys.stdout.buffer)
        else:
            with dumps.new_file(file) as target:
                dumps.dump(admin, target)
    if file != _STANDARD:
        size = file.stat().st_size / 1024 / 1024
        print_note(f"{file}: {size:.1f} MiB. Check it: muniment verify {file}")


@click.command
@click.argument("file", type=_FILE)
@with_database(passfile=True)
@click.option("--journal", type=_FILE, help="Erase and revoke again what this file lists: see `muniment journal`.")
@_cleans_up_on_sigterm
def restore(config: DatabaseConfig, file: Path, journal: Path | None) -> None:
    """Restore the backup FILE into a database without data, close all sessions in it and reject all open releases.

    A backup of a cluster can be restored into plain Postgres, too. One of plain Postgres can be restored into a
    cluster if Muniment supported clusters when it was made.

    A backup lacks the raises of taint that came after it, so no session goes on: hosts must open new ones at the level
    that the model has seen. It lacks later rejections of releases, too, so hosts must ask again for those that are
    still needed.

    With --database-url, which must name an administrator, the passwords of the serving roles are written to --passfile.
    For each --state-dir that knows the old database, run `muniment database adopt`.

    No server may use the database meanwhile, and none uses it if the restore is interrupted: run it again, and it
    starts anew.

    \b
    Examples:
      muniment restore muniment.dump --data-dir restored --journal muniment.journal
      muniment restore muniment.dump --database-url postgresql://postgres@db.example/new --passfile passfile
    """
    given = None if journal is None else _read_journal(journal)
    _require_whole(file)
    if given is not None and given.database != dumps.first_migration(file):
        raise Failure(f"{journal} and {file} are of different databases", "give the journal of the same database")
    with Console(stderr=True).status("Restoring…"), _emptied_database(config, file) as admin:
        closed, rejected, repeated = _restore(admin, file, () if given is None else given.entries, config.passfile)
        lack_passwords = _lack_passwords(admin)
    print_note(f"The database is ready. {closed} open {'session was' if closed == 1 else 'sessions were'} closed.")
    if rejected:
        print_note(f"{rejected} open {'release was' if rejected == 1 else 'releases were'} rejected: ask again.")
    if lack_passwords:
        print_note(
            "The nodes of the cluster do not have the passwords of the serving roles for this database. Unless they "
            "need none, run `muniment migrate --rotate` before `muniment serve`."
        )
    if given is not None:
        _report_replay(given, repeated)


@click.command
@click.argument("file", type=_FILE)
@_cleans_up_on_sigterm
def verify(file: Path) -> None:
    """Check that the backup FILE is as it was written, restore it into a temporary database, check that as
    `muniment doctor` and `muniment audit verify` do, and remove it.

    The database is below TMPDIR, with the text of all levels, until the command ends. Exits with 1 if there are
    problems. Whoever can write to FILE can also write another digest: keep checkpoints of the audit log elsewhere, and
    compare a restored copy with them.

    \b
    Examples:
      muniment verify muniment.dump
      TMPDIR=/srv/scratch muniment verify muniment.dump
    """
    with report_database_errors(), tempfile.TemporaryDirectory(prefix="muniment-verify-") as folder:
        _require_whole(file)
        Path(folder).chmod(0o711)  # root's Postgres runs as another account, which must pass
        with EmbeddedPostgres(Path(folder, "postgres"), roles=roles.ALL, durable=True) as embedded:
            admin = embedded.conninfo(user=databases.SUPERUSER)
            with Console(stderr=True).status("Restoring…"), dumps.emptied(admin, file):
                _restore(admin, file, ())
            findings = [
                *check_database(databases.without(admin, "user"), admin=admin, connections=0),
                *_check_audit(admin),
                _size(admin),
            ]
    healthy = report(
        Finding(each.verdict, each.text.replace(REINDEX, _KEEP).replace(AFTER_DAMAGE, _KEEP)) for each in findings
    )
    sys.exit(0 if healthy else 1)


@click.command("journal")
@click.argument("file", type=_FILE)
@with_operator
@_cleans_up_on_sigterm
def write_journal(operator: Operator, file: Path) -> None:
    """Write to FILE what was erased, deleted with its agent, revoked or frozen: for the restore of an older backup.

    Run it often, and keep FILE where the backups are. It has ids only, no names and no content. The journal that is
    there is replaced once the new one is complete, and only if that has all its entries. Keep journals of copies of the
    database apart: a restore cannot tell them from its own.

    \b
    Examples:
      muniment journal muniment.journal
      muniment restore muniment.dump --data-dir restored --journal muniment.journal
    """
    journal = journal_of(operator.connection)
    if file.exists() and not set(_read_journal(file).entries) <= set(journal.entries):
        raise Failure(
            f"{file} has entries that the database lacks",
            "keep it, and choose another name: it is of another database, or a backup was restored without it",
        )
    with dumps.new_file(file, replaces=True) as target:
        target.write(to_bytes(journal))
    print_note(f"Entries in {file}: {len(journal.entries)}.")


def _read_journal(file: Path) -> Journal:
    """The journal in *file*. Raises Failure."""
    try:
        with report_file_errors():
            return from_bytes(read_file(file, LOG_BYTES))
    except ValueError:
        raise Failure(
            f"{file} is no journal, is cut off, or was changed",
            "give the last complete journal; do not overwrite it: the erasures since the backup may be nowhere else",
        ) from None


def _report_replay(journal: Journal, repeated: int) -> None:
    others = "" if repeated == len(journal.entries) else ": the backup had the others"
    print_note(f"{repeated} of {len(journal.entries)} entries of the journal were repeated{others}.")
    newest = f", and its newest entry of {journal.entries[-1].time:%Y-%m-%d %H:%M:%SZ}" if journal.entries else ""
    print_note(
        f"The journal is of {journal.time:%Y-%m-%d %H:%M:%SZ}{newest}: what was erased or revoked later is back."
    )


def _require_whole(file: Path) -> None:
    """Raise Failure if the backup *file* is damaged, before anything is done. Says so if it has no digest."""
    if not dumps.require_whole(file):
        print_note(
            f"! {file} has no digest: an earlier version of Muniment wrote it. Not all damage to it can be found."
        )


def _restore(admin: str, file: Path, entries: Sequence[Entry], passfile: Path | None = None) -> tuple[int, int, int]:
    """Load *file* into an emptied database, migrate that, and repeat *entries*.

    Returns how many sessions were closed, how many releases rejected, and how many entries repeated.
    """
    migrate_with_passfile(admin, passfile, until=0)
    admin = dumps.without_rows_in_log(admin)
    dumps.load(admin, file)
    schema.migrate(admin)  # first: what operators do is written for the newest schema
    with connect_operator(admin) as operator:
        closed, rejected = end_what_is_open(operator, "restore")
        return closed, rejected, end_restore(operator, entries)


def _lack_passwords(admin: str) -> bool:
    """Whether the nodes of a cluster lack passwords for `serve`. They are stored in each database of a node."""
    with psycopg.connect(admin, autocommit=True) as connection:
        return engine_of(connection).lack_passwords(connection)


@contextmanager
def _emptied_database(config: DatabaseConfig, file: Path) -> Iterator[str]:
    """The administrator's conninfo of a database to restore the dump *file* into; an embedded one is made if needed."""
    if config.url is None:
        directory = databases.cluster_directory(config.data_dir)
        with databases.embedded_database(config.data_dir, restoring.begin_in) as admin:
            require_newest_server(admin, config)
            with dumps.emptied(admin, file, is_left=bool(restoring.problems_in(directory))):
                restoring.mark(directory)
                yield admin
            restoring.end_in(directory)
        return
    require_newest_server(config.url, config)
    if config.passfile is not None:
        require_known(config.url, config.passfile)
    with dumps.emptied(config.url, file):
        yield config.url


def _check_audit(admin: str) -> Iterator[Finding]:
    """Whether the audit logs of all tenants are as they were sealed."""
    with connect_operator(admin) as operator:
        found = [(tenant, one) for tenant in tenant_names(operator) for one in verify_audit(operator, tenant, ())]
    for tenant, one in found:
        for problem in one.problems:
            text = f"the audit log of {tenant} at {one.classification.name}: {problem}: {_KEEP}"
            yield Finding(Verdict.BAD, text)
    if not any(one.problems for _, one in found):
        yield Finding(Verdict.GOOD, f"the audit logs are as sealed; seals: {sum(one.seals for _, one in found)}")


def _size(admin: str) -> Finding:
    with connect_operator(admin) as operator:
        size = size_of(operator)
    return Finding(Verdict.GOOD, f"agents in the backup: {size.agents}; tenants: {size.tenants}")


def end_restore(operator: Operator, given: Sequence[Entry]) -> int:
    """Repeat what the restored database does not know of, and let servers use it; return how many entries."""
    with operator.connection.transaction():
        lift_idle_timeout(operator.connection)
        engine_of(operator.connection).before_schema_change(operator.connection)
        repeated = replay(operator.connection, given)
        restoring.end(operator.connection)
    return repeated
