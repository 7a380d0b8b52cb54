"""`muniment doctor`."""

from __future__ import annotations

import sys

import click

from muniment_server.admin.checks import examine, report
from muniment_server.admin.database import with_database
from muniment_server.runtime.configuration import DatabaseConfig


@click.command
@with_database(passfile=True, servers=True)
@click.option("--deep", is_flag=True, help="Check every table and index, too, which reads the whole database.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for each finding.")
def doctor(config: DatabaseConfig, deep: bool, as_json: bool) -> None:
    """Check this machine and the database; print each problem and what to do. Exits with 1 if there are problems.

    ✓ is as it must be, ! is worth knowing, ✗ is a problem. With --json, the verdict is GOOD, WORTH_KNOWING or BAD.

    Changes nothing. Starts a built-in database for the check if it is not running. With --database-url, the serving
    roles log in with the passwords in --passfile; the ledgers are checked only if the URL names an administrator.

    With --deep, Postgres's extension amcheck reads every table and index. That needs a superuser, or a database where
    one has created amcheck and allowed the administrator of the URL to run its functions.

    With --servers, it checks each database server, and that no two have the same tenant.

    \b
    Examples:
      muniment doctor
      muniment doctor --json
      muniment doctor --deep
      muniment doctor --data-dir /srv/muniment
      muniment doctor --servers /etc/muniment/servers.toml
      muniment doctor --database-url postgresql://postgres@db.example/muniment --passfile /etc/muniment/passfile
    """
    sys.exit(0 if report(examine(config, deep=deep), as_json=as_json) else 1)
