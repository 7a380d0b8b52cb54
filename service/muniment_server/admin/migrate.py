"""`muniment migrate`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from muniment.cli.output import print_note
from muniment_server.admin.database import operator_of, require_newest_server, servers_of, with_database
from muniment_server.postgres.pool import next_passfile
from muniment_server.runtime import claims, databases, schema
from muniment_server.runtime import passfile as passfiles
from muniment_server.runtime.configuration import DatabaseConfig


@click.command
@with_database(passfile=True, servers=True)
@click.option("--prepare-rotation", is_flag=True, help="Write the coming passwords to FILE.next, for --rotate.")
@click.option("--rotate", is_flag=True, help="Give the serving roles new passwords: those of FILE.next, if it exists.")
def migrate(config: DatabaseConfig, prepare_rotation: bool, rotate: bool) -> None:
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
    _check_options(config, prepare_rotation=prepare_rotation, rotate=rotate)
    if prepare_rotation and config.url is not None and config.passfile is not None:
        _prepare_rotation(config, config.url, config.passfile)
        return
    done = _migrate_all(config) if config.servers_file is not None else _migrate(config, rotate=rotate)
    for step in done:
        click.echo(step)
    ready = "the database is ready" if config.servers_file is None else "the databases are ready"
    print_note(f"{ready.capitalize()}." if done else f"Nothing to do: {ready}.")


def _migrate_all(config: DatabaseConfig) -> list[str]:
    """Migrate each server, and then settle which numbers new tenants get."""
    servers = servers_of(config)
    done = [f"{name}: {step}" for name, server in servers.items() for step in _migrate(server, rotate=False)]
    with ExitStack() as stack:
        connections = {name: stack.enter_context(operator_of(server)).connection for name, server in servers.items()}
        return [*done, *claims.settle(connections)]


def _check_options(config: DatabaseConfig, *, prepare_rotation: bool, rotate: bool) -> None:
    if prepare_rotation and rotate:
        raise click.UsageError("--prepare-rotation and --rotate exclude each other: prepare first, and rotate then")
    if config.servers_file is not None and (config.passfile is not None or rotate or prepare_rotation):
        raise click.UsageError(
            "--servers excludes --passfile, --rotate and --prepare-rotation: a passfile stands in the URL of "
            "its server, and passwords are rotated server by server, with --database-url"
        )
    if (rotate or prepare_rotation) and (config.url is None or config.passfile is None):
        option = "--rotate" if rotate else "--prepare-rotation"
        raise click.UsageError(
            f"{option} requires --database-url and --passfile: the built-in database has no passwords"
        )
    if config.passfile is not None and config.url is None:
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
