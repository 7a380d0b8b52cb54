"""`muniment tenant`."""

from __future__ import annotations

import time
from dataclasses import asdict

import click

from muniment.cli.failures import Failure
from muniment.cli.groups import Group
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import TEXT
from muniment_server.admin.database import with_operator
from muniment_server.admin.operator import NoSuchAgent, NoSuchTenant, Operator

_UNDER_WAY_SECONDS = 2.0
"""How long calls that were accepted before a freeze may take to open a session."""
_NO_TENANT = ("there is no such tenant", "list the tenants: muniment host-key list")

_LIMIT = click.IntRange(-1, 2**63 - 1)


@click.group(cls=Group)
def tenant() -> None:
    """Limit what the agents of a tenant may take, or cut it off, for a while or for the sessions that are open now.

    \b
    Examples:
      muniment tenant limits acme --max-agents 500 --max-bytes 100000000000
      muniment tenant freeze acme
      muniment tenant close-sessions acme --agent alice
    """


@tenant.command
@click.argument("name", metavar="TENANT", type=TEXT)
@with_output
@with_operator
def freeze(operator: Operator, output: Output, name: str) -> None:
    """Refuse all host keys of a tenant from now on, and close its sessions. Nothing is deleted.

    Callers get UNAUTHENTICATED, as with a revoked key. `muniment tenant thaw` ends it; sessions stay closed. A key that
    is created meanwhile is not frozen.

    \b
    Examples:
      muniment tenant freeze acme
    """
    try:
        keys = operator.freeze_host_keys(name)
        closed = operator.close_sessions("tenant freeze", tenant=name)
        time.sleep(_UNDER_WAY_SECONDS)
        closed += operator.close_sessions("tenant freeze", tenant=name)
    except NoSuchTenant:
        raise Failure(*_NO_TENANT) from None
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
    try:
        keys = operator.thaw_host_keys(name)
    except NoSuchTenant:
        raise Failure(*_NO_TENANT) from None
    row = {"tenant": name, "thawed_keys": keys}
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
    try:
        closed = operator.close_sessions("tenant close-sessions", tenant=name, agent_id=agent)
    except NoSuchTenant:
        raise Failure(*_NO_TENANT) from None
    except NoSuchAgent:
        raise Failure("the tenant has no such agent", "list its agents: muniment agent list") from None
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
    """Show what a tenant's hosts may give to its agents together, after setting the limits that are given.

    They bound what hosts hand out by CreateAgent and UpdateAgent, and refuse no session. An agent's limit holds for
    each of the four levels, and counts here once. What agents already have stays, also if it is more. -1 removes a
    limit.

    \b
    Examples:
      muniment tenant limits acme
      muniment tenant limits acme --max-agents 500 --max-bytes 100000000000
      muniment tenant limits acme --max-agents -1
    """
    try:
        if any(limit is not None for limit in given.values()):
            operator.limit_tenant(name, given)
        row = asdict(operator.tenant_limits(name))
    except NoSuchTenant:
        raise Failure(*_NO_TENANT) from None
    output.record(row, tuple(row))
