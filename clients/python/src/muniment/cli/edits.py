"""Edits of notes in a file: JSON Lines, a JSON array, or both. Errors do not repeat the content of the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from muniment import AddNote, DeleteNote, NoteEdit, UpdateNote
from muniment.cli.failures import Failure

_HINT = """write one a line: {"add": {"content": "…"}}, {"update": {"note_id": "…", "content": "…"}} or \
{"delete": {"note_id": "…"}}"""


class _Kind(NamedTuple):
    """One kind of edit, and its required and allowed fields."""

    made: type[NoteEdit]
    needed: frozenset[str]
    allowed: frozenset[str]


_KINDS = {
    "add": _Kind(AddNote, frozenset({"content"}), frozenset({"content", "note_id"})),
    "update": _Kind(UpdateNote, frozenset({"note_id", "content"}), frozenset({"note_id", "content"})),
    "delete": _Kind(DeleteNote, frozenset({"note_id"}), frozenset({"note_id"})),
}


def read(text: str) -> list[NoteEdit]:
    """The edits in *text*, in its order. Raises Failure."""
    edits = [_edit(value, number) for number, value in enumerate(_values(text), start=1)]
    if not edits:
        raise Failure("there are no edits", _HINT)
    return edits


def _values(text: str) -> Iterator[Any]:
    """The JSON values in *text*, one after another; an array gives its elements."""
    decoder = json.JSONDecoder(object_pairs_hook=_object)
    begin = _after_space(text, 0)
    while begin < len(text):
        try:
            value, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            raise Failure(f"line {text.count(chr(10), 0, begin) + 1} begins what is not JSON", _HINT) from None
        yield from value if isinstance(value, list) else [value]
        begin = _after_space(text, end)


def _after_space(text: str, begin: int) -> int:
    while begin < len(text) and text[begin] in " \t\r\n":
        begin += 1
    return begin


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object has a repeated name")
    return made


def _edit(value: object, number: int) -> NoteEdit:
    match value:
        case Mapping() if len(value) == 1:
            [(name, fields)] = value.items()
        case _:
            raise _not_understood(number, "is not an object with one of add, update and delete")
    kind = _KINDS.get(name)
    if kind is None:
        raise _not_understood(number, "is neither add, update nor delete")
    if not isinstance(fields, Mapping) or not kind.needed <= fields.keys() <= kind.allowed:
        optional = "".join(f", and may have {each}" for each in kind.allowed - kind.needed)
        raise _not_understood(number, f"needs {' and '.join(sorted(kind.needed))}{optional}")
    if not all(isinstance(each, str) for each in fields.values()):
        raise _not_understood(number, "has a field that is not text")
    return kind.made(**fields)


def _not_understood(number: int, why: str) -> Failure:
    return Failure(f"edit {number} {why}", _HINT)
