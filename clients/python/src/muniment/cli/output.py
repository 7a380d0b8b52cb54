"""What commands print: tables on a terminal, tab-separated lines in a pipe, JSON objects with --json.

Content comes from agents, so control characters and line ends in it are escaped.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import chain
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from muniment.cli.highlight import highlight
from muniment.cli.parameters import in_words

Row = Mapping[str, Any]

LEVEL_STYLES = {"PUBLIC": "green", "INTERNAL": "cyan", "CONFIDENTIAL": "yellow", "RESTRICTED": "bold red"}
_TEXTS = {
    "content", "snippet", "preview", "tags", "thread", "author", "reason", "display_name", "key", "name", "label",
    "tenant", "agent", "changed",
}  # fmt: skip
_LEAST = {"text": 24, "id": 36, "other": 64}
"""The longest value of each kind of column that a table never folds. An id is a UUID, or a longer name."""
_GAP = 2
_STEERING = {"Cc", "Cf", "Zl", "Zp"}
_INVISIBLE = {
    *"\u034f\u115f\u1160\u17b4\u17b5\u2065\u2800\u3164\uffa0",
    *map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE0E), *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000))),
}
"""What shows nothing, also where no character is assigned yet: a text could hide another one in it from whoever reviews
it. Not the two with which emoji are chosen."""
_JOINING = "\u200c\u200d"
_JOINED = re.compile("(?<=[\u200c\u200d\ufe0e\ufe0f])(?!(?<=\ufe0f)\u200d)[\u200c\u200d\ufe0e\ufe0f]")
"""A joiner, or a selector of emoji, after another one. Only in emoji, a joiner may follow a selector."""


class Output:
    """Prints the answer of a command: to stdout, or with *beside* to stderr."""

    def __init__(self, *, as_json: bool, beside: bool = False) -> None:
        self.as_json = as_json
        self.beside = beside
        self.on_terminal = (sys.stderr if beside else sys.stdout).isatty() and not as_json

    def rows(self, rows: Iterable[Row], columns: Sequence[str], *, query: str = "") -> None:
        """Show several rows. *columns* are those of tables and lines; JSON has every field.

        On a terminal, words of *query* are highlighted in the column `snippet`.
        """
        if self.on_terminal:
            self._table(rows, columns, query)
        else:
            self._lines(rows, columns)

    def record(self, row: Row, columns: Sequence[str]) -> None:
        """Show one row."""
        if not self.on_terminal:
            self._lines([row], columns)
            return
        console = Console(stderr=self.beside)
        console.print(_stacked(row, columns, console))

    def line(self, row: Row, columns: Sequence[str]) -> None:
        """Show one row at once, as a line even on a terminal."""
        self._lines([row], columns)

    def document(self, row: Row, columns: Sequence[str]) -> None:
        """Show one row and its content. In a pipe: only the content, byte for byte."""
        if self.as_json:
            self.record(row, ())
            return
        if self.on_terminal:
            self.record(row, columns)
        self.text(row["content"])

    def text(self, text: str) -> None:
        """Show text: on a terminal with control characters escaped, in a pipe byte for byte."""
        if self.on_terminal:
            click.echo(harmless(text, kept="\\\n\t"))
        else:
            sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()

    def _table(self, rows: Iterable[Row], columns: Sequence[str], query: str) -> None:
        every = [*rows]
        if not every:
            print_note("none")
            return
        console = Console(stderr=self.beside)
        console.print(as_table(every, columns, console, query))

    def _lines(self, rows: Iterable[Row], columns: Sequence[str]) -> None:
        for row in rows:
            if self.as_json:
                click.echo(json.dumps(_jsonable(row)), err=self.beside)
            else:
                click.echo("\t".join(_cell(row[column]) for column in columns), err=self.beside)


def as_table(rows: Sequence[Row], columns: Sequence[str], console: Console, query: str = "") -> RenderableType:
    """A table without the columns that are empty in all rows. Lines for each row, if the terminal is too narrow."""
    filled = [column for column in columns if any(_cell(row[column]) for row in rows)]
    cells = [[*_cells(row, filled, console, query)] for row in rows]
    widths = _widths(filled, cells, console.width)
    if widths is None:
        lines: Iterator[tuple[RenderableType, ...]] = ((_stacked(row, filled, console, query), "") for row in rows)
        return Group(*chain.from_iterable(lines))
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="dim")
    for column, width in zip(filled, widths, strict=True):
        table.add_column(_title(column), width=width, overflow="fold")
    for row in cells:
        table.add_row(*row)
    return table


def _widths(columns: Sequence[str], cells: Sequence[Sequence[Text]], room: int) -> list[int] | None:
    """The width of each column of a table. None if *room* is too narrow for a table that one can read.

    Where there is no room for all of a text, it is folded.
    """
    needed = [max(len(_title(column)), *(row[i].cell_len for row in cells)) for i, column in enumerate(columns)]
    widths = [min(need, max(len(_title(each)), _least(each))) for need, each in zip(needed, columns, strict=True)]
    left = room - sum(widths) - _GAP * len(widths)
    if left < 0:
        return None
    growing = sorted(range(len(widths)), key=lambda i: needed[i] - widths[i])
    for others, i in zip(reversed(range(len(widths))), growing, strict=True):
        grown = min(needed[i] - widths[i], left // (others + 1))
        widths[i] += grown
        left -= grown
    return widths


def _least(column: str) -> int:
    return _LEAST["text" if column in _TEXTS else "id" if column.endswith("_id") else "other"]


def _stacked(row: Row, columns: Sequence[str], console: Console, query: str = "") -> Table:
    """One row, a line for each column."""
    grid = Table.grid(padding=(0, _GAP))
    grid.add_column(style="dim", overflow="fold")
    grid.add_column(overflow="fold")
    for column, cell in zip(columns, _cells(row, columns, console, query, kept="\\\n"), strict=True):
        grid.add_row(_title(column), cell)
    return grid


def _cells(row: Row, columns: Sequence[str], console: Console, query: str, kept: str = "\\") -> Iterator[Text]:
    for column in columns:
        value = row[column]
        # What the terminal cannot show is escaped before it is measured.
        shown = _cell(value, kept).encode(console.encoding, "backslashreplace").decode(console.encoding)
        cell = Text(shown, style=LEVEL_STYLES.get(shown, "") if isinstance(value, Enum) else "")
        if column == "snippet":
            highlight(cell, query)
        yield cell


def with_output(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option --json, and *output* to show its answer."""

    @click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="One JSON object a line. Without it, a pipe gets the columns of the terminal's table, separated by tabs.",
    )
    @functools.wraps(command)
    def with_option(*positional: Any, as_json: bool, **arguments: Any) -> None:
        command(*positional, output=Output(as_json=as_json), **arguments)

    return with_option


