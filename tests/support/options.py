"""The commands of `muniment`, and the options of each."""

from __future__ import annotations

from collections.abc import Iterator

import click

from muniment.cli.root import main


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from _commands(found, f"{name} {below}")


COMMANDS = dict(_commands(main, "muniment"))
"""Every command and group, by its full name."""


def option_names(command: click.Command) -> set[str]:
    """The options of a command, and the variables that they read."""
    shown = [option for option in command.params if isinstance(option, click.Option)]
    helped = command.get_help_option(click.Context(command, help_option_names=["-h", "--help"]))
    options = {name for option in [*shown, helped] if option for name in (*option.opts, *option.secondary_opts)}
    return options | {option.envvar for option in shown if isinstance(option.envvar, str)}
