"""`muniment passage`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from muniment import ItemKind, PassageResult, SessionClient
from muniment.cli.connect import with_session
from muniment.cli.content import (
    ANY_TAG,
    CONTENT,
    EXPIRES_IN,
    LIMIT,
    MAX_RESULTS,
    MIN_RELEVANCE,
    TAGS,
    WITH_TAGS,
    delete_all,
    first,
    print_deleted,
    print_how_found,
    read_content,
    shown,
)
from muniment.cli.failures import Discreet
from muniment.cli.groups import Group
from muniment.cli.output import Output, Row, with_output
from muniment.cli.parameters import TEXT, TIME
from muniment.cli.versions import versions_of

_COLUMNS = ("passage_id", "classification", "event_time", "thread", "author", "tags", "expire_time")
_LIST_COLUMNS = ("passage_id", "classification", "event_time", "thread", "author", "tags", "content")
_FOUND_COLUMNS = ("relevance", "passage_id", "classification", "event_time", "author", "snippet")

_PASSAGE = click.argument("passage_id", type=TEXT)


@click.group(cls=Group)
def passage() -> None:
    """Archival passages, as one session sees them: texts to search, written once.

    The session is that of MUNIMENT_TOKEN; or --agent and --taint open one with the host key for this command only.
    Times are in RFC 3339, or days: 2026-11-22 means midnight in UTC.

    \b
    Examples:
      muniment passage store "We moved to Porto." --author Ann --agent alice --taint internal
      muniment passage search porto --agent alice --taint internal
    """


def _with_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that select passages, as the argument *filters*."""

    @WITH_TAGS
    @ANY_TAG
    @click.option("--thread", type=TEXT, help="Only passages of this thread.")
    @click.option("--since", type=TIME, help="Only passages of that time or later.")
    @click.option("--until", type=TIME, help="Only passages before that time: 2026-11-22 excludes all of that day.")
    @functools.wraps(command)
    def with_options(
        *, tags: tuple[str, ...], any_tag: bool, thread: str | None, since: datetime, until: datetime, **arguments: Any
    ) -> None:
        filters = {
            "tags": tags,
            "tag_match": "any" if any_tag else "all",
            "thread": thread,
            "start_time": since,
            "end_time": until,
        }
        command(filters=filters, **arguments)

    return with_options


@passage.command(cls=Discreet)
@CONTENT
@TAGS
@click.option("--thread", type=TEXT, help="The thread it belongs to, such as a conversation.")
@click.option("--author", type=TEXT, help="Who said or wrote it.")
@click.option("--event-time", type=TIME, help="When it was said or happened. The default is now.")
@EXPIRES_IN
@click.option(
    "--id",
    "passage_id",
    type=TEXT,
    metavar="UUID",
    help="The id of the passage, which makes the command safe to repeat. The default is a new one.",
)
@with_output
@with_session
def store(session: SessionClient, output: Output, content: str, **stated: Any) -> None:
    """Store a passage, at the session's own level.

    CONTENT is read from standard input if it is omitted or `-`.

    \b
    Examples:
      muniment passage store "We moved to Porto." --author Ann --event-time 2026-11-22 --agent alice --taint internal
      muniment passage store --thread chat-42 --tag mail --expires-in 365d < mail.txt
    """
    output.record(asdict(session.store_passage(read_content(content), **stated)), _COLUMNS)


@passage.command(cls=Discreet)
@_PASSAGE
@with_output
@with_session
def get(session: SessionClient, output: Output, passage_id: str) -> None:
    """Show a passage. In a pipe: only the content, byte for byte, and no line end after it.

    \b
    Examples:
      muniment passage get 7c1d2a5e-0b7c-4f0e-9a55-6a8f0a1f7f10
      muniment passage get 7c1d2a5e-0b7c-4f0e-9a55-6a8f0a1f7f10 --agent alice --taint internal > mail.txt
    """
    output.document(shown(session.get_passage(passage_id)), _COLUMNS)


@passage.command("list", cls=Discreet)
@_with_filters
@LIMIT
@with_output
@with_session
def list_(session: SessionClient, output: Output, filters: dict[str, Any], limit: int | None) -> None:
    """List the visible passages by their time, newest first.

    \b
    Examples:
      muniment passage list --since 2026-11-01 --until 2026-12-01 --limit 20
      muniment passage list --thread chat-42 --tag mail --agent alice --taint confidential
    """
    output.rows(map(asdict, first(session.list_passages(**filters), limit)), _LIST_COLUMNS)


@passage.command(cls=Discreet)
@click.argument("query", type=TEXT)
@MAX_RESULTS
@MIN_RELEVANCE
@_with_filters
@with_output
@with_session
def search(
    session: SessionClient, output: Output, query: str, max_results: int, min_relevance: float, filters: dict[str, Any]
) -> None:
    """Search in plain language, best match first.

    \b
    Examples:
      muniment passage search "where do we live?"
      muniment passage search porto --since 2026-11-22T09:00:00+01:00 --max-results 3 --agent alice --taint internal
    """
    found = session.search_passages(query, max_results=max_results, min_relevance=min_relevance, **filters)
    output.rows(map(_found, found), _FOUND_COLUMNS, query=query)
    print_how_found(found, semantic=found.semantic)


@passage.command(cls=Discreet)
@click.argument("passage_id", type=TEXT, required=False)
@click.option("--tag", type=TEXT, help="Delete all passages with this tag instead.")
@click.option("--thread", type=TEXT, help="Delete all passages of this thread instead; with --tag, those with the tag.")
@with_session
def delete(session: SessionClient, passage_id: str | None, tag: str | None, thread: str | None) -> None:
    """Delete a passage of the session's own level. It is kept for `muniment history`.

    With --tag, --thread or both, delete all passages of the session's own level that have the tag and belong to the
    thread.

    \b
    Examples:
      muniment passage delete 7c1d2a5e-0b7c-4f0e-9a55-6a8f0a1f7f10 --agent alice --taint internal
      muniment passage delete --thread chat-42 --agent alice --taint internal
    """
    if (passage_id is None) == (tag is None and thread is None):
        raise click.UsageError("name one PASSAGE_ID, or --tag, --thread or both")
    if passage_id is not None:
        print_deleted(session.delete_passage(passage_id))
    else:
        delete_all(lambda: session.delete_passages(tag=tag, thread=thread), "passage", "passages")


passage.add_command(versions_of(ItemKind.PASSAGE, "PASSAGE_ID", example="7c1d2a5e-0b7c-4f0e-9a55-6a8f0a1f7f10"))


def _found(result: PassageResult) -> Row:
    return {"relevance": result.relevance, "score": result.score, "snippet": result.snippet, **asdict(result.passage)}
