"""`muniment memory`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

import click

from muniment import ItemKind, MemoryResult, SessionClient
from muniment.cli.connect import with_session
from muniment.cli.content import (
    ANY_TAG,
    CONTENT,
    ETAG,
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
    print_renamed,
    read_content,
    shown,
)
from muniment.cli.failures import Discreet
from muniment.cli.groups import Group
from muniment.cli.output import Output, Row, with_output
from muniment.cli.parameters import TEXT
from muniment.cli.versions import versions_of

_LIST_COLUMNS = ("key", "classification", "tags", "update_time", "content")
_SAVED_COLUMNS = ("key", "classification", "tags", "update_time", "expire_time", "etag")
_FOUND_COLUMNS = ("relevance", "key", "classification", "snippet")

_KEY = click.argument("key", type=TEXT)
_PREFIX = click.option("--prefix", "key_prefix", type=TEXT, help="Only those whose key begins with this text.")


@click.group(cls=Group)
def memory() -> None:
    """Memories by key, as one session sees them.

    The session is that of MUNIMENT_TOKEN; or --agent and --taint open one with the host key for this command only.

    \b
    Examples:
      muniment memory save plan "ship on Friday" --agent alice --taint internal
      muniment memory get plan --agent alice --taint internal
    """


@memory.command(cls=Discreet)
@_KEY
@CONTENT
@TAGS
@EXPIRES_IN
@ETAG
@with_output
@with_session
def save(
    session: SessionClient,
    output: Output,
    key: str,
    content: str,
    tags: tuple[str, ...],
    expire_time: datetime | None,
    etag: str | None,
) -> None:
    """Create or replace a memory at the session's own level. Tags are replaced, too.

    CONTENT is read from standard input if it is omitted or `-`.

    \b
    Examples:
      muniment memory save plan "ship on Friday" --tag work --agent alice --taint internal
      muniment memory save notes --expires-in 30d < notes.txt
    """
    saved = session.save_memory(key, read_content(content), tags=tags, expire_time=expire_time, etag=etag)
    output.record(asdict(saved), _SAVED_COLUMNS)


@memory.command(cls=Discreet)
@_KEY
@with_output
@with_session
def get(session: SessionClient, output: Output, key: str) -> None:
    """Show a memory at its highest visible level. In a pipe: only the content, byte for byte, and no line end after it.

    \b
    Examples:
      muniment memory get plan
      muniment memory get plan --json
      muniment memory get notes --agent alice --taint internal > notes.txt
    """
    output.document(shown(session.get_memory(key)), _SAVED_COLUMNS)


@memory.command(cls=Discreet)
@click.argument("query", type=TEXT)
@MAX_RESULTS
@MIN_RELEVANCE
@WITH_TAGS
@ANY_TAG
@_PREFIX
@with_output
@with_session
def search(
    session: SessionClient,
    output: Output,
    query: str,
    max_results: int,
    min_relevance: float,
    tags: tuple[str, ...],
    any_tag: bool,
    key_prefix: str | None,
) -> None:
    """Search in plain language, best match first.

    \b
    Examples:
      muniment memory search friday
      muniment memory search "what ships when?" --tag work --max-results 3 --agent alice --taint internal
    """
    found = session.search_memories(
        query,
        max_results=max_results,
        min_relevance=min_relevance,
        tags=tags,
        tag_match="any" if any_tag else "all",
        key_prefix=key_prefix,
    )
    output.rows(map(_found, found), _FOUND_COLUMNS, query=query)
    print_how_found(found, semantic=found.semantic)


@memory.command("list", cls=Discreet)
@click.option("--tag", type=TEXT, help="Only those with this tag.")
@_PREFIX
@LIMIT
@with_output
@with_session
def list_(session: SessionClient, output: Output, tag: str | None, key_prefix: str | None, limit: int | None) -> None:
    """List the visible memories by key.

    Each is shown at its highest visible level.

    \b
    Examples:
      muniment memory list --limit 20
      muniment memory list --tag work --agent alice --taint confidential
      muniment memory list --prefix project/
    """
    output.rows(map(asdict, first(session.list_memories(tag, key_prefix=key_prefix), limit)), _LIST_COLUMNS)


@memory.command(cls=Discreet)
@_KEY
@click.argument("new_key", type=TEXT)
@ETAG
@with_session
def rename(session: SessionClient, key: str, new_key: str, etag: str | None) -> None:
    """Give the version at the session's own level another key.

    It keeps its content, tags and earlier versions. A lower version of KEY, if there is one, is visible from then on.
    If a memory with the key NEW_KEY is visible, nothing is renamed.

    \b
    Examples:
      muniment memory rename plan plan-2026 --agent alice --taint internal
    """
    print_renamed(session.rename_memory(key, new_key, etag=etag).revealed)


@memory.command(cls=Discreet)
@click.argument("key", type=TEXT, required=False)
@click.option("--tag", type=TEXT, help="Delete all memories with this tag instead.")
@ETAG
@with_session
def delete(session: SessionClient, key: str | None, tag: str | None, etag: str | None) -> None:
    """Delete the version at the session's own level. It is kept for `muniment history`.

    With --tag, delete all memories of the session's own level that have the tag.

    \b
    Examples:
      muniment memory delete plan --agent alice --taint internal
      muniment memory delete --tag draft --agent alice --taint internal
    """
    if (key is None) == (tag is None) or (tag is not None and etag is not None):
        raise click.UsageError("name a KEY, or --tag without --etag")
    if key is not None:
        print_deleted(session.delete_memory(key, etag=etag))
    elif tag is not None:
        delete_all(lambda: session.delete_memories(tag), "memory", "memories")


memory.add_command(versions_of(ItemKind.MEMORY, "KEY", example="plan"))


def _found(result: MemoryResult) -> Row:
    return {"relevance": result.relevance, "score": result.score, "snippet": result.snippet, **asdict(result.memory)}
