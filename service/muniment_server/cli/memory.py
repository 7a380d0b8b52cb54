"""`muniment memory`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from muniment import MemoryResult, SessionClient
from muniment_server.cli.failures import Discreet, Failure
from muniment_server.cli.groups import Group
from muniment_server.cli.output import Output, Row, note, with_output
from muniment_server.cli.parameters import DURATION, TEXT
from muniment_server.cli.service import with_session

_LIST_COLUMNS = ("key", "classification", "tags", "update_time", "content")
_SAVED_COLUMNS = ("key", "classification", "tags", "update_time", "expire_time", "etag")
_FOUND_COLUMNS = ("score", "key", "classification", "snippet")
_MOST_INPUT = 1024 * 1024
"""Bytes read from a pipe: more than the service takes, so that too much is refused, not cut."""

_KEY = click.argument("key", type=TEXT)
_TAGS = click.option("--tag", "tags", multiple=True, type=TEXT, help="May be given several times.")
_ETAG = click.option("--etag", type=TEXT, help="Only if this is still the version that is seen.")


@click.group(cls=Group)
def memory() -> None:
    """Memories by key, as one session sees them.

    The session is that of MUNIMENT_TOKEN, or --agent and --taint open one with the host key for just this command.

    \b
    Examples:
      muniment memory save plan "ship on Friday" --agent alice --taint internal
      muniment memory get plan --agent alice --taint internal
    """


@memory.command(cls=Discreet)
@_KEY
@click.argument("content", required=False, default="-", type=TEXT)
@_TAGS
@click.option("--expires-in", type=DURATION, help="Forget it after that long, such as 30d.")
@_ETAG
@with_output
@with_session
def save(
    session: SessionClient,
    output: Output,
    key: str,
    content: str,
    tags: tuple[str, ...],
    expires_in: timedelta | None,
    etag: str | None,
) -> None:
    """Create or replace a memory at the session's own level. Tags are replaced, too.

    CONTENT is read from standard input when it is left out or `-`.

    \b
    Examples:
      muniment memory save plan "ship on Friday" --tag work --agent alice --taint internal
      muniment memory save notes --expires-in 30d < notes.txt
    """
    text = _standard_input() if content == "-" else content
    expire_time = datetime.now(UTC) + expires_in if expires_in else None
    saved = session.save_memory(key, text, tags=tags, expire_time=expire_time, etag=etag)
    output.record(asdict(saved), _SAVED_COLUMNS)


@memory.command(cls=Discreet)
@_KEY
@with_output
@with_session
def get(session: SessionClient, output: Output, key: str) -> None:
    """Show a memory at its highest visible level. In a pipe: the content alone, byte for byte.

    \b
    Examples:
      muniment memory get plan
      muniment memory get plan --json
      muniment memory get notes --agent alice --taint internal > notes.txt
    """
    found = session.get_memory(key)
    if output.as_json:
        output.record(asdict(found), ())
        return
    if output.on_terminal:
        output.record(asdict(found), _SAVED_COLUMNS)
    output.text(found.content)


@memory.command(cls=Discreet)
@click.argument("query", type=TEXT)
@click.option("--max-results", type=click.IntRange(1, 100), default=10, show_default=True)
@_TAGS
@click.option("--any-tag", is_flag=True, help="One of the tags will do.")
@with_output
@with_session
def search(
    session: SessionClient, output: Output, query: str, max_results: int, tags: tuple[str, ...], any_tag: bool
) -> None:
    """Search in plain language, best match first.

    \b
    Examples:
      muniment memory search friday
      muniment memory search "what ships when?" --tag work --max-results 3 --agent alice --taint internal
    """
    results = session.search_memories(query, max_results=max_results, tags=tags, tag_match="any" if any_tag else "all")
    output.rows(map(_found, results), _FOUND_COLUMNS)


@memory.command("list", cls=Discreet)
@click.option("--tag", type=TEXT, help="Only those with this tag.")
@with_output
@with_session
def list_(session: SessionClient, output: Output, tag: str | None) -> None:
    """List the visible memories by key, each at its highest visible level.

    \b
    Examples:
      muniment memory list
      muniment memory list --tag work --agent alice --taint confidential
    """
    output.rows(map(asdict, session.list_memories(tag)), _LIST_COLUMNS)


@memory.command(cls=Discreet)
@_KEY
@_ETAG
@with_session
def delete(session: SessionClient, key: str, etag: str | None) -> None:
    """Delete the version at the session's own level. It is kept for `muniment history`.

    \b
    Examples:
      muniment memory delete plan --agent alice --taint internal
    """
    revealed = session.delete_memory(key, etag=etag)
    note("Deleted." if revealed is None else f"Deleted; the version at {revealed.name} is seen again.")


def _standard_input() -> str:
    """All of it, as it is. Raises UnicodeError."""
    read = sys.stdin.buffer.read(_MOST_INPUT)
    if not read:
        raise Failure("there is no content on standard input", "give it as an argument, or pipe it in")
    return read.decode("utf-8")


def _found(result: MemoryResult) -> Row:
    return {"score": result.score, "snippet": result.snippet, **asdict(result.memory)}
