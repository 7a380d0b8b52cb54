"""The types of parameters on the command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from muniment.values import Classification, Integrity

LEVEL = click.Choice(Classification, case_sensitive=False)
"""A level, in upper or lower case."""
INTEGRITY = click.Choice(Integrity, case_sensitive=False)
"""An integrity, in upper or lower case."""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class DurationType(click.ParamType[timedelta]):
    """A length of time: `90d`, `12h`, `30m`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        match = re.fullmatch(r"([0-9]{1,6})([smhdw])", str(value))
        if match is None:
            self.fail("is not a length of time: give a number and s, m, h, d or w, such as 90d", param, ctx)
        return timedelta(**{_UNITS[match[2]]: int(match[1])})


def in_words(length: timedelta) -> str:
    """*length* as the option takes it, in days or the largest unit below that fits: `90d`, `36h`, `0d`."""
    seconds = int(length.total_seconds())
    unit, size = next(
        (unit, size) for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)) if seconds % size == 0
    )
    return f"{seconds // size}{unit}"


class TimeType(click.ParamType[datetime]):
    """A moment in RFC 3339, or a day: its midnight in UTC."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        text = str(value).upper()
        if re.fullmatch(r"[0-9-]{10}(T[0-9:]{8}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2}))?", text) is None:
            self.fail("is not a time: give a day such as 2026-11-22, or 2026-11-22T09:30:00Z with its zone", param, ctx)
        try:
            moment = datetime.fromisoformat(text)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.fail("is not in the calendar", param, ctx)


class LineType(click.ParamType[int]):
    """A line number. Errors do not repeat the value: it may be misplaced content."""

    name = "line"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if re.fullmatch(r"[0-9]{1,9}", str(value)) is None:
            self.fail("is not a line number: 0 is before the first", param, ctx)
        return int(str(value))


class TextType(click.ParamType[str]):
    """Text in UTF-8. Errors do not repeat it."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(value).encode().decode()
        except UnicodeEncodeError:
            self.fail("is not in UTF-8", param, ctx)


DURATION = DurationType()
LINE = LineType()
TEXT = TextType()
TIME = TimeType()
FILE = click.Path(path_type=Path, allow_dash=True)
"""A file to read. `-` is standard input."""
