"""`muniment reindex`."""

from __future__ import annotations

import click
from rich.console import Console

from muniment.cli.failures import Failure
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import TEXT
from muniment_server.admin.database import with_operator
from muniment_server.admin.operator import NoSuchAgent, Operator


@click.command
@click.option("--tenant", type=TEXT, help="Only the agents of this tenant.")
@click.option("--agent", type=TEXT, metavar="NAME", help="Only this agent. Requires --tenant.")
@with_output
@with_operator
def reindex(operator: Operator, output: Output, tenant: str | None, agent: str | None) -> None:
    """Rebuild the search index at every level, of all agents, the agents of a tenant, or one agent.

    Also counts again what the agents store, which their limits bound. Run it after the language of an agent has
    changed, and when `muniment doctor` says so.

    Embeddings are discarded, too. A running server makes them again; until then, only words find an item. Searches
    continue during the rebuild. A write to an item that is being indexed, or to the turn after it, waits for up to 5
    seconds and then fails.

    \b
    Examples:
      muniment reindex --tenant acme --agent alice
      muniment reindex --json
    """
    if agent is not None and tenant is None:
        raise Failure("agents of two tenants may have the same name", "name the tenant with --tenant")
    rows = []
    with Console(stderr=True).status("Indexing") as status:
        for done in operator.reindex(tenant=tenant, agent_id=agent):
            status.update(f"Indexed {done.agent_id} at {done.classification.name}")
            rows.append({"agent_id": done.agent_id, "classification": done.classification, "items": done.items})
    if not rows and agent is not None:
        raise NoSuchAgent
    if not rows and tenant is not None:
        raise Failure("there is no such tenant, or it has no agents", "list the tenants: muniment host-key list")
    output.rows([row for row in rows if row["items"]], ("agent_id", "classification", "items"))
    print_note("A running server makes the embeddings again: until then, only words find these items.")
