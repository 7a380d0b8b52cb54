"""`muniment hold`: agents of which nothing may be erased or purged, such as for a court."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

import click

from muniment.cli.failures import Failure
from muniment.cli.groups import Group
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import TEXT
from muniment_server.admin.connection import NoSuchAgent, Operator
from muniment_server.admin.database import with_operator
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import AgentNumber, TenantNumber

_COLUMNS = ("tenant", "agent_id", "ceiling", "since", "reason")
_TENANT = click.option("--tenant", required=True, type=TEXT, help="The tenant of the agent.")
_AGENT = click.argument("agent_id", metavar="NAME", type=TEXT)


@dataclass(frozen=True, slots=True)
class HeldAgent:
    """An agent of which nothing may be erased or purged."""

    tenant: str
    agent_id: str
    ceiling: Classification
    since: datetime | None
    reason: str | None
    """Who holds it, and why, as the audit log has it. None, like *since*, if the log does not."""


@click.group(cls=Group)
def hold() -> None:
    """Keep all that an agent has, such as for a court, until the hold ends.

    While an agent is held, it cannot be deleted, nothing of it can be erased, and `purge` leaves it out: EraseItems and
    DeleteAgent fail with AGENT_HELD. Its sessions go on. What they delete or overwrite is kept, as always.

    \b
    Examples:
      muniment hold add alice --tenant acme --reason "case 12"
      muniment hold list
      muniment hold remove alice --tenant acme
    """


@hold.command
@_AGENT
@_TENANT
@click.option("--reason", required=True, type=TEXT, help="Why. The list and the audit log show it.")
@with_operator
def add(operator: Operator, agent_id: str, tenant: str, reason: str) -> None:
    """Hold an agent. Erasures under way end with their next batch.

    \b
    Examples:
      muniment hold add alice --tenant acme --reason "case 12"
    """
    hold_agent(operator, tenant, agent_id, reason)
    print_note(f"{agent_id} of {tenant} is held.")


@hold.command
@_AGENT
@_TENANT
@with_operator
def remove(operator: Operator, agent_id: str, tenant: str) -> None:
    """End the hold of an agent.

    \b
    Examples:
      muniment hold remove alice --tenant acme
    """
    agent = operator.agent(tenant, agent_id)
    if not operator.values("free_agent", **asdict(agent)):
        raise Failure(f"{agent_id} of {tenant} is not held", "list those that are: muniment hold list")
    print_note(f"{agent_id} of {tenant} is no longer held.")


@hold.command("list")
@click.option("--tenant", type=TEXT, help="Only agents of this tenant.")
@with_output
@with_operator
def list_(operator: Operator, output: Output, tenant: str | None) -> None:
    """List the agents that are held, since when, by whom and why.

    Columns in a pipe: tenant, agent_id, ceiling, since, reason.

    \b
    Examples:
      muniment hold list
    """
    number = None if tenant is None else operator.tenant(tenant)
    output.rows(map(asdict, held_agents(operator, number)), _COLUMNS)


def hold_agent(operator: Operator, tenant: str, agent_id: str, reason: str) -> None:
    """Keep all that an agent has. Raises NoSuchAgent."""
    agent = asdict(operator.agent(tenant, agent_id))
    with operator.connection.transaction():
        if not operator.values("hold_agent", reason=reason, **agent):
            raise NoSuchAgent(f"{agent_id} of {tenant}")
        operator.execute("stop_erasures", **agent)


def held_agents(
    operator: Operator, tenant: TenantNumber | None = None, agent: AgentNumber | None = None
) -> list[HeldAgent]:
    """The agents that are held: all, those of one tenant, or one agent, if it is held."""
    return operator.rows("list_held", HeldAgent, tenant=tenant, agent=agent)


def require_none_held(operator: Operator, tenant: str) -> None:
    """Raise Failure while an agent of the tenant is held."""
    if held_agents(operator, operator.tenant(tenant)):
        raise Failure(f"agents of {tenant} are held, and so is their audit log", "see: muniment hold list")
