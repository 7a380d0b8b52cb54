"""`muniment distribute`."""

from __future__ import annotations

from collections.abc import Mapping

import click
from rich.console import Console

from muniment.cli.failures import Failure
from muniment.cli.output import Output, print_note, with_output
from muniment_server.admin.database import existing_database, require_passfile, with_database
from muniment_server.engines.citus.distributing import CannotDistribute, Distribution, distribution
from muniment_server.postgres.pool import NotCommitted
from muniment_server.runtime.configuration import DatabaseConfig

_COLUMNS = ("table", "rows")


@click.command
@with_database(passfile=True)
@click.option("--dry-run", is_flag=True, help="Change nothing; only print how many rows would move.")
@with_output
def distribute(output: Output, config: DatabaseConfig, dry_run: bool) -> None:
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
    with existing_database(config) as admin:
        if config.passfile is not None:
            require_passfile(config.passfile)
        try:
            with distribution(admin, config.passfile) as distributing:
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
        with Console(stderr=True).status("Distributing…") as status:
            for number, step in enumerate(distributing.run(tables, passwords), 1):
                status.update(f"{number} of {2 * len(tables)}: {step.verb} {step.table}")
    done = distributing.finish()
    output.rows(rows, _COLUMNS)
    print_note("The database is distributed." if tables or done else "Nothing to do: the database is distributed.")
