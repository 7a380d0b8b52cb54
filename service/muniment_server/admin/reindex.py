"""`muniment reindex`."""

from __future__ import annotations

import click
from rich.console import Console

from muniment.cli.failures import Failure
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import TEXT
from muniment_server.admin.connection import NoSuchAgent, Operator
from muniment_server.admin.database import with_operator
from muniment_server.admin.embedder_options import with_embedder
from muniment_server.domain.classification import Label
from muniment_server.embedder.remote.configuration import RemoteConfig
from muniment_server.embedder.remote.reindexing import ReindexingError, embed_stored
from muniment_server.search import reindex as index


@click.command
@click.option("--tenant", type=TEXT, help="Only the agents of this tenant.")
@click.option("--agent", type=TEXT, metavar="NAME", help="Only this agent. Requires --tenant.")
@click.option(
    "--embeddings",
    is_flag=True,
    help="Rebuild nothing, but embed what is stored with the model at --embedder, before a server uses it.",
)
@click.option(
    "--remove-others",
    is_flag=True,
    help="Then remove the embeddings by other models at an address, and those above the ceiling. With --embeddings.",
)
@with_embedder
@with_output
@with_operator
def reindex(
    operator: Operator,
    output: Output,
    tenant: str | None,
    agent: str | None,
    remote: RemoteConfig | None,
    *,
    embeddings: bool,
    remove_others: bool,
) -> None:
    """Rebuild the search index at every level, of all agents, the agents of a tenant, or one agent.

    Also counts again what the agents store, which their limits bound. Run it after the language of an agent has
    changed, and when `muniment doctor` says so.

    Embeddings are discarded, too. A running server makes them again; until then, only words find an item. Searches
    continue during the rebuild. A write to an item that is being indexed, or to the turn after it, waits for up to 5
    seconds and then fails.

    With --embeddings, nothing is discarded: the model at --embedder embeds what it has not embedded yet, the lowest
    level first, while servers go on to search with the model that they have. Run again, it goes on where it ended.

    \b
    Examples:
      muniment reindex --tenant acme --agent alice
      muniment reindex --json
      muniment reindex --embeddings --embedder http://127.0.0.1:11434/v1 --embedder-model bge-m3
    """
    if agent is not None and tenant is None:
        raise Failure("agents of two tenants may have the same name", "name the tenant with --tenant")
    if embeddings != (remote is not None) or (remove_others and not embeddings):
        raise Failure("--embeddings and --embedder require each other, and --remove-others requires both")
    if remote is not None:
        if tenant is not None:
            raise Failure("--embeddings is for all agents: omit --tenant and --agent")
        _embed(operator, output, remote, removes_others=remove_others)
        return
    rows = []
    with Console(stderr=True).status("Indexing") as status:
        for done in index.reindex(operator.connection, tenant=tenant, agent_id=agent):
            status.update(f"Indexed {done.agent_id} at {done.classification.name}")
            rows.append({"agent_id": done.agent_id, "classification": done.classification, "items": done.items})
    if not rows and agent is not None:
        raise NoSuchAgent(f"{agent} of {tenant}")
    if not rows and tenant is not None:
        raise Failure("there is no such tenant, or it has no agents", "list the tenants: muniment host-key list")
    output.rows([row for row in rows if row["items"]], ("agent_id", "classification", "items"))
    print_note("A running server makes the embeddings again: until then, only words find these items.")


def _embed(operator: Operator, output: Output, remote: RemoteConfig, *, removes_others: bool) -> None:
    """Embed with *remote*, and print what was done at each level."""
    embedded: dict[Label, int] = {}
    removed: dict[Label, int] = {}
    with Console(stderr=True).status("Embedding") as status:
        try:
            for step in embed_stored(operator.conninfo, remote, removes_others=removes_others):
                if step.removed is None:
                    embedded[step.level] = step.embedded
                    status.update(f"Embedded {step.embedded:,} at {step.level.name}, {step.waiting:,} to go")
                else:
                    removed[step.level] = step.removed
                    status.update(f"Removed {step.removed:,} at {step.level.name}")
        except ReindexingError as error:
            raise Failure(str(error), "what is embedded stays: run the command again to go on") from None
    rows = [
        {"classification": level, "embedded": embedded.get(level, 0), "removed": removed.get(level, 0)}
        for level in Label
        if embedded.get(level) or removed.get(level) or (level in embedded and not level.is_trusted)
    ]
    output.rows(rows, ("classification", "embedded", "removed"))
    print_note("Restart the servers with these options, if they run without: they embed what was written meanwhile.")
