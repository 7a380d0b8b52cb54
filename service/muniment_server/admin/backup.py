"""`muniment backup`, `muniment restore`, `muniment verify` and `muniment journal`."""

from __future__ import annotations

import functools
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
from rich.console import Console

from muniment.cli.failures import Failure
from muniment.cli.output import print_note
from muniment_server.admin import dumps
from muniment_server.admin.checks import Finding, Verdict, check_database, report
from muniment_server.admin.database import (
    data_dir_option,
    database_url_option,
    existing_database,
    passfile_option,
    report_database_errors,
    require_newest_server,
    state_dir_option,
    with_operator,
)
from muniment_server.admin.journal import Entry, from_line, to_line
from muniment_server.admin.operator import Operator, connect_operator
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.postgres import roles
from muniment_server.runtime import databases, schema
from muniment_server.runtime.configuration import DatabaseConfig
from muniment_server.runtime.passfile import migrate_with_passfile

_STANDARD = Path("-")
_FILE = click.Path(path_type=Path, dir_okay=False)


def _ends_in_order(command: Callable[..., None]) -> Callable[..., None]:
    """SIGTERM ends *command* as Ctrl-C does: it leaves no part of a backup, and no temporary database."""

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
@data_dir_option
@database_url_option
@state_dir_option
@_ends_in_order
def backup(file: Path, data_dir: Path, database_url: str | None, state_dir: Path | None) -> None:
    """Write everything in the database to FILE, as of one moment, while the server goes on.

    The file contains the text of all levels, unencrypted, and only its owner may read it. With - the backup goes to
    standard output, where a program such as age can encrypt it.

    \b
    Examples:
      muniment backup muniment.dump
      muniment backup - > /mnt/encrypted/muniment.dump
      muniment backup muniment.dump --database-url postgresql://postgres@db.example/muniment
    """
    if file == _STANDARD and sys.stdout.isatty():
        raise Failure("a backup is no text for a terminal", "name a file, or redirect standard output")
    config = DatabaseConfig(data_dir, database_url, state_dir=state_dir)
    with report_database_errors(), existing_database(config) as admin:
        require_newest_server(admin, config)
        with _working("Backing up"):
            if file == _STANDARD:
                dumps.dump(admin, sys.stdout.buffer)
            else:
                with dumps.new_file(file) as target:
                    dumps.dump(admin, target)
    if file != _STANDARD:
        size = file.stat().st_size / 1024 / 1024
        print_note(f"{file} has {size:.1f} MiB. Try it: muniment verify {file}")


@click.command
@click.argument("file", type=_FILE)
@data_dir_option
@database_url_option
@passfile_option
@state_dir_option
@click.option("--journal", type=_FILE, help="Erase and revoke again what this file lists: see `muniment journal`.")
@_ends_in_order
def restore(
    file: Path,
    data_dir: Path,
    database_url: str | None,
    passfile: Path | None,
    state_dir: Path | None,
    journal: Path | None,
) -> None:
    """Restore the backup FILE into a database without data, and close all sessions in it.

    A backup lacks the raises of taint that came after it, so no session goes on: hosts must open new ones at the level
    that the model has seen. With --database-url, which must name an administrator, the passwords of the serving roles
    are written to --passfile. If the server's state directory knows another database, run `muniment database adopt`.

    If it is interrupted, start again with another database without data.

    \b
    Examples:
      muniment restore muniment.dump --data-dir restored --journal muniment.journal
      muniment restore muniment.dump --database-url postgresql://postgres@db.example/new --passfile passfile
    """
    config = DatabaseConfig(data_dir, database_url, passfile, state_dir)
    entries = [] if journal is None else _entries(journal)
    with report_database_errors(), file.open("rb"), _migrated_database(config) as admin, _working("Restoring"):
        closed = _restore(admin, file)
        replayed = _replay(admin, entries)
    print_note(f"The database is ready. {closed} open sessions were closed.")
    if journal is not None:
        print_note(f"{replayed} of {len(entries)} entries of the journal were newer than the backup.")


@click.command
@click.argument("file", type=_FILE)
@_ends_in_order
def verify(file: Path) -> None:
    """Restore the backup FILE into a temporary database, check that as `muniment doctor` does, and remove it.

    The database is below TMPDIR, with the text of all levels, until the command ends. Exits with 1 if there are
    problems.

    \b
    Examples:
      muniment verify muniment.dump
      TMPDIR=/srv/scratch muniment verify muniment.dump
    """
    with report_database_errors(), file.open("rb"), tempfile.TemporaryDirectory(prefix="muniment-verify-") as folder:
        Path(folder).chmod(0o711)  # root's Postgres runs as another account, which must pass
        with EmbeddedPostgres(Path(folder, "postgres"), roles=roles.ALL, durable=True) as embedded:
            admin = embedded.conninfo(user=databases.SUPERUSER)
            with _working("Restoring"):
                schema.migrate(admin)
                _restore(admin, file)
            findings = [*check_database(databases.without(admin, "user"), admin=admin, connections=0), _size(admin)]
    sys.exit(0 if report(findings) else 1)


@click.command("journal")
@with_operator
def write_journal(operator: Operator) -> None:
    """Print what was erased, deleted with its agent, or revoked: for the restore of a backup that is older.

    Print it often, and keep it where the backups are. It has ids only, no names and no content.

    \b
    Examples:
      muniment journal > muniment.journal
      muniment restore muniment.dump --data-dir restored --journal muniment.journal
    """
    for entry in operator.journal():
        click.echo(to_line(entry))


def _entries(file: Path) -> list[Entry]:
    """The entries of a journal. Raises Failure."""
    try:
        return [from_line(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except (ValueError, TypeError, KeyError):
        raise Failure(f"{file} is not a journal", "write one: muniment journal > muniment.journal") from None


def _replay(admin: str, entries: list[Entry]) -> int:
    with connect_operator(admin) as operator:
        return operator.replay(entries)


def _restore(admin: str, file: Path) -> int:
    """Load *file* into a migrated database without data, and migrate that; return how many sessions were closed."""
    dumps.load(admin, file)
    with connect_operator(admin) as operator:
        closed = operator.add_closed_sessions(lambda connection: dumps.load_sessions(connection, file))
    schema.migrate(admin)
    return closed


@contextmanager
def _migrated_database(config: DatabaseConfig) -> Iterator[str]:
    """The administrator's conninfo of a migrated database; an embedded one is made if it does not exist."""
    if config.url is None:
        with databases.operators_database(config) as admin:
            require_newest_server(admin, config)
            yield admin
        return
    require_newest_server(config.url, config)
    if config.passfile is None:
        schema.migrate(config.url)
    else:
        migrate_with_passfile(config.url, config.passfile)
    yield config.url


def _size(admin: str) -> Finding:
    with connect_operator(admin) as operator:
        size = operator.size()
    return Finding(Verdict.GOOD, f"the backup has {size.agents} agents of {size.tenants} tenants")


@contextmanager
def _working(what: str) -> Iterator[None]:
    """Show that something is under way, on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what}…"):
        yield
