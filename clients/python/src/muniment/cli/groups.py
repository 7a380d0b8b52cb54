"""Groups of commands: without arguments they print their help, and a command is loaded when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import NamedTuple

import click


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


class Group(click.Group):
    """A group that prints its help when it is called without arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)
