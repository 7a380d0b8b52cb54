"""`muniment doctor`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from muniment.cli.failures import report_file_errors
from muniment_server.admin.checks import examine
from muniment_server.admin.database import data_dir_option, database_url_option, passfile_option
from muniment_server.runtime.configuration import DatabaseConfig


@click.command
@data_dir_option
@database_url_option
@passfile_option
def doctor(data_dir: Path, database_url: str | None, passfile: Path | None) -> None:
    """Look at this machine and the database, and say what is wrong and what to do. Exit status 1 if something is.

    Nothing is changed; a built-in database that does not run is started for the check. With --database-url the
    serving roles log in by --passfile; name an administrator in the URL to have the ledgers looked at, too.

    \b
    Examples:
      muniment doctor
      muniment doctor --data-dir /srv/muniment
      muniment doctor --database-url postgresql://postgres@db.example/muniment --passfile /etc/muniment/passfile
    """
    healthy = True
    with report_file_errors():
        for finding in examine(DatabaseConfig(data_dir, database_url, passfile)):
            click.secho(str(finding), fg=None if finding.good else "red")
            healthy = healthy and finding.good
    sys.exit(0 if healthy else 1)
