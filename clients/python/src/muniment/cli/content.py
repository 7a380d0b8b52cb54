"""Parts that several commands share: content from standard input, tags, expiry, etags, confirmation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import click

from muniment import Block, Classification, DeletedCount, Memory, Passage
from muniment.cli.failures import Failure
from muniment.cli.output import Row, print_note
from muniment.cli.parameters import DURATION, TEXT

Item = TypeVar("Item")

STANDARD_INPUT = "-"
_MAX_CONTENT_BYTES = 1024 * 1024
"""How many bytes are read for one item: more than the server accepts, so that the server reports the error."""
_MAX_FILE_BYTES = 16 * 1024 * 1024
"""How many bytes are read from a file."""


def _from_now(_context: click.Context, _parameter: click.Parameter, length: timedelta | None) -> datetime | None:
    try:
        return datetime.now(UTC) + length if length is not None else None
    except OverflowError:
        raise click.BadParameter("is too long") from None


CONTENT = click.argument("content", required=False, default=STANDARD_INPUT, type=TEXT)
TAGS = click.option(
    "--tag", "tags", multiple=True, type=TEXT, help="A tag of the item, commas included. May be repeated."
)
WITH_TAGS = click.option(
    "--tag", "tags", multiple=True, type=TEXT, help="Only items with this tag. If repeated, with all of them."
)
ANY_TAG = click.option("--any-tag", is_flag=True, help="With several --tag: match items with any of them.")
MAX_RESULTS = click.option(
    "--max-results",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="At most this many results, up to 100.",
)
MIN_RELEVANCE = click.option(
    "--min-relevance",
    type=click.FloatRange(min=0, max=1),
    default=0.0,
    metavar="SHARE",
    help="Only results with at least this relevance, from 0 to 1. Below 0.3, a result hardly fits. The default is all.",
)
LIMIT = click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="List only the first N. The default is all."
)
ETAG = click.option("--etag", type=TEXT, help="Only if this is still the current version.")
EXPIRES_IN = click.option(
    "--expires-in", "expire_time", type=DURATION, callback=_from_now, help="Let it expire after that time, such as 30d."
)


def read_content(content: str) -> str:
    """*content*, or standard input if *content* is `-`. Raises UnicodeError."""
    if content != STANDARD_INPUT:
        return content
    read = sys.stdin.buffer.read(_MAX_CONTENT_BYTES)
    if not read:
        raise Failure("there is no content on standard input", "give it as an argument, or pipe it in")
    return read.decode("utf-8")


def read_text(file: Path, *, at_most: int = _MAX_FILE_BYTES) -> str:
    """The text of *file*; `-` is standard input. Raises OSError, UnicodeError."""
    if str(file) == STANDARD_INPUT:
        read = sys.stdin.buffer.read(at_most + 1)
    else:
        with file.open("rb") as opened:
            read = opened.read(at_most + 1)
    if len(read) > at_most:
        raise Failure(f"the file is larger than {at_most // 1024**2} MiB", "split it")
    return read.decode("utf-8-sig")


def shown(item: Memory | Block | Passage) -> Row:
    """*item* as a row, after a remark if a lower version is newer."""
    if item.newer_below:
        level = item.newer_below.classification.name
        print_note(f"A newer version is at {level}: it was written {item.newer_below.update_time:%Y-%m-%d %H:%M} UTC.")
    return asdict(item)


def first(listing: Iterable[Item], limit: int | None) -> Iterator[Item]:
    """The first *limit* of a list, or all. Prints that there are more."""
    for number, each in enumerate(listing):
        if number == limit:
            print_note(click.style("there are more: give a higher --limit, or none", dim=True))
            return
        yield each


def print_deleted(revealed: Classification | None) -> None:
    """Print that an item is deleted, and the level of the version that is visible again."""
    print_note("Deleted." if revealed is None else f"Deleted; the version at {revealed.name} is now visible.")


def print_renamed(revealed: Classification | None) -> None:
    """Print that an item has another name, and the level of the version that is visible under the old one."""
    print_note("Renamed." if revealed is None else f"Renamed; the version at {revealed.name} is now visible.")


def delete_all(delete: Callable[[], DeletedCount], one: str, several: str) -> None:
    """Delete until there are no more, and print how many items were deleted."""
    count = 0
    more = True
    while more:
        deleted = delete()
        count += deleted.deleted_count
        more = deleted.more
    print_note(f"{count} {one if count == 1 else several} deleted.")


def print_how_found(results: Sized, *, semantic: bool) -> None:
    """Print that a search found nothing, or that it did not compare embeddings."""
    if not results:
        print_note(click.style("nothing found", dim=True))
    elif not semantic:
        print_note(click.style("only words were compared, no embeddings", dim=True))


def confirm(question: str) -> None:
    """Ask for confirmation on a terminal. Raises Abort if it is refused, and Failure if this is not a terminal."""
    if not sys.stdin.isatty():
        raise Failure("nothing was done: this is not a terminal, so the command cannot ask", "to confirm, give --yes")
    click.confirm(question, abort=True, err=True)
