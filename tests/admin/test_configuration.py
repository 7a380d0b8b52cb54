"""The page on configuration names every option that a command has, and every variable that an option reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from muniment.cli.root import main

PAGE = (Path(__file__).parents[2] / "service" / "docs" / "configuration.md").read_text(encoding="utf-8")


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands(found, f"{name} {below}")


COMMANDS = dict(commands(main, "muniment"))
ON_PAGE = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", PAGE)) | set(re.findall(r"\bMUNIMENT_[A-Z_]+", PAGE))


def names(command: click.Command) -> set[str]:
    """The options of a command, and the variables that they read."""
    shown = [option for option in command.params if isinstance(option, click.Option)]
    helped = command.get_help_option(click.Context(command, help_option_names=["-h", "--help"]))
    options = {name for option in [*shown, helped] if option for name in (*option.opts, *option.secondary_opts)}
    return options | {option.envvar for option in shown if isinstance(option.envvar, str)}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_on_the_page(name):
    assert sorted(names(COMMANDS[name]) - ON_PAGE) == []


def test_every_option_on_the_page_is_one_of_a_command():
    known = set().union(*map(names, COMMANDS.values()))

    assert sorted(name for name in ON_PAGE - known if name.startswith("--")) == []


def test_the_defaults_of_the_server_are_on_the_page():
    serve = COMMANDS["muniment serve"]
    rows = {row[0]: row[1] for row in re.findall(r"^\| `(--[a-z-]+)[^|]*\|[^|]*\| ([^|]*?) \|", PAGE, re.MULTILINE)}
    plain = [
        option
        for option in serve.params
        if isinstance(option, click.Option) and isinstance(option.default, (str, int, float)) and not option.is_flag
    ]

    assert plain
    for option in plain:
        default = getattr(option.default, "name", option.default)
        shown = default.lower() if isinstance(default, str) else f"{default:g}"
        assert shown in rows[option.opts[0]]
