"""`muniment audit`."""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

import click

from muniment.cli.groups import Group
from muniment.cli.output import Output, with_output
from muniment.cli.parameters import TEXT
from muniment_server.admin.database import with_operator
from muniment_server.admin.operator import Operator

_COLUMNS = (
    "time", "classification", "method", "outcome", "agent_id", "session_id", "kind", "result_count", "reason",
    "host_key_id", "item_id", "revision",
)  # fmt: skip


@click.group(cls=Group)
def audit() -> None:
    """Read the audit log. It never contains content.

    \b
    Examples:
      muniment audit list --tenant acme
    """


@audit.command("list")
@click.option("--tenant", required=True, type=TEXT, help="The tenant whose log to read.")
@click.option("--agent", type=TEXT, metavar="NAME", help="Only rows of this agent.")
@click.option("--session", type=click.UUID, metavar="ID", help="Only rows of this session.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="How many rows.")
@with_output
@with_operator
def list_(operator: Operator, output: Output, tenant: str, agent: str | None, session: UUID | None, limit: int) -> None:
    """List the audit log of a tenant, at every level, newest first.

    \b
    Examples:
      muniment audit list --tenant acme --limit 20
      muniment audit list --tenant acme --agent alice --json
      muniment audit list --tenant acme --session 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77
    """
    events = operator.audit_events(tenant=tenant, agent_id=agent, session_id=session, limit=limit)
    output.rows(map(asdict, events), _COLUMNS)
