"""Typed rows: every query is read into a frozen dataclass whose fields are its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import psycopg
from psycopg.rows import BaseRowFactory, RowMaker, scalar_row

_R = TypeVar("_R")


def rows_of(
    connection: psycopg.Connection[Any], queries: Mapping[str, str], query: str, row: type[_R], /, **parameters: object
) -> list[_R]:
    """The rows of one of the *queries*, by its name."""
    cursor: Any = connection.cursor(row_factory=row_of(row))
    found: list[_R] = cursor.execute(queries[query], parameters).fetchall()
    return found


def values_of(
    connection: psycopg.Connection[Any], queries: Mapping[str, str], query: str, /, **parameters: object
) -> list[Any]:
    """The only column of one of the *queries*, by its name."""
    return connection.cursor(row_factory=scalar_row).execute(queries[query], parameters).fetchall()


def row_of(row: type[_R]) -> BaseRowFactory[_R | None]:
    """The rows of a cursor as *row*: see `maker_of`."""
    make = maker_of(row)
    return lambda cursor: make


def maker_of(row: type[_R]) -> RowMaker[_R | None]:
    """Makes *row*, whose fields have the names and the order of the columns. Numbers become the declared enums.

    None for a row of nulls: an outer join that found nothing. That fields and columns are the same is tested for every
    query, and not at every call: reading the names takes 20 us.
    """
    key: Any = row
    maker: RowMaker[_R | None] = _maker(key)
    return maker


@cache
def _maker(row: Any) -> Any:
    enums = _enums(row)

    def make(values: Sequence[Any]) -> Any:
        if values.count(None) == len(values):
            return None
        if enums:
            values = list(values)
            for number, members in enums:
                if values[number] is not None:
                    values[number] = members[values[number]]
        return row(*values)

    return make


def _enums(row: Any) -> list[tuple[int, Mapping[object, Enum]]]:
    """The positions of the fields that are enums, or enums or None, each with its members by value."""
    hints = get_type_hints(row)
    return [
        (number, {member.value: member for member in kind})
        for number, field in enumerate(fields(row))
        for kind in (hints[field.name], *get_args(hints[field.name]))
        if isinstance(kind, type) and issubclass(kind, Enum)
    ]
