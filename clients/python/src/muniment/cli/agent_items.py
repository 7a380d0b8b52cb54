"""`muniment agent erase` and `muniment agent undelete`."""

from __future__ import annotations

import click

import muniment
from muniment import Classification, HostClient, ItemKind
from muniment.cli.connect import with_hint, with_host
from muniment.cli.content import confirm
from muniment.cli.failures import Discreet, Incomplete
from muniment.cli.output import print_note
from muniment.cli.parameters import LEVEL, TEXT

_NOT_DELETED_THERE = (
    muniment.MemoryNotFound,
    muniment.NoteNotFound,
    muniment.BlockNotFound,
    muniment.PassageNotFound,
)
_SEE_WHAT_THERE_IS = (
    "check --kind, --name and --level: each level has its own. An operator sees what was deleted at which level: "
    "muniment history --tenant TENANT --agent AGENT --kind {kind} NAME"
)
_KINDS = {kind.name.lower(): kind for kind in ItemKind}


@click.command(cls=Discreet)
@click.argument("agent_id", metavar="[NAME]", required=False, type=TEXT)
@click.option("--every-agent", is_flag=True, help="In place of NAME, with --tag: memories and passages of all agents.")
@click.option("--kind", type=click.Choice(list(_KINDS)), help="The kind of items. The default is memory.")
@click.option("--name", type=TEXT, help="The key of a memory, the id of a note or passage, the label of a block.")
@click.option("--tag", type=TEXT, help="A tag that the items have, or had in any revision.")
@click.option(
    "--item",
    "item_id",
    metavar="ID",
    type=TEXT,
    help="The id of an item: `muniment history … --json` and `muniment audit list … --json` show it.",
)
@click.option("--revision", type=int, help="With --item: the revision to erase. The others stay.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_host
def erase(
    host: HostClient,
    agent_id: str | None,
    every_agent: bool,
    kind: str | None,
    name: str | None,
    tag: str | None,
    item_id: str | None,
    revision: int | None,
    yes: bool,
) -> None:
    """Erase items for good.

    They are erased with all their revisions, at every level.

    Give one of --name, --tag, and --item with --revision. The command says the same whether or not there was anything
    to erase. Audit rows stay. With --every-agent, it exits with 3 if agents were left out, because they are held or
    their ceiling is above that of the key, and says how many; it does not count those that the key does not know.

    \b
    Examples:
      muniment agent erase alice --name plan --yes
      muniment agent erase alice --kind passage --tag customer:17
      muniment agent erase --every-agent --tag subject:alice@example.com
      muniment agent erase alice --item 0b9c6b0e-6f0c-4f0a-9d0e-1c6c1f0a2b3d --revision 2
    """
    if [name, tag, item_id].count(None) != 2 or (item_id is None) != (revision is None):
        raise click.UsageError("give one of --name, --tag, and --item with --revision")
    if (agent_id is None) != every_agent or (every_agent and (tag is None or kind is not None)):
        raise click.UsageError("give NAME, or --every-agent with --tag and without --kind")
    if not yes:
        confirm("Erase that, with all its revisions?" if item_id is None else "Erase that revision?")
    if agent_id is None:
        skipped = host.erase_of_every_agent(tag or "")
        if skipped.count:
            raise Incomplete(
                "erased, but agents were left out, because they are held or their ceiling is above that of the key: "
                f"{skipped.count}, such as {', '.join(skipped.agent_ids[:3])}",
                "erase again when the holds have ended (muniment hold list), with a key that reaches the ceilings",
            )
    else:
        one_kind = _KINDS[kind or "memory"]
        host.erase_items(agent_id, one_kind, name=name, tag=tag, item_id=item_id, revision=revision or 0)
    print_note("Erased.")


@click.command(cls=Discreet)
@click.argument("agent_id", metavar="NAME", type=TEXT)
@click.option("--kind", type=click.Choice(list(_KINDS)), default="memory", show_default=True, help="The kind of item.")
@click.option(
    "--name",
    type=TEXT,
    required=True,
    help="The key of a memory, the id of a note or passage, the label of a block.",
)
@click.option("--level", type=LEVEL, required=True, help="The level at which it was deleted.")
@with_host
def undelete(host: HostClient, agent_id: str, kind: str, name: str, level: Classification) -> None:
    """Bring a deleted item back.

    The item that was deleted last under the name comes back at its level, with its content and tags, unless another
    one has been saved there since. What was erased, was purged or has expired does not come back.

    \b
    Examples:
      muniment agent undelete alice --name plan --level internal
    """
    with with_hint(_SEE_WHAT_THERE_IS.format(kind=kind), *_NOT_DELETED_THERE):
        host.undelete_item(agent_id, _KINDS[kind], name, level)
    print_note("Undeleted.")
