"""What commands print: tables on a terminal, tab-separated lines in a pipe, JSON objects with --json.

Content comes from agents, so control characters and line ends in it are escaped.
"""

from __future__ import annotations

import functools
import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muniment.cli.highlight import highlight

Row = Mapping[str, Any]

LEVEL_STYLES = {"PUBLIC": "green", "INTERNAL": "cyan", "CONFIDENTIAL": "yellow", "RESTRICTED": "bold red"}
_MAX_CELL_CHARS = 200
_MAX_WIDTH = 1_000_000
"""More columns than any terminal has."""
_MAY_WRAP = {"content", "snippet", "preview", "tags", "thread", "author", "reason", "display_name"}
_STEERING = {"Cc", "Cf", "Zl", "Zp"}


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
        Console(stderr=self.beside).print(_stacked(row, columns))

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
        rows = iter(rows)
        first = next(rows, None)
        if first is None:
            print_note("none")
            return
        every = [first, *rows]
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for column in columns:
            title = _title(column)
            table.add_column(title, no_wrap=column not in _MAY_WRAP, overflow="fold", min_width=len(title))
        for row in every:
            table.add_row(*_cells(row, columns, query, longest=_MAX_CELL_CHARS))
        console = Console(stderr=self.beside)
        unbounded = console.options.update(width=_MAX_WIDTH)  # rich measures no wider than its options allow
        if console.measure(table, options=unbounded).minimum <= console.width:
            console.print(table)
            return
        for row in every:  # too narrow for a table: ids and levels must not be cut
            filled = [column for column in columns if _cell(row[column])]
            console.print(_stacked(row, filled, query), "")

    def _lines(self, rows: Iterable[Row], columns: Sequence[str]) -> None:
        for row in rows:
            if self.as_json:
                click.echo(json.dumps(_jsonable(row)), err=self.beside)
            else:
                click.echo("\t".join(harmless(_cell(row[column])) for column in columns), err=self.beside)


def _stacked(row: Row, columns: Sequence[str], query: str = "") -> Table:
    """One row, a line for each column."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    for column, cell in zip(columns, _cells(row, columns, query, longest=None), strict=True):
        grid.add_row(_title(column), cell)
    return grid


def _cells(row: Row, columns: Sequence[str], query: str, *, longest: int | None) -> Iterator[Text]:
    for column in columns:
        cell = _styled(row[column], longest=longest)
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


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case Enum():
            return value.name
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        case tuple():
            return ", ".join(map(str, value))
        case float():
            return f"{value:.3f}"
    return str(value)


def _jsonable(value: Any) -> Any:
    match value:
        case Enum():
            return value.name
        case datetime():
            return value.isoformat()
        case Mapping():
            return {name: _jsonable(each) for name, each in value.items()}
        case tuple() | list():
            return [_jsonable(each) for each in value]
        case None | str() | bool() | int() | float():
            return value
    return str(value)


def _styled(value: object, *, longest: int | None) -> Text:
    cell = _cell(value)
    shown = cell if longest is None or len(cell) <= longest else cell[: longest - 1] + "…"
    kept = "\\\n" if longest is None else "\\"
    return Text(harmless(shown, kept=kept), style=LEVEL_STYLES.get(cell, "") if isinstance(value, Enum) else "")


def harmless(text: str, *, kept: str = "") -> str:
    """*text* with control and format characters, line ends and backslashes escaped, except those in *kept*."""
    return "".join(letter if letter in kept or not _steers(letter) else _escaped(letter) for letter in text)


def _steers(letter: str) -> bool:
    return letter == "\\" or (unicodedata.category(letter) in _STEERING and letter not in "\u200c\u200d")


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
