"""`muniment agent`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from muniment import AgentLimits, Classification, HostClient, MemorySettings
from muniment.cli.agent_items import erase, undelete
from muniment.cli.apply import LIMITS, SETTINGS, apply, flat
from muniment.cli.connect import with_host
from muniment.cli.content import LIMIT, confirm, first
from muniment.cli.failures import Discreet
from muniment.cli.groups import Group
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.page.show import show
from muniment.cli.parameters import DURATION, LEVEL, TEXT

_NEARLY_FULL = ", at 80 % of a limit or above: raise it (muniment agent update), delete items, or purge old versions"
_COLUMNS = ("agent_id", "display_name", "language", "ceiling", "known_from", "create_time", "update_time")


@click.group(cls=Group)
def agent() -> None:
    """Manage agents, which own items.

    \b
    Examples:
      muniment agent create alice --display-name "Alice" --language en
      muniment agent apply -f agents.yaml
      muniment agent list
      muniment agent show alice --html alice.html
    """


def _by_label(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
    """Blocks by label, from `LABEL=TEXT`. None if there are none. Errors do not repeat the values."""
    if not all("=" in text for text in texts):
        raise click.BadParameter("is LABEL=TEXT")
    blocks = {label: text for label, _, text in (text.partition("=") for text in texts)}
    if len(blocks) < len(texts):
        raise click.BadParameter("has a repeated label")
    return blocks or None


def _with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for notes, as the argument *settings*, and those for limits, as *limits*."""

    @click.option("--notes/--no-notes", "memory_enabled", default=None, help="Enable or disable the agent's own notes.")
    @click.option(
        "--profile/--no-profile", "user_profile_enabled", default=None, help="Enable or disable the user profile."
    )
    @click.option(
        "--notes-limit",
        "memory_char_limit",
        type=int,
        help="The budget of the agent's notes, in code points: 0 to 1,000,000.",
    )
    @click.option(
        "--profile-limit",
        "user_char_limit",
        type=int,
        help="The budget of the user profile, in code points: 0 to 1,000,000.",
    )
    @click.option(
        "--calls-per-second", type=int, help="The calls a second at each level, and of each session: 1 to 1,000,000."
    )
    @click.option("--max-items", type=int, help="The items stored at each level: 0 to 1,000,000,000.")
    @click.option(
        "--max-bytes",
        type=int,
        help="The bytes stored at each level, with revisions and index: 0 to 1,125,899,906,842,624 (1 PiB).",
    )
    @click.option("--max-revisions", type=int, help="The revisions of one item: 1 to 100,000,000.")
    @click.option(
        "--memory-ttl", type=DURATION, help="When memories expire whose save does not say it, such as 90d. 0d: never."
    )
    @click.option("--passage-ttl", type=DURATION, help="The same for passages.")
    @functools.wraps(command)
    def with_options(**arguments: Any) -> None:
        settings = MemorySettings(**{name: arguments.pop(name) for name in SETTINGS})
        limits = AgentLimits(**{name: arguments.pop(name) for name in LIMITS})
        command(settings=settings, limits=limits, **arguments)

    return with_options


@agent.command(cls=Discreet)
@click.argument("agent_id", metavar="[NAME]", required=False, type=TEXT)
@click.option("--display-name", default="", type=TEXT, help="A display name.")
@click.option(
    "--language",
    default="",
    type=TEXT,
    help="The language of its items, such as en or pt-BR. The default is to guess it for each item.",
)
@click.option(
    "--ceiling",
    type=LEVEL,
    help="The highest level that its conversations may reach, for good. The default is the key's.",
)
@click.option(
    "--known-from",
    type=LEVEL,
    help="Keys with a ceiling from this level on may have conversations with it. The default is --ceiling.",
)
@click.option(
    "--block",
    "blocks",
    multiple=True,
    type=TEXT,
    metavar="LABEL=TEXT",
    callback=_by_label,
    help="An initial PUBLIC block. May be repeated. The default is three empty blocks.",
)
@_with_settings
@with_output
@with_host
def create(
    host: HostClient,
    output: Output,
    agent_id: str | None,
    display_name: str,
    language: str,
    ceiling: Classification | None,
    known_from: Classification | None,
    blocks: dict[str, str] | None,
    settings: MemorySettings,
    limits: AgentLimits,
) -> None:
    """Create an agent. Without NAME, the server generates an id.

    NAME has 1 to 256 characters without spaces, such as alice@example.com, and does not begin with ~.

    Without --block, it has the empty blocks personality, relationships and current_state.

    \b
    Examples:
      muniment agent create alice
      muniment agent create alice --block "personality=Kind, and brief." --block current_state=
      muniment agent create --display-name "Alice" --language en --notes-limit 4000
      muniment agent create newsletter --ceiling internal
      muniment agent create customer-7 --known-from public
    """
    made = host.create_agent(
        agent_id,
        display_name=display_name,
        language=language,
        ceiling=ceiling,
        known_from=known_from,
        memory_settings=settings,
        limits=limits,
        initial_blocks=blocks,
    )
    output.record(flat(made), _COLUMNS)


