"""What the command says of itself."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from muniment.cli.agent import agent
from muniment.cli.apply import LIMITS
from muniment.cli.root import Root, main
from tests.support.commands import run, run_process
from tests.support.each import for_each
from tests.tools.tour.readme import ROOT

_RANGE = re.compile(r"(\w+) = \d+ \[\(buf\.validate\.field\)\.int\d\d = \{\s+gte: (\d+)\s+lte: (\d+)")
_SECRET = re.compile(r"host.?key|token|password|secret")


def commands(command: click.Command, *names: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group, with the words that lead to it."""
    yield names, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, *names, name)


COMMANDS = [command for _, command in commands(main)]


def examples(command: click.Command) -> list[str]:
    """The `muniment …` of each line of the examples, without what the shell takes off."""
    _, _, text = (command.help or "").partition("Examples:")
    joined = re.sub(r"\\\n\s*", "", text)
    found = re.findall(r"^.*?\bmuniment (.*?)(?:\)| (?:<|>>?) \S+)?$", joined, re.MULTILINE)
    return [line.strip() for line in found]


@for_each("command", COMMANDS)
def test_every_command_shows_an_example_and_every_example_parses(command):
    assert examples(command), "its docstring has no `Examples:`"
    for example in examples(command):
        parse(shlex.split(example))


def parse(words: list[str]) -> None:
    """Let click read *words*, and call nothing. Raises UsageError."""
    command: click.Command = main
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None
        command = found
    command.make_context(str(command.name), words)


@for_each("command", COMMANDS)
def test_every_option_says_what_it_does(command):
    context = click.Context(command, info_name="x")
    assert command.help, "it has no docstring"
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert [option.name for option in options if not option.help] == []
    assert all(len(line) <= 120 for line in command.get_help(context).splitlines())


@for_each("command", COMMANDS)
def test_no_secret_is_an_argument(command):
    """Whoever can list processes reads their arguments. Files of secrets, and the id of a host key, are none."""
    names = {name for parameter in command.params for name in parameter.opts} - {"host_key_id"}
    assert [name for name in names if _SECRET.search(re.sub("-(password|token)-file$", "", name))] == []


@for_each("command", COMMANDS)
def test_no_summary_is_cut_off(command):
    _, _, listed = command.get_help(click.Context(command)).partition("Commands:\n")
    assert [line for line in listed.splitlines() if line.endswith("...")] == []


@pytest.mark.parametrize("command", ["create", "update"])
def test_the_help_of_a_limit_states_the_range_in_the_contract(command):
    ranges = _RANGE.findall((ROOT / "proto" / "muniment" / "v1" / "agent.proto").read_text(encoding="utf-8"))
    shown = {
        option.name: option.help or "" for option in agent.commands[command].params if isinstance(option, click.Option)
    }

    assert {*LIMITS} - {"memory_ttl", "passage_ttl"} <= {name for name, _, _ in ranges}
    for name, least, most in ranges:
        assert f": {int(least):,} to {int(most):,}" in shown[name]


@pytest.mark.parametrize(
    ("typed", "meant"), [("memry", "memory"), ("migrat", "migrate"), ("hostkey", "host-key"), ("agents", "agent")]
)
def test_a_mistyped_command_is_suggested(tmp_path, typed, meant):
    refused = run(tmp_path, typed)

    assert refused.returncode == 2
    assert f"No such command '{typed}'. Did you mean '{meant}'?" in refused.stderr


def test_the_summaries_agree_with_the_commands():
    """The help of `muniment` is written down, so that it need not load the commands."""
    assert isinstance(main, Root)
    for section in main.sections:
        for name, lazy in section.commands.items():
            assert lazy.load().name == name.split()[-1]
            assert lazy.summary.endswith(".")


def test_the_help_shows_the_operators_commands_after_the_clients():
    shown = main.get_help(click.Context(main))
    assert shown.index("\nCommands:\n  agent ") < shown.index("\nOperators' commands:\n  serve ")


def test_alone_it_prints_its_help(tmp_path):
    alone = run(tmp_path)
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout == run(tmp_path, "--help").stdout
    assert run(tmp_path, "agent").stdout == run(tmp_path, "agent", "--help").stdout


def test_it_says_its_version(tmp_path):
    assert run_process(tmp_path, "--version").stdout.startswith("muniment, version ")


def test_help_loads_no_driver():
    script = (
        "import sys; from muniment.cli import main; sys.argv = ['muniment', '--help']\n"
        "try: main()\n"
        "finally: sys.stderr.write(' '.join({'grpc', 'psycopg', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