def print_note(text: str) -> None:
    """Print a remark on stderr."""
    click.echo(text, err=True)


def _title(column: str) -> str:
    return column.replace("_", " ")


def _cell(value: object, kept: str = "") -> str:
    """*value* as text without control characters. Those in *kept* stay."""
    match value:
        case None:
            return ""
        case Enum():
            return value.name
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        case timedelta():
            return in_words(value)
        case tuple():
            return ", ".join(harmless(str(each)).replace(",", r"\,") for each in value)
        case float():
            return f"{value:.3f}"
    return harmless(str(value), kept=kept)


def _jsonable(value: Any) -> Any:
    match value:
        case Enum():
            return value.name
        case datetime():
            return value.isoformat()
        case timedelta():
            return in_words(value)
        case Mapping():
            return {name: _jsonable(each) for name, each in value.items()}
        case tuple() | list():
            return [_jsonable(each) for each in value]
        case None | str() | bool() | int() | float():
            return value
    return str(value)


def harmless(text: str, *, kept: str = "") -> str:
    """*text* with what is invisible, line ends and backslashes escaped, except what is in *kept*."""
    shown = "".join(letter if letter in kept or not _steers(letter) else _escaped(letter) for letter in text)
    return _JOINED.sub(lambda found: _escaped(found[0]), shown)


@functools.lru_cache(maxsize=4096)
def _steers(letter: str) -> bool:
    if letter in _INVISIBLE or letter == "\\":
        return True
    return unicodedata.category(letter) in _STEERING and letter not in _JOINING


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