@agent.command
@click.argument("agent_id", metavar="NAME", type=TEXT)
@with_output
@with_host
def get(host: HostClient, output: Output, agent_id: str) -> None:
    """Show an agent, its settings and what it stores.

    \b
    Examples:
      muniment agent get alice
    """
    found = host.get_agent(agent_id)
    output.record(flat(found), (*_COLUMNS, "held", *SETTINGS, *LIMITS))
    for stored in found.storage:
        items = _of_limit(stored.items, found.limits.max_items, "item")
        size = _of_limit(stored.bytes, found.limits.max_bytes, "byte")
        label = f"{stored.classification.name}{' TRUSTED' * stored.integrity}"
        print_note(f"{label}: {items}, {size}{_NEARLY_FULL * stored.nearly_full}")


def _of_limit(number: int, most: int | None, unit: str) -> str:
    """`1 of 5 items`, or `1 item` of an agent whose limit is not stated."""
    counted = number if most is None else most
    limited = f"{number:,}" if most is None else f"{number:,} of {most:,}"
    return f"{limited} {unit if counted == 1 else unit + 's'}"


@agent.command("list")
@LIMIT
@with_output
@with_host
def list_(host: HostClient, output: Output, limit: int | None) -> None:
    """List the tenant's agents, by id.

    \b
    Examples:
      muniment agent list
      muniment agent list --json
    """
    output.rows(map(flat, first(host.list_agents(), limit)), _COLUMNS)


@agent.command
@click.argument("agent_id", metavar="NAME", type=TEXT)
@click.option("--display-name", type=TEXT, help="A display name.")
@click.option("--language", type=TEXT, help="The language of its items. Empty: guess it for each item.")
@click.option("--known-from", type=LEVEL, help="From which ceiling on keys may have conversations with it.")
@_with_settings
@with_output
@with_host
def update(
    host: HostClient,
    output: Output,
    agent_id: str,
    display_name: str | None,
    language: str | None,
    known_from: Classification | None,
    settings: MemorySettings,
    limits: AgentLimits,
) -> None:
    """Change the given settings; keep the others.

    \b
    Examples:
      muniment agent update alice --display-name "Alice Liddell"
      muniment agent update alice --no-profile --notes-limit 4000
      muniment agent update alice --calls-per-second 20 --max-items 10000
    """
    changed = host.update_agent(
        agent_id,
        display_name=display_name,
        language=language,
        known_from=known_from,
        memory_settings=settings,
        limits=limits,
    )
    output.record(flat(changed), (*_COLUMNS, "held", *SETTINGS, *LIMITS))
    if language is not None:
        print_note("Existing items keep their index until it is rebuilt: see muniment reindex --help")


@agent.command
@click.argument("agent_id", metavar="NAME", type=TEXT)
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_host
def delete(host: HostClient, agent_id: str, yes: bool) -> None:
    """Erase an agent and all that it has.

    Its items, versions, sessions and sharing are erased. Audit rows stay.

    \b
    Examples:
      muniment agent delete alice --yes
    """
    if not yes:
        confirm(f"Erase the agent {agent_id!r} with all its items, versions and sessions?")
    host.delete_agent(agent_id)
    print_note("Erased.")


agent.add_command(apply)
agent.add_command(erase)
agent.add_command(show)
agent.add_command(undelete)
