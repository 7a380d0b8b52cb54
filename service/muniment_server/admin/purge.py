"""`muniment purge`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click
from rich.console import Console
from rich.progress import track

from muniment.cli.content import confirm
from muniment.cli.failures import Failure
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import DURATION
from muniment_server.admin.database import with_operator
from muniment_server.admin.operator import Operator
from muniment_server.domain.classification import Classification

_SHORTEST = timedelta(days=30)


@click.command
@click.option("--older-than", required=True, type=DURATION, help="The minimum age, such as 90d or 52w.")
@click.option("--force", count=True, help="Given twice, allows less than 30 days.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@with_output
@with_operator
def purge(operator: Operator, output: Output, older_than: timedelta, force: int, yes: bool) -> None:
    """Permanently remove versions that were deleted, overwritten or expired that long ago, at all levels.

    Live items and audit rows stay.

    \b
    Examples:
      muniment purge --older-than 90d
      muniment purge --older-than 1h --force --force --yes
    """
    if older_than < _SHORTEST and force < 2:
        raise Failure("versions are kept for at least 30 days", "choose a longer time, or give --force twice")
    if warnings := operator.clock_warnings():
        raise Failure("versions are removed by their age, and the time is in doubt", warnings[0])
    before = datetime.now(UTC) - older_than
    print_note(
        f"Versions deleted, overwritten or expired before {before:%Y-%m-%d %H:%M}Z will be removed, at all levels."
    )
    print_note("Live items and audit rows stay.")
    if not yes:
        confirm("Remove them?")
    console = Console(stderr=True)
    levels = track(
        operator.purge(before=before),
        "Purging",
        total=len(Classification),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    output.rows(map(asdict, list(levels)), ("classification", "items", "revisions"))
