"""`muniment migrate`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from muniment.cli.output import print_note
from muniment_server.admin.database import (
    OperatorsServers,
    data_dir_option,
    database_url_option,
    operator_of,
    passfile_option,
    report_database_errors,
    require_newest_server,
    servers_of,
    servers_option,
    state_dir_option,
)
from muniment_server.postgres.pool import next_passfile
from muniment_server.runtime import claims, databases, schema
from muniment_server.runtime import passfile as passfiles
from muniment_server.runtime.configuration import DatabaseConfig


@click.command
@database_url_option
@passfile_option
@click.option("--prepare-rotation", is_flag=True, help="Write the coming passwords to FILE.next, for --rotate.")
@click.option("--rotate", is_flag=True, help="Give the serving roles new passwords: those of FILE.next, if it exists.")
@servers_option
@data_dir_option
@state_dir_option
def migrate(
    database_url: str | None,
    passfile: Path | None,
    prepare_rotation: bool,
    rotate: bool,
    servers_file: Path | None,
    data_dir: Path,
    state_dir: Path | None,
) -> None:
    """Prepare a database: roles, schema, grants. A second run changes nothing.

    The URL must name an administrator. The passwords of the serving roles are written to --passfile, for the server.
    Without a URL, the command prepares the built-in database, as `muniment serve` does, too.

    To rotate the passwords of servers on several machines, prepare the rotation, copy FILE.next to a place beside the
    passfile of each server, and rotate. The old passwords are good until then, and the servers find the new ones.

    With --servers, the command prepares each database server, with the passfile in its URL, and gives it a range of
    numbers for new tenants that no other has.

    \b
    Examples:
      muniment migrate --database-url postgresql://postgres@db.example/muniment --passfile /etc/muniment/passfile
      muniment migrate --servers /etc/muniment/servers.toml
      muniment migrate --database-url postgresql://postgres@db.example/muniment --passfile passfile --prepare-rotation
      muniment migrate --database-url postgresql://postgres@db.example/muniment --passfile passfile --rotate
      muniment migrate --data-dir .muniment
    """
    _check_options(database_url, passfile, prepare_rotation=prepare_rotation, rotate=rotate)
    config = DatabaseConfig(data_dir, database_url, passfile, state_dir)
    with report_database_errors():
        if servers_file is not None:
            if passfile is not None or rotate or prepare_rotation:
                raise click.UsageError(
                    "--servers excludes --passfile, --rotate and --prepare-rotation: a passfile stands in the URL of "
                    "its server, and passwords are rotated server by server, with --database-url"
                )
            _migrate_all(servers_of(servers_file, data_dir=data_dir, database_url=database_url, state_dir=state_dir))
            return
        if prepare_rotation and database_url is not None and passfile is not None:
            _prepare_rotation(config, database_url, passfile)
            return
        done = _migrate(config, rotate=rotate)
    for step in done:
        click.echo(step)
    print_note("The database is ready." if done else "Nothing to do: the database is ready.")


def _migrate_all(servers: OperatorsServers) -> None:
    """Migrate each server, and then settle which numbers new tenants get."""
    done = [f"{name}: {step}" for name in servers.names for step in _migrate(servers.config(name), rotate=False)]
    with ExitStack() as stack:
        connections = {
            name: stack.enter_context(operator_of(servers.config(name))).connection for name in servers.names
        }
        done += claims.settle(connections)
    for step in done:
        click.echo(step)
    print_note("The databases are ready." if done else "Nothing to do: the databases are ready.")


def _check_options(database_url: str | None, passfile: Path | None, *, prepare_rotation: bool, rotate: bool) -> None:
    if prepare_rotation and rotate:
        raise click.UsageError("--prepare-rotation and --rotate exclude each other: prepare first, and rotate then")
    for option, given in (("--prepare-rotation", prepare_rotation), ("--rotate", rotate)):
        if given and (database_url is None or passfile is None):
            raise click.UsageError(
                f"{option} requires --database-url and --passfile: the built-in database has no passwords"
            )
    if passfile is not None and database_url is None:
        raise click.UsageError("--passfile requires --database-url: the built-in database has no passwords")


def _prepare_rotation(config: DatabaseConfig, admin: str, passfile: Path) -> None:
    require_newest_server(admin, config)
    done = passfiles.prepare_rotation(admin, passfile)
    for step in done:
        click.echo(step)
    coming = next_passfile(passfile)
    print_note(
        f"{'' if done else 'Nothing to do: '}{coming} has the coming passwords. "
        "Copy it to each server, beside its passfile. Then run this command with --rotate."
    )


def _migrate(config: DatabaseConfig, *, rotate: bool) -> list[str]:
    if config.url is None:
        with databases.embedded_database(config.data_dir) as admin:
            require_newest_server(admin, config)
            databases.require_restored(admin)
            return schema.migrate(admin)
    require_newest_server(config.url, config)
    databases.require_restored(config.url)
    return passfiles.migrate_with_passfile(config.url, config.passfile, rotate=rotate)
