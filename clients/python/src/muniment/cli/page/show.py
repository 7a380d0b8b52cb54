"""`muniment agent show`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from muniment import HostClient, PrincipalNotAllowed
from muniment.cli.connect import with_hint, with_host
from muniment.cli.output import print_note
from muniment.cli.page.reading import read_agent
from muniment.cli.page.rendering import render
from muniment.cli.parameters import FILE, TEXT
from muniment.cli.transfer.file import require_free, write_whole
from muniment.cli.transfer.progress import progress

_STANDARD_OUTPUT = Path("-")
_NEEDS_EVERYTHING = (
    "a page has agents, sessions and the audit log: set MUNIMENT_HOST_KEY to a host key that was created without --only"
)


@click.command
@click.argument("agent_id", metavar="NAME", type=TEXT)
@click.option(
    "--html",
    "path",
    metavar="FILE",
    required=True,
    type=FILE,
    help="The page to write. It replaces an existing file. `-` is standard output.",
)
@with_host
def show(host: HostClient, agent_id: str, path: Path) -> None:
    """Write one agent as an HTML page.

    The page is one file that needs no network and runs no script. It has what the agent stores at each level
    beside its limits, its items with the versions that they shadow, its conversations with each raise of taint, and its
    last 50 audit events. Up to 200 names of each kind are shown, up to 1,000 characters of each text, and the newest 20
    conversations with as many of those whose taint has changed; the rest is counted.

    The page is as sensitive as the level that it states at its top: protect it like the agent itself. Only you can read
    the file (mode 0600). The command reads through one session for each level up to the ceilings of the agent and of
    the key, each in a conversation of its own, which the audit log shows. The host key must have been made without
    --only.

    \b
    Examples:
      muniment agent show alice --html alice.html
    """
    if path != _STANDARD_OUTPUT:
        require_free(path, force=True)
    elif sys.stdout.isatty():
        raise click.UsageError("standard output is a terminal: name a file, or redirect it")
    with progress("Reading") as advance, with_hint(_NEEDS_EVERYTHING, PrincipalNotAllowed):
        page = read_agent(host, agent_id, advance)
    if path == _STANDARD_OUTPUT:
        for part in render(page):
            sys.stdout.buffer.write(part.encode())
        sys.stdout.buffer.flush()
    else:
        write_whole(path, render(page), force=True)
    print_note(f"The page is {page.classification.name}: protect it like the agent itself.")
