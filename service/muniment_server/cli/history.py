"""`muniment history`."""

from __future__ import annotations

from dataclasses import asdict

import click

from muniment_server.cli.database import with_operator
from muniment_server.cli.failures import Discreet, Failure
from muniment_server.cli.output import Output, note, with_output
from muniment_server.cli.parameters import TEXT
from muniment_server.domain import text
from muniment_server.domain.errors import InvalidArgument
from muniment_server.domain.records import ItemKind
from muniment_server.store.operator import NoSuchAgent, Operator

_COLUMNS = ("classification", "revision", "update_time", "is_live", "delete_time", "session_id", "tags", "content")


@click.command(cls=Discreet)
@click.option("--tenant", required=True, type=TEXT, help="Whose.")
@click.option("--agent", required=True, type=TEXT, metavar="NAME", help="Which agent's.")
@click.argument("key", type=TEXT)
@with_output
@with_operator
def history(operator: Operator, output: Output, tenant: str, agent: str, key: str) -> None:
    """Show every version of one memory, at every level, with its content.

    Deleted and overwritten ones, too, until they are purged. The look itself is written to the audit log, at each
    level that is shown.

    \b
    Examples:
      muniment history --tenant acme --agent alice plan
      muniment history --tenant acme --agent alice plan --json
    """
    try:
        revisions = operator.history(tenant=tenant, agent_id=agent, kind=ItemKind.MEMORY, name=text.key(key))
    except NoSuchAgent:
        raise Failure("the tenant has no such agent", "see the tenants: muniment host-key list") from None
    except InvalidArgument as error:
        raise Failure(f"the key {error.violations[0].rule}") from None
    if not revisions:
        raise Failure("there is no version of that key", "keys are case-sensitive; purged versions are gone")
    output.rows(map(asdict, revisions), _COLUMNS)
    note("This look is in the audit log, at each level shown.")
