"""Reads JSON objects field by field. Errors give the place and the name, never the value."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from muniment.cli.transfer.items import Unreadable

_T = TypeVar("_T")
_MAX_NAMES = 20
"""How many names a remark shows."""
_MAX_NAME = 64


class _Repeated(ValueError):
    """An object has the same name twice. Parsers disagree about which value counts."""


def loaded(where: str, written: bytes | str) -> Any:
    """A JSON value. Raises Unreadable."""
    try:
        text = written.decode("utf-8-sig") if isinstance(written, bytes) else written  # json would take UTF-16, too
        return json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_object)
    except UnicodeDecodeError:
        raise Unreadable(where, "is not in UTF-8") from None
    except json.JSONDecodeError as error:
        raise Unreadable(where, f"is not JSON: {error.msg}, at character {error.pos + 1}") from None
    except _Repeated:
        raise Unreadable(where, "has a name twice in one object") from None
    except (ValueError, RecursionError):
        raise Unreadable(where, "is not readable JSON") from None


def _refuse(_name: str) -> None:
    raise ValueError


def _finite(written: str) -> float:
    """A number that JSON can be written with again. ValueError: it is too large."""
    number = float(written)
    if math.isinf(number):
        raise ValueError
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _Repeated
    return made


class Fields:
    """One object, and its place in the file."""

    def __init__(self, where: str, given: object) -> None:
        if not isinstance(given, Mapping):
            raise Unreadable(where, "is not a JSON object")
        self.where = where
        self._given = given
        self._read: set[str] = set()
        self._inner: dict[str, Fields] = {}

    def __contains__(self, name: str) -> bool:
        return self._value(name) is not None

    def text(self, name: str, *, default: str | None = None) -> str:
        """A string. Required unless there is a *default*."""
        value = self._value(name)
        if value is None and default is not None:
            return default
        return self._of(str, name, value, "a string")

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings, empty if it is absent."""
        each = self.list(name)
        if not all(isinstance(value, str) for value in each):
            raise Unreadable(self.where, f"{name} must be a list of strings")
        return tuple(each)

    def texts_if_all(self, name: str) -> tuple[str, ...]:
        """A list of strings that are not empty. Anything else counts as not read."""
        match self._given.get(name):
            case [*texts] if all(isinstance(text, str) and text for text in texts):
                return self.texts(name)
        return ()

    def list(self, name: str) -> list[Any]:
        """A list, empty if it is absent."""
        value = self._value(name)
        return [] if value is None else self._of(list, name, value, "a list")

    def json_object(self, name: str) -> dict[str, Any]:
        """An object. Required."""
        return self._of(dict, name, self._value(name), "an object")

    def inner(self, name: str) -> Fields:
        """The fields of an object. If it is absent, it has none."""
        if name not in self._inner:
            self._inner[name] = Fields(self.where, self.json_object(name) if name in self else {})
        return self._inner[name]

    def unread(self) -> Iterable[str]:
        """The names of the fields that have a value and were not read, such as `metadata.source`."""
        yield from (name for name, value in self._given.items() if name not in self._read and value not in _EMPTY)
        for name, fields in self._inner.items():
            yield from (f"{name}.{each}" for each in fields.unread())

    def whole(self, name: str) -> int | None:
        """A whole number, or None."""
        value = self._value(name)
        return None if value is None else self._of(int, name, value, "a whole number")

    def time(self, name: str, *, zone: bool = True) -> datetime | None:
        """A time in ISO 8601, or None. If *zone* is not required, a time without one is in UTC."""
        if name not in self:
            return None
        moment = time_of(self.text(name))
        if moment is None or (zone and moment.tzinfo is None):
            raise Unreadable(self.where, f"{name} must be a time, such as 2026-11-22T09:30:00Z")
        moment = in_utc(moment)
        if moment.utcoffset():  # in_utc returns a time unchanged if it is outside the calendar in UTC
            raise Unreadable(self.where, f"{name} must be a time from year 1 to 9999 in UTC")
        return moment

    def refuse_others(self) -> None:
        """Raise Unreadable if the object has a field that was not read, whose value would be lost."""
        others = len(self._given.keys() - self._read)
        if others:
            known = ", ".join(sorted(self._read))
            raise Unreadable(self.where, f"has {others} unknown field(s); known here are {known}")

    def _value(self, name: str) -> Any:
        self._read.add(name)
        return self._given.get(name)

    def _of(self, kind: type[_T], name: str, value: object, what: str) -> _T:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise Unreadable(self.where, f"{name} must be {what}")
        return value


_EMPTY: tuple[object, ...] = (None, "", [], {})


def omitted(objects: Iterable[Fields]) -> tuple[str, ...]:
    """A remark on the fields that were not read, if there are any: the name of each, and how many objects have it."""
    counts = Counter(name for fields in objects for name in fields.unread())
    if not counts:
        return ()
    names = [f"{ascii(name)[1:-1][:_MAX_NAME]} ({count})" for name, count in sorted(counts.items())[:_MAX_NAMES]]
    more = [f"{len(counts) - _MAX_NAMES} more"] if len(counts) > _MAX_NAMES else []
    return (f"omitted fields: {', '.join([*names, *more])}",)


def time_of(written: str) -> datetime | None:
    """The time in the text, with or without a zone. None if the text is not a timestamp."""
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        return None


def in_utc(moment: datetime) -> datetime:
    """The same time in UTC. A time without a zone is taken as UTC; one at either end of the calendar keeps its zone."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment
