"""Groups of commands: without arguments they print their help, and a command is loaded when it is called."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import NamedTuple

import click

ENTRY_POINTS = "muniment.commands"
"""The group of entry points by which other distributions add commands: each names a Section."""


class Lazy(NamedTuple):
    """A command that is not loaded yet."""

    target: str
    """`module:name`."""
    summary: str
    """What the help of the group says about it."""

    def load(self) -> click.Command:
        """The command itself."""
        module, _, name = self.target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


class Section(NamedTuple):
    """Commands that stand under one heading in the help."""

    heading: str
    commands: Mapping[str, Lazy]
    """By name. `agent endorse` is the command `endorse` of the group `agent`."""


@functools.cache
def added_sections() -> list[Section]:
    """The commands that other installed distributions add, by the names of their entry points."""
    return [each.load() for each in sorted(entry_points(group=ENTRY_POINTS))]


def find_added(name: str) -> click.Command | None:
    """The command of that name that another distribution adds."""
    found = (section.commands[name] for section in added_sections() if name in section.commands)
    return next((command.load() for command in found), None)


class Group(click.Group):
    """A group that prints its help when it is called without arguments. Other distributions may add commands to it."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or find_added(f"{self.name} {cmd_name}")

    def list_commands(self, ctx: click.Context) -> list[str]:
        added = (name.split() for section in added_sections() for name in section.commands)
        return [*super().list_commands(ctx), *(name for group, *names in added if group == self.name for name in names)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)
