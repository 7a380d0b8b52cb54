"""`muniment export`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import click

from muniment import Classification, HostClient, Integrity
from muniment.cli.connect import with_host
from muniment.cli.output import print_note
from muniment.cli.parameters import FILE, INTEGRITY, LEVEL, TEXT
from muniment.cli.transfer import lines
from muniment.cli.transfer.file import require_free, write_whole
from muniment.cli.transfer.gather import everything
from muniment.cli.transfer.progress import progress
from muniment.cli.transfer.sessions import Sessions, sessions_at, sessions_to_the_ceiling
from muniment.cli.transfer.tally import by_level

_STANDARD_OUTPUT = Path("-")


@click.command
@click.argument("agent_id", metavar="AGENT", type=TEXT)
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    type=FILE,
    help="The file to write. `-`, and the default in a pipe, is standard output.",
)
@click.option("--up-to", type=LEVEL, help="The highest level to read. The default is the ceiling of the host key.")
@click.option(
    "--integrity",
    type=INTEGRITY,
    default=Integrity.UNTRUSTED,
    help="Whose items: those that trusted sessions wrote, or untrusted ones. The default is untrusted.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@with_host
def export(
    host: HostClient,
    agent_id: str,
    path: Path | None,
    up_to: Classification | None,
    integrity: Integrity,
    force: bool,
) -> None:
    """Export all items of an agent to a file: JSON Lines, each item with its level.

    The file has every live version at every level up to the ceiling of the host key, including shadowed ones: memories,
    notes, passages, and the agent's own blocks. It is as sensitive as its highest level: protect it like the agent
    itself. The command reads through one session per level, which the audit log shows. Items that are written during
    the export may be missing. Earlier versions, deleted items and write times are not exported. What trusted sessions
    wrote is in a file of its own: --integrity trusted.

    \b
    Examples:
      muniment export alice -o alice.jsonl
      muniment export alice --up-to internal -o alice.jsonl --force
      muniment export alice --up-to public > public.jsonl
      muniment export alice --integrity trusted -o trusted.jsonl
    """
    target = _target(path)
    if target != _STANDARD_OUTPUT:
        require_free(target, force=force)
    with _sessions(host, agent_id, up_to, integrity) as sessions, progress("Reading") as advance:
        items = everything(sessions, agent_id, advance)
    if target == _STANDARD_OUTPUT:
        _write_out(lines.written(agent_id, items, integrity, ascii_only=sys.stdout.isatty()))
    else:
        write_whole(target, lines.written(agent_id, items, integrity), force=force)
    for counted in by_level(items) or [f"There are no {integrity} items up to that level."]:
        print_note(counted)


def _target(path: Path | None) -> Path:
    if path is not None:
        return path
    if sys.stdout.isatty():
        raise click.UsageError("name the file: -o FILE, or -o - for this terminal")
    return _STANDARD_OUTPUT


def _sessions(
    host: HostClient, agent_id: str, up_to: Classification | None, integrity: Integrity
) -> AbstractContextManager[Sessions]:
    if up_to is None:
        return sessions_to_the_ceiling(host, agent_id, integrity=integrity)
    return sessions_at(host, agent_id, [level for level in Classification if level <= up_to], integrity=integrity)


def _write_out(written: Iterator[str]) -> None:
    """Write to standard output in UTF-8, whatever the locale."""
    for line in written:
        sys.stdout.buffer.write(line.encode())
    sys.stdout.buffer.flush()
