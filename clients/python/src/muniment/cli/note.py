"""`muniment note`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from muniment import ItemKind, NotePage, NoteResult, NoteWritten, SessionClient, Tier
from muniment.cli import edits
from muniment.cli.budget import report_budget, usage_in_words
from muniment.cli.connect import with_session
from muniment.cli.content import (
    CONTENT,
    ETAG,
    LIMIT,
    MAX_RESULTS,
    MIN_RELEVANCE,
    STANDARD_INPUT,
    first,
    print_deleted,
    print_how_found,
    read_content,
    read_text,
)
from muniment.cli.failures import Discreet
from muniment.cli.groups import Group
from muniment.cli.output import Output, Row, print_note, with_output
from muniment.cli.parameters import FILE, TEXT
from muniment.cli.versions import versions_of

_LIST_COLUMNS = ("note_id", "classification", "update_time", "content")
_WRITTEN_COLUMNS = ("note_id", "tier", "classification", "update_time", "etag")
_FOUND_COLUMNS = ("relevance", "note_id", "classification", "snippet")

_NOTE = click.argument("note_id", type=TEXT)
_TIER = click.option(
    "--tier",
    type=click.Choice(Tier, case_sensitive=False),
    default="memory",
    show_default=True,
    help="The agent's own notes, or the profile of its user.",
)


@click.group(cls=Group)
def note() -> None:
    """Notes in two budgeted tiers, as one session sees them.

    A budget refuses; it never truncates. Every command prints the usage: on standard error, or with --json as the
    field `usage`. The session is that of MUNIMENT_TOKEN, or --agent and --taint open one with the host
    key for just this command.

    \b
    Examples:
      muniment note add "prefers short answers" --tier user --agent alice --taint internal
      muniment note list --agent alice --taint internal
    """


@note.command(cls=Discreet)
@CONTENT
@click.option(
    "--id",
    "note_id",
    type=TEXT,
    metavar="UUID",
    help="The id of the note, which makes the command safe to repeat. The default is a new one.",
)
@_TIER
@with_output
@with_session
@report_budget
def add(session: SessionClient, output: Output, content: str, note_id: str | None, tier: Tier) -> None:
    """Add a note. Adding the same content again changes nothing.

    CONTENT is read from standard input if it is omitted or `-`.

    \b
    Examples:
      muniment note add "ships on Fridays" --agent alice --taint internal
      muniment note add --tier user < profile.txt
      muniment note add "ships on Fridays" --id 0c9a4c43-5d8f-4b05-a3ac-5f2a6b1d0e11
    """
    _show_written(output, session.add_note(read_content(content), tier=tier, note_id=note_id))


@note.command(cls=Discreet)
@_NOTE
@CONTENT
@_TIER
@ETAG
@with_output
@with_session
@report_budget
def update(session: SessionClient, output: Output, note_id: str, content: str, tier: Tier, etag: str | None) -> None:
    """Replace the content of a note.

    A note of a lower level gets a version at the session's own level, which shadows the lower one.
    CONTENT is read from standard input if it is omitted or `-`.

    \b
    Examples:
      muniment note update 0c9a4c43-5d8f-4b05-a3ac-5f2a6b1d0e11 "ships on Mondays"
      muniment note update 0c9a4c43-5d8f-4b05-a3ac-5f2a6b1d0e11 --tier user < profile.txt
    """
    _show_written(output, session.update_note(note_id, read_content(content), tier=tier, etag=etag))


@note.command(cls=Discreet)
@_NOTE
@_TIER
@ETAG
@with_output
@with_session
def delete(session: SessionClient, output: Output, note_id: str, tier: Tier, etag: str | None) -> None:
    """Delete the version at the session's own level. It is kept for `muniment history`.

    \b
    Examples:
      muniment note delete 0c9a4c43-5d8f-4b05-a3ac-5f2a6b1d0e11 --agent alice --taint internal
    """
    deleted = session.delete_note(note_id, tier=tier, etag=etag)
    if output.as_json:
        output.record(asdict(deleted), ())
        return
    print_deleted(deleted.revealed)
    print_note(usage_in_words(deleted.usage))


@note.command("list", cls=Discreet)
@_TIER
@LIMIT
@with_output
@with_session
def list_(session: SessionClient, output: Output, tier: Tier, limit: int | None) -> None:
    """List the visible notes of a tier, oldest first. With --json: one object with the field `notes`.

    \b
    Examples:
      muniment note list
      muniment note list --tier user --agent alice --taint confidential
      muniment note list --json
    """
    pages = list(_pages(session, tier))
    every = [asdict(each) for each in first((each for page in pages for each in page.notes), limit)]
    if output.as_json:
        highest = max(page.classification for page in pages)
        output.record({"notes": every, "usage": asdict(pages[-1].usage), "classification": highest}, ())
        return
    output.rows(every, _LIST_COLUMNS)
    print_note(usage_in_words(pages[-1].usage))


@note.command(cls=Discreet)
@click.argument("query", type=TEXT)
@_TIER
@MAX_RESULTS
@MIN_RELEVANCE
@with_output
@with_session
def search(
    session: SessionClient, output: Output, query: str, tier: Tier, max_results: int, min_relevance: float
) -> None:
    """Search in plain language, best match first. With --json: one object with the field `results`.

    \b
    Examples:
      muniment note search friday
      muniment note search "what does she like?" --tier user --max-results 3 --agent alice --taint internal
    """
    found = session.search_notes(query, tier=tier, max_results=max_results, min_relevance=min_relevance)
    if output.as_json:
        output.record(asdict(found) | {"results": [_found(each) for each in found]}, ())
        return
    output.rows(map(_found, found), _FOUND_COLUMNS, query=query)
    print_how_found(found, semantic=found.semantic)
    print_note(usage_in_words(found.usage))


@note.command(cls=Discreet)
@click.argument("file", type=FILE, default=STANDARD_INPUT)
@_TIER
@click.option("--validate-only", is_flag=True, help="Write nothing; only check the edits and print the usage.")
@with_output
@with_session
@report_budget
def edit(session: SessionClient, output: Output, file: Path, tier: Tier, validate_only: bool) -> None:
    """Make several edits, all or none. The budget applies to the result of all edits.

    FILE contains JSON Lines or a JSON array of {"add": {"content": …}}, {"update": {"note_id": …, "content": …}} and
    {"delete": {"note_id": …}}. It is standard input if it is omitted or `-`. With --json: one object that has what
    was written as `notes`.

    \b
    Examples:
      muniment note edit edits.jsonl --agent alice --taint internal
      muniment note edit --tier user --validate-only < edits.jsonl
    """
    edited = session.edit_notes(edits.read(read_text(file)), tier=tier, validate_only=validate_only)
    if output.as_json:
        output.record(asdict(edited), ())
    elif validate_only:
        print_note(f"Nothing was written. The usage would be {usage_in_words(edited.usage)}")
    else:
        if edited.notes:
            output.rows(map(asdict, edited.notes), _WRITTEN_COLUMNS)
        print_note(usage_in_words(edited.usage))


note.add_command(versions_of(ItemKind.NOTE, "NOTE_ID", example="0c9a4c43-5d8f-4b05-a3ac-5f2a6b1d0e11"))


def _pages(session: SessionClient, tier: Tier) -> Iterator[NotePage]:
    page = session.list_notes_page(tier)
    yield page
    while page.next_page_token:
        page = session.list_notes_page(tier, page_token=page.next_page_token)
        yield page


def _show_written(output: Output, written: NoteWritten) -> None:
    output.record({**asdict(written.note), "usage": asdict(written.usage)}, _WRITTEN_COLUMNS)
    if not output.as_json:
        print_note(usage_in_words(written.usage))


def _found(result: NoteResult) -> Row:
    return {"relevance": result.relevance, "score": result.score, "snippet": result.snippet, **asdict(result.note)}
