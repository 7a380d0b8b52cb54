"""`muniment doctor`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from muniment.cli.failures import report_file_errors
from muniment_server.admin.checks import examine, report
from muniment_server.admin.database import (
    data_dir_option,
    database_url_option,
    passfile_option,
    state_dir_option,
)
from muniment_server.runtime.configuration import DatabaseConfig


@click.command
@data_dir_option
@database_url_option
@passfile_option
@state_dir_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for each finding.")
def doctor(
    data_dir: Path, database_url: str | None, passfile: Path | None, state_dir: Path | None, as_json: bool
) -> None:
    """Check this machine and the database; print each problem and what to do. Exits with 1 if there are problems.

    ✓ is as it must be, ! is worth knowing, ✗ is a problem. With --json, the verdict is GOOD, WORTH_KNOWING or BAD.

    Changes nothing. Starts a built-in database for the check if it is not running. With --database-url, the serving
    roles log in with the passwords in --passfile; the ledgers are checked only if the URL names an administrator.

    \b
    Examples:
      muniment doctor
      muniment doctor --json
      muniment doctor --data-dir /srv/muniment
      muniment doctor --database-url postgresql://postgres@db.example/muniment --passfile /etc/muniment/passfile
    """
    with report_file_errors():
        healthy = report(examine(DatabaseConfig(data_dir, database_url, passfile, state_dir)), as_json=as_json)
    sys.exit(0 if healthy else 1)
