"""`muniment agent apply`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from muniment import Agent, AgentLimits, AgentNotFound, HostClient, InvalidArgument, MemorySettings
from muniment.cli import agents_file
from muniment.cli.agents_file import Declared
from muniment.cli.connect import broken_rules, with_host
from muniment.cli.content import read_text
from muniment.cli.failures import Failure
from muniment.cli.output import Output, Row, print_note, with_output
from muniment.cli.parameters import FILE

_MAX_BYTES = 1024 * 1024
SETTINGS = ("memory_enabled", "user_profile_enabled", "memory_char_limit", "user_char_limit")
LIMITS = ("calls_per_second", "max_items", "max_bytes", "max_revisions", "memory_ttl", "passage_ttl")


@dataclass(frozen=True, slots=True)
class _Step:
    """What happens to one agent."""

    outcome: str
    wanted: Declared
    changed: tuple[str, ...] = ()
    """The settings that change."""


@click.command
@click.option("-f", "--file", type=FILE, required=True, metavar="FILE", help="What to apply. `-` is standard input.")
@click.option("--dry-run", is_flag=True, help="Change nothing; only print what would be done.")
@with_output
@with_host
def apply(host: HostClient, output: Output, file: Path, dry_run: bool) -> None:
    """Create and update agents as a YAML file declares them.

    An agent that does not exist is created, with `blocks` as its first blocks. An agent that exists gets the settings
    in the file that differ; its other settings, its ceiling and its blocks stay. Agents that are not in the file stay.
    The command reports each agent as created, updated or unchanged.

    A file that is not in the form below is refused before anything is changed. If the server refuses an agent, the
    command ends there; the agents before it are done. Correct the file, and apply it again.

    \b
    agents:
      alice:
        display_name: Alice
        language: en
        ceiling: confidential
        known_from: public
        memory_enabled: true
        user_profile_enabled: true
        memory_char_limit: 2200
        user_char_limit: 1375
        calls_per_second: 2000
        max_items: 1000000
        max_bytes: 4294967296
        max_revisions: 100000
        memory_ttl: 90d
        passage_ttl: 0d
        blocks:
          personality: Kind, and brief.

    \b
    Examples:
      muniment agent apply -f agents.yaml --dry-run
      muniment agent apply -f - < agents.yaml
    """
    steps = [_step(host, wanted) for wanted in agents_file.read(read_text(file, at_most=_MAX_BYTES))]
    for step in steps:
        if not dry_run:
            _take(host, step)
        output.line(
            {"outcome": step.outcome, "agent_id": step.wanted.agent_id, "changed": step.changed},
            ("outcome", "agent_id", "changed"),
        )
    if dry_run:
        print_note("A dry run: nothing was changed.")


def flat(agent: Agent) -> Row:
    """An agent as one row, with the settings of its notes and its limits as columns."""
    row = {name: value for name, value in asdict(agent).items() if name not in {"memory_settings", "limits"}}
    return {**row, **asdict(agent.memory_settings), **asdict(agent.limits)}


def _step(host: HostClient, wanted: Declared) -> _Step:
    try:
        with _naming(wanted.agent_id):
            there = flat(host.get_agent(wanted.agent_id))
    except AgentNotFound:
        return _Step("created", wanted)
    if wanted.settings.get("ceiling", there["ceiling"]) != there["ceiling"]:
        raise Failure(
            f"agents.{wanted.agent_id}.ceiling cannot be changed", "correct the file, or create another agent"
        )
    changed = tuple(name for name, value in wanted.settings.items() if not _is_set(name, value, there))
    return _Step("updated" if changed else "unchanged", wanted, changed)


def _is_set(name: str, value: Any, there: Row) -> bool:
    if name == "known_from" and there["ceiling"] is not None:
        value = min(value, there["ceiling"])  # the server takes a higher one for the ceiling
    return bool(there[name] == value)


def _take(host: HostClient, step: _Step) -> None:
    wanted = step.wanted
    with _naming(wanted.agent_id):
        match step.outcome:
            case "created":
                host.create_agent(wanted.agent_id, initial_blocks=wanted.blocks, **_arguments(wanted.settings))
            case "updated":
                host.update_agent(wanted.agent_id, **_arguments({name: wanted.settings[name] for name in step.changed}))


@contextmanager
def _naming(agent_id: str) -> Iterator[None]:
    """Name the agent whose value the server rejects."""
    try:
        yield
    except InvalidArgument as error:
        raise Failure(f"agents.{agent_id}: {broken_rules(error)}", "correct the file, and apply it again") from None


def _arguments(settings: Row) -> dict[str, Any]:
    """*settings* as the client takes them."""
    memory = MemorySettings(**{name: settings.get(name) for name in SETTINGS})
    limits = AgentLimits(**{name: settings.get(name) for name in LIMITS})
    rest = {name: value for name, value in settings.items() if name not in {*SETTINGS, *LIMITS}}
    return {**rest, "memory_settings": memory, "limits": limits}
