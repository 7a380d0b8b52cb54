"""`muniment distribute`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from muniment.cli.failures import Failure
from muniment.cli.output import Output, print_note, with_output
from muniment_server.admin.database import (
    data_dir_option,
    database_url_option,
    existing_database,
    passfile_option,
    report_database_errors,
    require_newest_server,
    require_passfile,
    state_dir_option,
)
from muniment_server.engines.citus.distributing import CannotDistribute, Distribution, Step, distribution
from muniment_server.postgres.pool import NotCommitted
from muniment_server.runtime.configuration import DatabaseConfig

_COLUMNS = ("table", "rows")


@click.command
@data_dir_option
@database_url_option
@passfile_option
@click.option("--dry-run", is_flag=True, help="Change nothing; only print how many rows would move.")
@state_dir_option
@with_output
def distribute(
    output: Output,
    data_dir: Path,
    database_url: str | None,
    passfile: Path | None,
    dry_run: bool,
    state_dir: Path | None,
) -> None:
    """Distribute a database with data over the nodes of a Citus cluster.

    The URL names the database of the coordinator, and a superuser. The database must have been prepared before the
    extension citus was created there, and the workers must have been added since. Stop the servers before, and name
    their passfile.

    All tables move in one transaction, and are locked until it ends. If the command is interrupted before that, no row
    has moved. Run it again: it does what is left, and changes nothing once the database is distributed.

    Columns in a pipe: table, rows.

    \b
    Examples:
      muniment distribute --database-url postgresql://postgres@db.example/muniment --passfile passfile --dry-run
      muniment distribute --database-url postgresql://postgres@db.example/muniment --passfile passfile
    """
    config = DatabaseConfig(data_dir, database_url, passfile, state_dir)
    with report_database_errors(), existing_database(config) as admin:
        require_newest_server(admin, config)
        if passfile is not None:
            require_passfile(passfile)
        try:
            with distribution(admin, passfile) as distributing:
                _distribute(distributing, output, dry_run=dry_run)
        except CannotDistribute as error:
            raise Failure(str(error)) from None
        except NotCommitted:
            raise Failure(
                "a node of the cluster did not confirm the commit, so it may still lack the tables",
                "start the node, wait until Citus has recovered its transactions, and run the command again",
            ) from None


def _distribute(distributing: Distribution, output: Output, *, dry_run: bool) -> None:
    tables = distributing.tables()
    passwords: Mapping[str, str] = {}
    if tables:
        distributing.require_ready()
        passwords = distributing.passwords()
    rows = [{"table": table, "rows": distributing.count_rows(table)} for table in tables]
    if dry_run:
        output.rows(rows, _COLUMNS)
        print_note("Nothing was changed.")
        return
    if tables:
        _take(distributing.run(tables, passwords), len(tables))
    done = distributing.finish()
    output.rows(rows, _COLUMNS)
    print_note("The database is distributed." if tables or done else "Nothing to do: the database is distributed.")


def _take(steps: Iterator[Step], tables: int) -> None:
    """Take the steps, two for each table: it is locked, and distributed. A terminal shows each as it begins."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=2 * tables)
        for step in steps:
            progress.update(task, advance=1, description=f"{step.verb} {step.table}")
