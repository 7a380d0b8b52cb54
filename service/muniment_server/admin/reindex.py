"""`muniment reindex`."""

from __future__ import annotations

import click
from rich.console import Console

from muniment.cli.failures import Failure
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import TEXT
from muniment_server.admin.database import with_operator
from muniment_server.admin.operator import Operator


@click.command
@click.option("--tenant", type=TEXT, help="Of this tenant only.")
@click.option("--agent", type=TEXT, metavar="NAME", help="Of this agent only. Needs --tenant.")
@with_output
@with_operator
def reindex(operator: Operator, output: Output, tenant: str | None, agent: str | None) -> None:
    """Rebuild the search index, at every level: of all agents, of a tenant's, or of one.

    Needed after the language of an agent was changed, for what was written before; and where `muniment doctor` says
    so: search does not know items as they are, or their vectors were made by another version.

    All vectors are thrown away, too, and made anew by the server, while it runs: until then an item is found by its
    words alone. Searches go on meanwhile; who writes an item that is being indexed, or the turn after it, waits, or
    is refused after 5 seconds.

    \b
    Examples:
      muniment reindex --tenant acme --agent alice
      muniment reindex --json
    """
    if agent is not None and tenant is None:
        raise Failure("agents of two tenants may have one name", "say whose it is: --tenant")
    rows = []
    with Console(stderr=True).status("Indexing") as status:
        for done in operator.reindex(tenant=tenant, agent_id=agent):
            status.update(f"Indexed {done.agent_id} at {done.classification.name}")
            rows.append({"agent_id": done.agent_id, "classification": done.classification, "items": done.items})
    if not rows and agent is not None:
        raise Failure("that tenant has no such agent", "see its agents: muniment agent list")
    if not rows and tenant is not None:
        raise Failure("there is no such tenant, or it has no agents", "see the tenants: muniment host-key list")
    output.rows([row for row in rows if row["items"]], ("agent_id", "classification", "items"))
    print_note("Vectors are made anew by the server: until then, these items are found by their words alone.")
