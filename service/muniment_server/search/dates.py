"""Reads the dates of a query, in their usual forms. The index has the day of an item as words: `3 November 2025`."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from datetime import date
from types import MappingProxyType

_NAMES = (*((name.lower(), month) for month, name in enumerate(calendar.month_name) if name), ("sept", 9))
_MONTHS = MappingProxyType(dict([*_NAMES, *((name[:3], month) for name, month in _NAMES)]))
"""The numbers of months, by English name and abbreviation."""
_NUMBERS = (
    re.compile(r"(?<![\d.,/-])(?P<year>\d{4})(?:[-/.]|年)(?P<month>\d\d?)(?:[-/.]|月)(?P<day>\d\d?)(?!\.?\d)"),
    re.compile(r"(?<![\d.,/-])(?P<day>\d\d?)(?P<sign>[./-])(?P<month>\d\d?)(?P=sign)(?P<year>\d{4})(?!\.?\d)"),
    re.compile(r"(?<![\d.,/-])(?P<month>\d\d?)/(?P<day>\d\d?)/(?P<year>\d{4})(?!\.?\d)"),
)
"""Dates in digits: the year first; the day before the month; with slashes also the month before the day."""
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})\b\.?"
_WORDS = (
    re.compile(rf"(?i)(?<!\d)(?P<day>\d\d?)(?:st|nd|rd|th|\.)? (?:of )?{_MONTH}(?:,? (?P<year>\d{{4}}))?(?!\d)"),
    re.compile(rf"(?i)\b{_MONTH} (?P<day>\d\d?)(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?(?!\d)"),
)
_LEAP_YEAR = 2000
"""Used for dates without a year, so that 29 February is one."""


def dates(text: str) -> list[str]:
    """The dates in *text*, in the words of the index, each once. A date that can be read in two ways is two."""
    return list(dict.fromkeys(_dates(text)))


def _dates(text: str) -> Iterator[str]:
    for form in (*_NUMBERS, *_WORDS):
        for found in form.finditer(text):
            year = found["year"] and int(found["year"])
            try:
                day = date(year or _LEAP_YEAR, _month(found["month"]), int(found["day"]))
            except ValueError:
                continue
            yield f"{day.day} {calendar.month_name[day.month]}{f' {year}' if year else ''}"


def _month(text: str) -> int:
    return int(text) if text.isdecimal() else _MONTHS[text.lower()]
