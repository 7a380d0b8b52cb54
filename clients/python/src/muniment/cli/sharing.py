"""`muniment block` for hosts: which agents read a block of another agent."""

from __future__ import annotations

import click

from muniment import HostClient
from muniment.cli.connect import with_host
from muniment.cli.content import LIMIT, first, read_content
from muniment.cli.failures import Discreet
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import TEXT

_OWNER = click.argument("owner", type=TEXT)
_LABEL = click.argument("label", type=TEXT)
_AGENT = click.argument("agent", type=TEXT)


@click.command(cls=Discreet)
@_OWNER
@_LABEL
@click.argument("content", required=False, default="", type=TEXT)
@with_host
def share(host: HostClient, owner: str, label: str, content: str) -> None:
    """For hosts: declare a block as shared.

    OWNER is the agent whose block it is. CONTENT is the text of its PUBLIC version, if it has none; `-` reads it from
    standard input. If it is omitted, the existing version stays, or an empty one is created.

    \b
    Examples:
      muniment block share alice house_rules "No shoes."
      muniment block share alice house_rules - < rules.txt
      muniment block share alice personality
    """
    host.create_shared_block(owner, label, read_content(content))
    print_note("Shared. Attach it: muniment block attach OWNER LABEL AGENT")


@click.command(cls=Discreet)
@_OWNER
@_LABEL
@with_host
def unshare(host: HostClient, owner: str, label: str) -> None:
    """For hosts: stop sharing a block, and detach it from all agents.

    OWNER keeps it.

    \b
    Examples:
      muniment block unshare alice house_rules
    """
    host.delete_shared_block(owner, label)
    print_note("No longer shared. Its owner keeps it.")


@click.command(cls=Discreet)
@_OWNER
@_LABEL
@_AGENT
@with_host
def attach(host: HostClient, owner: str, label: str, agent: str) -> None:
    """For hosts: let an agent read a shared block.

    The sessions of AGENT see the versions that OWNER's sessions wrote at or below their taint.

    \b
    Examples:
      muniment block attach alice house_rules bob
    """
    host.attach_block(owner, label, agent)
    print_note("Attached.")


@click.command(cls=Discreet)
@_OWNER
@_LABEL
@_AGENT
@with_host
def detach(host: HostClient, owner: str, label: str, agent: str) -> None:
    """For hosts: stop letting an agent read a shared block.

    \b
    Examples:
      muniment block detach alice house_rules bob
    """
    host.detach_block(owner, label, agent)
    print_note("Detached.")


@click.command(cls=Discreet)
@_OWNER
@_LABEL
@LIMIT
@with_output
@with_host
def consumers(host: HostClient, output: Output, owner: str, label: str, limit: int | None) -> None:
    """For hosts: list the agents that read a shared block, by id.

    \b
    Examples:
      muniment block consumers alice house_rules
    """
    readers = first(host.list_block_consumers(owner, label), limit)
    output.rows(({"agent_id": each} for each in readers), ("agent_id",))


SHARING = (share, unshare, attach, detach, consumers)
"""The commands for hosts."""
