"""`muniment agent`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from muniment import HostClient, MemorySettings
from muniment.values import Agent
from muniment_server.cli.groups import Group
from muniment_server.cli.output import Output, Row, confirm, note, with_output
from muniment_server.cli.parameters import TEXT
from muniment_server.cli.service import with_host

_COLUMNS = ("agent_id", "display_name", "language", "create_time", "update_time")
_SETTINGS = ("memory_enabled", "user_profile_enabled", "memory_char_limit", "user_char_limit")
_LIMIT = click.IntRange(0, 1_000_000)


@click.group(cls=Group)
def agent() -> None:
    """Agents: the owners of what is remembered.

    \b
    Examples:
      muniment agent create alice --display-name "Alice" --language en
      muniment agent list
    """


def _with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of how notes are kept, as *settings*."""

    @click.option("--notes/--no-notes", "memory_enabled", default=None, help="Whether it keeps notes of its own.")
    @click.option("--profile/--no-profile", "user_profile_enabled", default=None, help="Whether it keeps its user's.")
    @click.option("--notes-limit", "memory_char_limit", type=_LIMIT, help="The budget of its notes, in code points.")
    @click.option("--profile-limit", "user_char_limit", type=_LIMIT, help="That of the profile.")
    @functools.wraps(command)
    def with_options(**arguments: Any) -> None:
        settings = MemorySettings(**{name: arguments.pop(name) for name in _SETTINGS})
        command(settings=settings, **arguments)

    return with_options


@agent.command
@click.argument("agent_id", metavar="[NAME]", required=False, type=TEXT)
@click.option("--display-name", default="", type=TEXT, help="A name for people.")
@click.option("--language", default="", type=TEXT, help="The language of its items, such as en or pt-BR.")
@_with_settings
@with_output
@with_host
def create(
    host: HostClient, output: Output, agent_id: str | None, display_name: str, language: str, settings: MemorySettings
) -> None:
    """Create an agent. Without NAME the server makes an id.

    \b
    Examples:
      muniment agent create alice
      muniment agent create --display-name "Alice" --language en --notes-limit 4000
    """
    made = host.create_agent(agent_id, display_name=display_name, language=language, memory_settings=settings)
    output.record(_row(made), _COLUMNS)


@agent.command
@click.argument("agent_id", metavar="NAME", type=TEXT)
@with_output
@with_host
def get(host: HostClient, output: Output, agent_id: str) -> None:
    """Show an agent and its settings.

    \b
    Examples:
      muniment agent get alice
    """
    output.record(_row(host.get_agent(agent_id)), (*_COLUMNS, *_SETTINGS))


@agent.command("list")
@with_output
@with_host
def list_(host: HostClient, output: Output) -> None:
    """List the tenant's agents, by id.

    \b
    Examples:
      muniment agent list
      muniment agent list --json
    """
    output.rows(map(_row, host.list_agents()), _COLUMNS)


@agent.command
@click.argument("agent_id", metavar="NAME", type=TEXT)
@click.option("--display-name", type=TEXT, help="A name for people.")
@click.option("--language", type=TEXT, help="The language of its items; empty: not stated.")
@_with_settings
@with_output
@with_host
def update(
    host: HostClient,
    output: Output,
    agent_id: str,
    display_name: str | None,
    language: str | None,
    settings: MemorySettings,
) -> None:
    """Change what is given, keep the rest.

    \b
    Examples:
      muniment agent update alice --display-name "Alice Liddell"
      muniment agent update alice --no-profile --notes-limit 4000
    """
    changed = host.update_agent(agent_id, display_name=display_name, language=language, memory_settings=settings)
    output.record(_row(changed), (*_COLUMNS, *_SETTINGS))


@agent.command
@click.argument("agent_id", metavar="NAME", type=TEXT)
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_host
def delete(host: HostClient, agent_id: str, yes: bool) -> None:
    """Erase an agent and everything of it: items, versions, sessions. Audit events stay.

    \b
    Examples:
      muniment agent delete alice --yes
    """
    if not yes:
        confirm(f"Erase the agent {agent_id!r} with all its items, versions and sessions?")
    host.delete_agent(agent_id)
    note("Erased.")


def _row(shown: Agent) -> Row:
    """The settings beside the rest."""
    row = {name: value for name, value in asdict(shown).items() if name != "memory_settings"}
    return {**row, **asdict(shown.memory_settings)}
