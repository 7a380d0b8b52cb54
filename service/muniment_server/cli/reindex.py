"""`muniment reindex`."""

from __future__ import annotations

import click
from rich.console import Console

from muniment_server.cli.database import with_operator
from muniment_server.cli.output import Output, with_output
from muniment_server.store.operator import Operator


@click.command
@with_output
@with_operator
def reindex(operator: Operator, output: Output) -> None:
    """Make anew what search finds, of every agent at every level.

    Needed after the language of an agent was changed, for what was written before. Searches go on meanwhile; who
    writes an item that is being indexed, or the turn after it, waits, or is refused after 5 seconds.

    \b
    Examples:
      muniment reindex
      muniment reindex --json
    """
    rows = []
    with Console(stderr=True).status("Indexing") as status:
        for level, agent_id, items in operator.reindex():
            status.update(f"Indexing {agent_id}")
            rows.append({"agent_id": agent_id, "classification": level, "items": items})
    output.rows([row for row in rows if row["items"]], ("agent_id", "classification", "items"))
