"""Kinds of values on the command line."""

from __future__ import annotations

import re
from datetime import timedelta

import click

from muniment_server.domain.classification import Classification

LEVEL = click.Choice(Classification, case_sensitive=False)
"""A level, in any case."""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class DurationType(click.ParamType[timedelta]):
    """A length of time: `90d`, `12h`, `30m`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        match = re.fullmatch(r"([0-9]{1,6})([smhdw])", str(value))
        if match is None:
            self.fail("is no length of time: give a number and s, m, h, d or w, such as 90d", param, ctx)
        return timedelta(**{_UNITS[match[2]]: int(match[1])})


class TextType(click.ParamType[str]):
    """Text in UTF-8. What is refused is not repeated."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(value).encode().decode()
        except UnicodeEncodeError:
            self.fail("is not in UTF-8", param, ctx)


DURATION = DurationType()
TEXT = TextType()
