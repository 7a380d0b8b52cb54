"""`muniment tenant`."""

from __future__ import annotations

import time
from dataclasses import asdict

import click

from muniment.cli.groups import Group
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import TEXT
from muniment_server.admin.database import with_operator
from muniment_server.admin.operator import Operator

_UNDER_WAY_SECONDS = 2.0
"""How long calls that were accepted before a freeze may take to open a session."""
_LIMIT = click.IntRange(-1, 2**63 - 1)


@click.group(cls=Group)
def tenant() -> None:
    """Limit what the agents of a tenant may take, or cut it off, for a while or for the sessions that are open now.

    \b
    Examples:
      muniment tenant limits acme --max-agents 500 --max-bytes 2199023255552
      muniment tenant freeze acme
      muniment tenant close-sessions acme --agent alice
    """


@tenant.command
@click.argument("name", metavar="TENANT", type=TEXT)
@with_output
@with_operator
def freeze(operator: Operator, output: Output, name: str) -> None:
    """Cut a tenant off until `thaw`.

    The command refuses all host keys of the tenant from now on, and closes its sessions. Nothing is deleted.

    Callers get UNAUTHENTICATED, as with a revoked key. `muniment tenant thaw` ends it; sessions stay closed. A key that
    is created meanwhile is not frozen.

    \b
    Examples:
      muniment tenant freeze acme
    """
    keys = operator.freeze_host_keys(name)
    closed = operator.close_sessions("tenant freeze", tenant=name)
    time.sleep(_UNDER_WAY_SECONDS)
    closed += operator.close_sessions("tenant freeze", tenant=name)
    row = {"tenant": name, "frozen_keys": keys, "closed_sessions": closed}
    output.record(row, tuple(row))


@tenant.command
@click.argument("name", metavar="TENANT", type=TEXT)
@with_output
@with_operator
def thaw(operator: Operator, output: Output, name: str) -> None:
    """Accept the host keys of a tenant again.

    \b
    Examples:
      muniment tenant thaw acme
    """
    row = {"tenant": name, "thawed_keys": operator.thaw_host_keys(name)}
    output.record(row, tuple(row))


@tenant.command("close-sessions")
@click.argument("name", metavar="TENANT", type=TEXT)
@click.option("--agent", type=TEXT, metavar="NAME", help="Only the sessions of this agent.")
@with_output
@with_operator
def close_sessions(operator: Operator, output: Output, name: str, agent: str | None) -> None:
    """Close all open sessions of a tenant, at every level. Its hosts may open new ones.

    \b
    Examples:
      muniment tenant close-sessions acme
      muniment tenant close-sessions acme --agent alice
    """
    closed = operator.close_sessions("tenant close-sessions", tenant=name, agent_id=agent)
    row = {"tenant": name, "closed_sessions": closed}
    output.record(row, tuple(row))
    print_note("Their next calls fail.")


@tenant.command
@click.argument("name", metavar="TENANT", type=TEXT)
@click.option("--max-agents", type=_LIMIT, help="How many agents it may have.")
@click.option("--calls-per-second", type=_LIMIT, help="The calls a second that its agents may be given together.")
@click.option("--max-items", type=_LIMIT, help="The items that its agents may be given together.")
@click.option("--max-bytes", type=_LIMIT, help="The bytes that its agents may be given together.")
@with_output
@with_operator
def limits(operator: Operator, output: Output, name: str, **given: int | None) -> None:
    """Show a tenant's limits, after setting those given.

    They bound what its hosts may give to its agents together by CreateAgent and UpdateAgent, and refuse no session. An
    agent's limit holds for each of the four levels, and counts here once; without one, the default counts: 2,000 calls
    a second, 1,000,000 items, 4 GiB. What agents already have stays, even if it is more. Nor do they bound what is
    stored: an agent keeps what it has stored when a host lowers its limits and gives the rest to another. -1 removes a
    limit.

    \b
    Examples:
      muniment tenant limits acme
      muniment tenant limits acme --max-agents 500 --max-bytes 2199023255552
      muniment tenant limits acme --max-agents -1
    """
    if any(limit is not None for limit in given.values()):
        operator.limit_tenant(name, given)
    row = asdict(operator.tenant_limits(name))
    output.record(row, tuple(row))
