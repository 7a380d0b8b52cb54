"""`muniment history`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

import click

from muniment.cli.failures import Discreet, Failure
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import TEXT
from muniment_server.admin.connection import Operator
from muniment_server.admin.database import with_operator
from muniment_server.domain.classification import Label
from muniment_server.domain.errors import InvalidArgument
from muniment_server.domain.ids import ItemId, SessionId
from muniment_server.domain.items import ItemKind
from muniment_server.items.wire import NAME_OF

KINDS = {kind.name.lower(): kind for kind in ItemKind}
"""The kinds of items by the names of the option --kind."""
_COLUMNS = ("classification", "revision", "update_time", "is_live", "delete_time", "session_id", "tags", "content")


@click.command(cls=Discreet)
@click.option("--tenant", required=True, type=TEXT, help="The tenant of the agent.")
@click.option("--agent", required=True, type=TEXT, metavar="NAME", help="The agent whose item it is.")
@click.option(
    "--kind", type=click.Choice(list(KINDS)), default="memory", show_default=True, help="The kind of the item."
)
@click.argument("name", type=TEXT)
@with_output
@with_operator
def history(operator: Operator, output: Output, tenant: str, agent: str, kind: str, name: str) -> None:
    """Show every version of one item, at every level, with its content.

    NAME is the key of a memory, the label of a block, or the id of a note or passage.

    Deleted and overwritten versions are included until they are purged. The command writes an audit row at each level
    that it shows.

    Columns in a pipe: classification, revision, update_time, is_live, delete_time, session_id, tags, content.

    \b
    Examples:
      muniment history --tenant acme --agent alice plan
      muniment history --tenant acme --agent alice plan --json
      muniment history --tenant acme --agent alice --kind block personality
    """
    revisions = revisions_of(operator, tenant=tenant, agent_id=agent, kind=KINDS[kind], name=stored_name(kind, name))
    if not revisions:
        raise Failure(f"there is no version of that {kind}", "names are case-sensitive; purged versions are gone")
    output.rows(map(asdict, revisions), _COLUMNS)
    print_note("This command was written to the audit log, at each level shown.")


def stored_name(kind: str, name: str) -> str:
    """The stored name of an item, from the one that an operator gives. Raises Failure."""
    try:
        return NAME_OF[KINDS[kind]](name)
    except InvalidArgument as error:
        raise Failure(f"the name {error.violations[0].rule}") from None
    except ValueError:
        raise Failure(f"the id of a {kind} is a UUID", f"list the ids: muniment {kind} list") from None


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of an item, as it was written."""

    classification: Label
    item_id: ItemId
    revision: int
    update_time: datetime
    expire_time: datetime | None
    content: str
    tags: list[str]
    session_id: SessionId | None
    """The session that wrote it."""
    is_live: bool
    delete_time: datetime | None
    """When the item was deleted."""


def revisions_of(operator: Operator, *, tenant: str, agent_id: str, kind: ItemKind, name: str) -> list[Revision]:
    """Every version of one name at every level, oldest first. Writes an audit row for each level it shows."""
    agent = operator.agent(tenant, agent_id)
    return operator.rows("history", Revision, tenant=agent.tenant, agent=agent.agent, kind=kind, name=name)
