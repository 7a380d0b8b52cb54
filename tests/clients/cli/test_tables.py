"""What a list shows at a terminal: all of each text, key, id, level and time, at any width."""

from __future__ import annotations

import ast
import importlib
import io
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

import muniment.cli
import muniment_server
from muniment import Classification
from muniment.cli.output import Output, as_table

URL = "https://intranet.example/wiki/projects/2026/q4/launch-plan/owners?view=all&sort=desc"
KEY = "projects/2026/q4/launch-plan/owners/and/their/deputies/list-of-names"
CHINESE = "用户每天早上七点喝一杯绿茶，不喝咖啡，晚上十点以前睡觉，周末和女儿一起去游泳，最近在学习弹钢琴。"
TEXTS = (KEY, CHINESE, f"See {URL} for owners", "नमस्ते 👩‍👩‍👧‍👦 안녕하세요 ﷺ é", "short", "")
UUID = "a2079a01-dbdd-484c-b7be-3fbd12345401"
WHEN = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
VALUES = {
    "tags": ("one, with a comma", URL),
    "head_hash": "0123456789abcdef" * 4,
    "etag": "ooy6uxdiSG28CuZb0k6ojAAAAAE",
}
WORDS = {
    "content", "snippet", "preview", "thread", "author", "reason", "display_name", "key", "name", "label", "tenant",
    "value",
}  # fmt: skip
LEVELS = {"classification", "taint", "ceiling", "known_from", "level"}


def columns_of_commands() -> dict[str, tuple[str, ...]]:
    """The columns of each list and record that a command shows, by where it stands."""
    found = {}
    for package in (muniment.cli, muniment_server):
        root = Path(package.__path__[0])
        for file in root.rglob("*.py"):
            name = ".".join([package.__name__, *file.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")
            for call in ast.walk(ast.parse(file.read_text("utf-8"))):
                match call:
                    case ast.Call(
                        func=ast.Attribute(value=ast.Name("output"), attr="rows" | "record"), args=[_, given]
                    ):
                        found[f"{name}:{call.lineno}"] = columns_in(name, given)
    return found


def columns_in(module: str, given: ast.expr) -> tuple[str, ...]:
    """The columns that an argument names. All constants of its module, if it is a variable."""
    constants = vars(importlib.import_module(module))
    try:
        return tuple(eval(ast.unparse(given), dict(constants)))  # the source of this repository
    except NameError:
        return ("name", "value", *constants.get("_COLUMNS", ()))


LISTS = columns_of_commands()


def rows_of(columns: tuple[str, ...]) -> list[dict[str, object]]:
    """Rows in which each column has another text."""
    return [
        {column: value(column, TEXTS[(place + turn) % len(TEXTS)]) for place, column in enumerate(columns)}
        for turn in range(2)
    ]


def value(column: str, text: str) -> object:
    if column in WORDS:
        return text
    if column in LEVELS:
        return Classification.CONFIDENTIAL
    if column == "time" or column.endswith("_time"):
        return WHEN
    return VALUES.get(column, UUID if column.endswith("_id") else 1_234_567)


def shown_at(width: int, rows: list[dict[str, object]], columns: tuple[str, ...], encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding, errors="strict", write_through=True) as file:
        console = Console(file=file, width=width, color_system=None)
        console.print(as_table(rows, columns, console))
        return raw.getvalue().decode(encoding)


def letters(*texts: str) -> Counter[str]:
    return Counter(letter for text in texts for letter in text if not letter.isspace())


def expected_cells(rows: list[dict[str, object]], columns: list[str], encoding: str) -> list[str]:
    return [
        in_a_cell(each[column]).encode(encoding, "backslashreplace").decode(encoding)
        for each in rows
        for column in columns
    ]


def in_a_cell(value: object) -> str:
    match value:
        case Classification():
            return value.name
        case datetime():
            return "2026-11-22 09:30:00Z"
        case tuple():
            return ", ".join(str(each).replace(",", r"\,") for each in value)
    return str(value)


def test_the_lists_of_commands_are_found():
    assert len(LISTS) > 25
    assert ("key", "classification", "tags", "update_time", "content") in LISTS.values()


@pytest.mark.parametrize("columns", sorted(set(LISTS.values())), ids="-".join)
def test_no_list_cuts_anything_at_any_width(columns):
    for width in range(60, 261):
        assert_whole(columns, width, "utf-8")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_a_letter_shows_its_number(encoding):
    for width in range(60, 261, 10):
        assert_whole(("key", "classification", "tags", "content"), width, encoding)


def assert_whole(columns: tuple[str, ...], width: int, encoding: str) -> None:
    rows = rows_of(columns)
    filled = [column for column in columns if any(each[column] for each in rows)]
    titles = [column.replace("_", " ") for column in filled]
    cells = expected_cells(rows, filled, encoding)
    on_one_line = {UUID, "CONFIDENTIAL", "2026-11-22 09:30:00Z"} & {*cells}

    shown = shown_at(width, rows, columns, encoding)
    lines = shown.splitlines()

    assert letters(shown) in (letters(*titles, *cells), letters(*titles * len(rows), *cells)), width
    assert max(map(cell_len, lines)) <= width
    assert all(any(cell in line for line in lines) for cell in on_one_line), width


def is_table(shown: str) -> bool:
    return shown.splitlines()[0].split() == ["key", "classification", "content"]


def test_a_long_key_is_folded_and_the_list_stays_a_table():
    columns = ("key", "classification", "content")
    rows = [{"key": key, "classification": Classification.PUBLIC, "content": "Kim"} for key in ("tea", KEY)]

    assert is_table(shown_at(60, rows, columns))
    assert shown_at(60, rows, columns).splitlines()[1].split() == ["tea", "PUBLIC", "Kim"]


def test_a_column_that_is_empty_in_all_rows_is_left_out():
    row = {"key": "tea", "classification": Classification.PUBLIC, "tags": (), "expire_time": None, "content": "Kim"}

    assert is_table(shown_at(80, [row], tuple(row)))


def test_a_terminal_that_is_too_narrow_for_a_table_shows_lines():
    row = {"key": KEY, "classification": Classification.PUBLIC, "update_time": WHEN, "content": CHINESE}

    assert shown_at(60, [row], tuple(row)).splitlines()[0].startswith("key ")
    assert KEY in "".join(shown_at(60, [row], tuple(row)).split())
    assert KEY in "".join(shown_at(20, [row], ("key",)).split())


@pytest.mark.parametrize(
    ("tags", "shown"),
    [
        (("a", "b"), "a, b"),
        (("a, b",), r"a\, b"),
        (("a\\", "b"), r"a\\, b"),
        (("a\\, b",), r"a\\\, b"),
        (("a\tb",), r"a\tb"),
    ],
)
def test_tags_read_alike_only_if_they_are_alike(tags, shown, capsys):
    Output(as_json=False).line({"tags": tags}, ("tags",))

    assert capsys.readouterr().out == f"{shown}\n"
