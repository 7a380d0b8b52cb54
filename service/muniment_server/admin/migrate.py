"""`muniment migrate`."""

from __future__ import annotations

from pathlib import Path

import click

from muniment.cli.output import print_note
from muniment_server.admin.database import (
    data_dir_option,
    database_url_option,
    embedded_database,
    passfile_option,
    report_database_errors,
    require_newest_server,
    state_dir_option,
)
from muniment_server.runtime import schema
from muniment_server.runtime.configuration import DatabaseConfig
from muniment_server.runtime.passfile import migrate_with_passfile


@click.command
@database_url_option
@passfile_option
@click.option("--rotate", is_flag=True, help="Give the serving roles new passwords.")
@data_dir_option
@state_dir_option
def migrate(
    database_url: str | None, passfile: Path | None, rotate: bool, data_dir: Path, state_dir: Path | None
) -> None:
    """Prepare a database: roles, schema, grants. A second run changes nothing.

    The URL must name an administrator. The passwords of the serving roles are written to --passfile, for the server.
    Without a URL, the command prepares the built-in database, as `muniment serve` does, too.

    \b
    Examples:
      muniment migrate --database-url postgresql://postgres@db.example/muniment --passfile /etc/muniment/passfile
      muniment migrate --database-url postgresql://postgres@db.example/muniment --passfile passfile --rotate
      muniment migrate --data-dir .muniment
    """
    if rotate and (database_url is None or passfile is None):
        raise click.UsageError(
            "--rotate requires --database-url and --passfile: the built-in database has no passwords"
        )
    if passfile is not None and database_url is None:
        raise click.UsageError("--passfile requires --database-url: the built-in database has no passwords")
    with report_database_errors():
        done = _migrate(DatabaseConfig(data_dir, database_url, passfile, state_dir), rotate=rotate)
    for step in done:
        click.echo(step)
    print_note("The database is ready." if done else "Nothing to do: the database is ready.")


def _migrate(config: DatabaseConfig, *, rotate: bool) -> list[str]:
    if config.url is None:
        with embedded_database(config.data_dir) as admin:
            require_newest_server(admin, config)
            return schema.migrate(admin)
    require_newest_server(config.url, config)
    if config.passfile is None:
        return schema.migrate(config.url)
    return migrate_with_passfile(config.url, config.passfile, rotate=rotate)
