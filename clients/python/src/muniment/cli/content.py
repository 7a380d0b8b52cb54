"""What commands share: content from standard input, tags, lifetimes, versions, asking before something is lost."""

from __future__ import annotations

import sys
from collections.abc import Sized
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from muniment import Classification
from muniment.cli.failures import Failure
from muniment.cli.output import note
from muniment.cli.parameters import DURATION, TEXT

STANDARD_INPUT = "-"
_MOST_CONTENT = 1024 * 1024
"""Bytes of one content: more than the service takes, so that too much is refused, not cut."""
_MOST_FILE = 16 * 1024 * 1024
"""Bytes of a file of several."""


def _from_now(_context: click.Context, _parameter: click.Parameter, length: timedelta | None) -> datetime | None:
    try:
        return datetime.now(UTC) + length if length is not None else None
    except OverflowError:
        raise click.BadParameter("is too long") from None


CONTENT = click.argument("content", required=False, default=STANDARD_INPUT, type=TEXT)
TAGS = click.option("--tag", "tags", multiple=True, type=TEXT, help="May be given several times.")
ANY_TAG = click.option("--any-tag", is_flag=True, help="One of the tags will do.")
MAX_RESULTS = click.option("--max-results", type=click.IntRange(min=1), default=10, show_default=True)
ETAG = click.option("--etag", type=TEXT, help="Only if this is still the version that is seen.")
EXPIRES_IN = click.option(
    "--expires-in", "expire_time", type=DURATION, callback=_from_now, help="Forget it after that long, such as 30d."
)


def given(content: str) -> str:
    """*content*, or what is on standard input when it is `-`. Raises UnicodeError."""
    if content != STANDARD_INPUT:
        return content
    read = sys.stdin.buffer.read(_MOST_CONTENT)
    if not read:
        raise Failure("there is no content on standard input", "give it as an argument, or pipe it in")
    return read.decode("utf-8")


def text_of(file: Path, *, at_most: int = _MOST_FILE) -> str:
    """What *file* holds; `-` is standard input. Raises OSError, UnicodeError."""
    if str(file) == STANDARD_INPUT:
        read = sys.stdin.buffer.read(at_most + 1)
    else:
        with file.open("rb") as opened:
            read = opened.read(at_most + 1)
    if len(read) > at_most:
        raise Failure(f"the file is larger than {at_most // 1024**2} MiB", "split it")
    return read.decode("utf-8-sig")


def say_deleted(revealed: Classification | None) -> None:
    """Say that an item is gone, and what is seen in its place."""
    note("Deleted." if revealed is None else f"Deleted; the version at {revealed.name} is seen again.")


def say_how_found(results: Sized, *, semantic: bool) -> None:
    """Say that a search found nothing, or what it found by words alone."""
    if not results:
        note(click.style("nothing found", dim=True))
    elif not semantic:
        note(click.style("by words alone: no meaning was compared", dim=True))


def confirm(question: str) -> None:
    """Ask, on a terminal. Raises Abort on no, and Failure where there is nobody to ask."""
    if not sys.stdin.isatty():
        raise Failure("nothing was done: there is nobody to ask", "if you mean it, give --yes")
    click.confirm(question, abort=True, err=True)
