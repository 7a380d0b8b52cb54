"""`muniment import`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from muniment import Classification, HostClient, Integrity
from muniment.cli.connect import with_host
from muniment.cli.failures import Failure
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import FILE, INTEGRITY, LEVEL, TEXT
from muniment.cli.transfer import formats
from muniment.cli.transfer.items import Item
from muniment.cli.transfer.progress import progress
from muniment.cli.transfer.refusals import refusals
from muniment.cli.transfer.sessions import Sessions, sessions_at
from muniment.cli.transfer.tally import COLUMNS, Tally
from muniment.cli.transfer.write import foresee_passages, plan, write


@click.command("import")
@click.argument("agent_id", metavar="AGENT", type=TEXT)
@click.argument("path", metavar="FILE", type=FILE)
@click.option(
    "--format", "named", type=click.Choice(formats.FORMATS), help="The format of the file. By default, it is detected."
)
@click.option(
    "--level", type=LEVEL, help="The level of the content of FILE, if FILE has no levels. There is no default."
)
@click.option(
    "--from-agent",
    type=TEXT,
    metavar="NAME",
    help="The agent or user to import from a file with several: of Letta or mem0.",
)
@click.option(
    "--edited", is_flag=True, help="FILE was edited after its export, or written by hand: take its levels as they are."
)
@click.option(
    "--integrity",
    type=INTEGRITY,
    default=Integrity.UNTRUSTED,
    help="trusted, if you vouch for all of FILE: trusted sessions will read it. The default is untrusted.",
)
@click.option("--skip-refused", is_flag=True, help="Import the other items if the server refuses some, and list those.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and write nothing.")
@with_output
@with_host
def import_(
    host: HostClient,
    output: Output,
    agent_id: str,
    path: Path,
    named: str | None,
    level: Classification | None,
    from_agent: str | None,
    edited: bool,
    integrity: Integrity,
    skip_refused: bool,
    dry_run: bool,
) -> None:
    """Import FILE into an agent: an export, or the data of another system. `-` is standard input.

    \b
    muniment      a file of `muniment export`; each item keeps its level, and a file that was edited
                  is refused without --edited
    letta         an agent file (.af): blocks become blocks, a / in a label becomes a dot, and
                  what no label can have becomes _; archival passages, in the file or as
                  Letta's API lists them, become passages
    mcp           the JSON Lines of server-memory, or what its read_graph returns: an entity
                  becomes a memory, its name the key, its type a tag, its observations and
                  relations the content, one per line
    mem0          the JSON of get_all(filters=..., top_k=...), which returns 20 memories unless
                  top_k is higher, or one memory a line: a memory becomes a passage, its run
                  the thread, its actor the author, its categories tags
    langgraph     the table of PostgresStore in JSON Lines: an item becomes the memory in which
                  LangGraph's store for Muniment finds it, created at the time of the import
    docker-agent  the SQLite file: rows become notes, in the tier memory unless it is user
    openmemory    the ZIP file of an export: active memories become passages
    markdown      a directory: each .md file becomes a memory, its path without .md the key,
                  its text the content; tags come from the front matter

    Before anything is written, all of FILE is read and the server checks each item. If a line is malformed, the notes
    do not fit, or items break a rule of the server, for example because they are too large, nothing is written: all
    that are refused are named. With --skip-refused, the others are imported.

    FILE may have 4 GiB in JSON Lines, with 4 MiB in a line, and 256 MiB as one JSON document; a Markdown file 1 MiB.

    An item in FILE replaces the agent's version of the same name at the same level, which is kept for `muniment
    history`. Nothing is deleted, and importing the same FILE again changes nothing. The host key must be able to open
    a session at every level in FILE; the audit log shows the sessions.

    \b
    Examples:
      muniment import bob alice.jsonl
      muniment import bob agent.af --level internal --dry-run
      muniment import bob memory.jsonl --format mcp --level confidential
      muniment import bob mem0.json --from-agent ada --level internal
      psql -At -c 'SELECT row_to_json(store) FROM store' | muniment import bob - --level internal
      muniment import bob notes/ --level public --json
      muniment import bob trusted.jsonl --integrity trusted
    """
    source = formats.Source(path, agent_id, named, level, from_agent, edited)
    reading = formats.read(source)
    if integrity is Integrity.TRUSTED and reading.integrity is Integrity.UNTRUSTED:
        raise Failure("untrusted sessions wrote what is in the file", "check each item, then give --edited")
    items = _live(reading.items)
    for remark in reading.remarks:
        print_note(remark)
    if not items:
        print_note("There is nothing to import.")
    with sessions_at(host, agent_id, {item.level for item in items}, integrity=integrity) as sessions:
        planned = plan(_accepted(items, sessions, skip_refused=skip_refused), sessions, agent_id)
        if dry_run:
            foresee_passages(planned, sessions)
            _show(planned.foreseen, output)
            print_note("Nothing was written: this was a dry run.")
            return
        with progress("Writing", len(planned)) as advance:
            tally = write(planned, sessions, advance)
    _show(tally, output)


def _accepted(items: list[Item], sessions: Sessions, *, skip_refused: bool) -> list[Item]:
    """*items* without those that the server refuses, which are named. Raises Failure unless they are to be skipped."""
    refused = {each.item: each for each in refusals(items, sessions)}
    for item in items:
        if item in refused:
            print_note(f"refused: {refused[item]}")
    if refused and not skip_refused:
        raise Failure(
            f"the server refuses {len(refused)} of {len(items)} items; nothing was imported",
            "correct the file, or import the others with --skip-refused",
        )
    return [item for item in items if item not in refused]


def _live(items: tuple[Item, ...]) -> list[Item]:
    """*items* without expired ones, which the server would refuse."""
    now = datetime.now(UTC)
    live = [item for item in items if not (expire_time := getattr(item, "expire_time", None)) or expire_time > now]
    if len(live) < len(items):
        print_note(f"omitted items that have expired: {len(items) - len(live)}")
    return live


def _show(tally: Tally, output: Output) -> None:
    output.rows(tally.rows(), COLUMNS)
