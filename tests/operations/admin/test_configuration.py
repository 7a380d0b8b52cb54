"""The page on configuration names every option that a command has, and every variable that an option reads."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import click
import pytest

from muniment_server.admin import COMMANDS as OPERATORS
from muniment_server.runtime.configuration import ServerConfig
from tests.support.each import for_each
from tests.support.options import COMMANDS, option_names

PAGE = (Path(__file__).parents[3] / "service" / "docs" / "configuration.md").read_text(encoding="utf-8")
ON_PAGE = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", PAGE)) | set(re.findall(r"\bMUNIMENT_[A-Z_]+", PAGE))


@for_each("name", COMMANDS)
def test_every_option_of_a_command_is_on_the_page(name):
    missing = sorted(option_names(COMMANDS[name]) - ON_PAGE)
    assert missing == [], f"add to service/docs/configuration.md: {missing}"


def test_every_operators_command_is_on_the_page():
    cells = re.findall(r"^(?:## .*?|\| )(`[^|\n]*)", PAGE, re.MULTILINE)
    named = set(re.findall(r"`(?:muniment )?([a-z][a-z -]*[a-z])[` ]", " ".join(cells)))
    leaves = {name.removeprefix("muniment ") for name, each in COMMANDS.items() if not isinstance(each, click.Group)}
    missing = sorted(name for name in leaves - named if name.split()[0] in OPERATORS.commands)
    assert missing == [], f"add a row to service/docs/configuration.md, below `Operators' commands`: {missing}"


def test_every_option_on_the_page_is_one_of_a_command():
    known = set().union(*map(option_names, COMMANDS.values()))

    unknown = sorted(name for name in ON_PAGE - known if name.startswith("--"))
    assert unknown == [], f"service/docs/configuration.md names options of no command: {unknown}"


@pytest.mark.parametrize(
    ("option", "others"), [("--address", set()), ("--database-url", {"serve"})], ids=["clients", "operators"]
)
def test_the_page_says_which_commands_have_no_json(option, others):
    """*option* is one that all commands of the table have; *others* have it and are not of the table."""
    of_table = {name.removeprefix("muniment "): option_names(each) for name, each in COMMANDS.items()}
    without = {name for name, names in of_table.items() if option in names and "--json" not in names} - others
    rows = re.findall(r"^\|.*`--json`.* Not: (.*?)[.|]", PAGE, re.MULTILINE)

    named = [set(re.findall(r"`([^`]+)`", row)) for row in rows]
    assert without in named, f"the row of `--json` in service/docs/configuration.md should say: Not: {sorted(without)}"


def test_the_defaults_of_the_server_are_on_the_page():
    serve = COMMANDS["muniment serve"]
    (of_serve,) = re.findall(r"^## The server: `muniment serve`$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    rows = dict(re.findall(r"^\| `(--[a-z-]+)[^|]*\|[^|]*\| ([^|]*?) \|", of_serve, re.MULTILINE))
    plain = [
        option
        for option in serve.params
        if isinstance(option, click.Option) and isinstance(option.default, (str, int, float)) and not option.is_flag
    ]

    assert plain
    for option in plain:
        default = getattr(option.default, "name", option.default)
        shown = default.lower() if isinstance(default, str) else f"{default:,g}"
        name = option.opts[0]
        assert shown in rows.get(name, ""), f"the row of `{name}` in service/docs/configuration.md lacks {shown}"


def test_the_command_has_the_defaults_of_the_configuration():
    configured = {field.name: field.default for field in fields(ServerConfig)}
    names = ("workers", "threads", "max_in_flight", "max_connections", "max_worker_memory", "drain_seconds")
    given = {option.name: option.default for option in COMMANDS["muniment serve"].params if option.name in names}

    assert given == {name: configured[name] for name in names}
