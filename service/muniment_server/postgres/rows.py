"""Typed rows: every query is read into a frozen dataclass, by column name."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

from psycopg.rows import BaseRowFactory, RowMaker

_R = TypeVar("_R")


def row_of(row: type[_R]) -> BaseRowFactory[_R | None]:
    """Rows as *row*, whose fields are named like the columns; numbers become the enums that the fields declare.

    None for a row of nulls: an outer join that found nothing.
    """
    key: Any = row
    factory: BaseRowFactory[_R | None] = _factory(key)
    return factory


@cache
def _factory(row: Any) -> Any:
    enums = _enums(row)

    def factory(cursor: Any) -> RowMaker[Any]:
        names = [column.name for column in cursor.description or ()]

        def make(values: Sequence[Any]) -> Any:
            if not any(value is not None for value in values):
                return None
            fields = dict(zip(names, values, strict=True))
            for name, enum in enums:
                if fields[name] is not None:
                    fields[name] = enum(fields[name])
            return row(**fields)

        return make

    return factory


def _enums(row: Any) -> list[tuple[str, type[Enum]]]:
    """The fields of *row* that are enums, or enums or None."""
    return [
        (name, kind)
        for name, hint in get_type_hints(row).items()
        for kind in (hint, *get_args(hint))
        if isinstance(kind, type) and issubclass(kind, Enum)
    ]
