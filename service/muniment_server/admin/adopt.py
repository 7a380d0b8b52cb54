"""`muniment database`."""

from __future__ import annotations

import click

from muniment.cli.content import confirm
from muniment.cli.failures import Failure
from muniment.cli.groups import Group
from muniment.cli.output import Output, print_note, with_output
from muniment_server.admin.connection import connect_operator
from muniment_server.admin.database import existing_database, with_database
from muniment_server.admin.sessions import end_what_is_open
from muniment_server.postgres.epochs import EpochGuard
from muniment_server.postgres.pool import epoch_of
from muniment_server.runtime.configuration import DatabaseConfig


@click.group(cls=Group)
def database() -> None:
    """Say which database server `muniment serve` may use.

    \b
    Examples:
      muniment database adopt
    """


@database.command
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@with_database()
@with_output
def adopt(output: Output, config: DatabaseConfig, yes: bool) -> None:
    """Use this database server from now on.

    The command closes all open sessions in it, and rejects all open releases.

    `muniment serve` refuses a database server on a lower timeline than it has seen, or of another system, because it
    may lack raises of taint. On a cluster, this applies to each node. This command lifts the refusal. Run it
    after a restore by other means than `muniment restore`, too: a backup lacks the raises made after it, which the
    server cannot notice. If several servers use the database, run it for the state directory of each. Run it as the
    user that the server runs as.

    Conversations keep the level that this database has, and none is trusted. Hosts must open the new sessions at the
    level that the model has seen.

    \b
    Examples:
      muniment database adopt --database-url postgresql://postgres@db.example/muniment --state-dir /var/lib/muniment
    """
    with existing_database(config, overtaken_too=True) as admin, connect_operator(admin) as operator:
        if config.epoch_directory is None:
            raise Failure("the state directory is missing", "give the --state-dir that `muniment serve` uses")
        epoch = epoch_of(operator.connection)
        print_note(f"System {epoch.system} on timeline {epoch.timeline} will be used from now on.")
        for group, node in epoch.nodes.items():
            print_note(f"So will the node of group {group}: system {node.system} on timeline {node.timeline}.")
        print_note("All open sessions of all tenants will be closed, and all open releases rejected.")
        if not yes:
            confirm("Adopt it?")
        # Sessions first: the server refuses the database until all are closed.
        closed, rejected = end_what_is_open(operator, "database adopt")
        EpochGuard(config.epoch_directory).adopt(epoch)
    row = {"system": epoch.system, "timeline": epoch.timeline, "closed_sessions": closed, "rejected_releases": rejected}
    output.record(row, tuple(row))
