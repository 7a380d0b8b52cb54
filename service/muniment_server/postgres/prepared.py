"""Single statements by libpq's own prepared statements: they cost half of what a cursor of psycopg does.

psycopg converts the values and the rows, as in its cursors; it documents both `Transformer` and `pq.PGconn`. Only the
waiting differs: libpq waits, without the interpreter lock, so no generator runs in Python.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.rows import RowMaker

_PARAMETER = re.compile(r"%(?:\((\w+)\)s|%)")
_numbers = itertools.count()


class PreparedStatements:
    """The prepared statements of one connection. Not for use in a pipeline."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._transformer = Transformer(connection)
        self._names: dict[tuple[str, tuple[int, ...]], bytes] = {}
        """By query and types of its parameters. One query has few: an integer has the type of its size."""

    def rows(self, query: str, parameters: Mapping[str, object], row: RowMaker[Any]) -> list[Any]:
        """The rows of *query*, each made by *row*. Raises what psycopg's cursors raise."""
        result = self._execute(query, parameters)
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, row)

    def count(self, query: str, parameters: Mapping[str, object]) -> int:
        """How many rows *query* wrote. Raises what psycopg's cursors raise."""
        return self._execute(query, parameters).command_tuples or 0

    def _execute(self, query: str, parameters: Mapping[str, object]) -> psycopg.pq.abc.PGresult:
        text, names = _positional(query)
        transformer = self._transformer
        values: Any = transformer.dump_sequence([parameters[name] for name in names], [PyFormat.AUTO] * len(names))
        key = (query, transformer.types or ())
        statement = self._names.get(key) or self._prepare(key, text)
        return self._checked(self._connection.pgconn.exec_prepared(statement, values, transformer.formats))

    def _prepare(self, key: tuple[str, tuple[int, ...]], text: bytes) -> bytes:
        statement = b"single_%d" % next(_numbers)
        self._checked(self._connection.pgconn.prepare(statement, text, key[1]))
        self._names[key] = statement
        return statement

    def _checked(self, result: psycopg.pq.abc.PGresult) -> psycopg.pq.abc.PGresult:
        if result.status in {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}:
            return result
        if not result.error_field(DiagnosticField.SQLSTATE):  # not from the server: the connection has failed
            self._connection.close()
            raise psycopg.OperationalError
        raise error_from_result(result, self._connection.info.encoding)


@cache
def _positional(query: str) -> tuple[bytes, tuple[str, ...]]:
    """*query* with `$1` for its first parameter, and so on; and the parameters' names in that order."""
    names: dict[str, int] = {}

    def place(match: re.Match[str]) -> str:
        name = match[1]
        return f"${names.setdefault(name, len(names) + 1)}" if name else "%"

    return _PARAMETER.sub(place, query).encode(), tuple(names)
