"""Statements by libpq's own prepared statements: they cost half of what a cursor of psycopg does, or less.

psycopg converts the values and the rows, as in its cursors; it documents both `Transformer` and `pq.PGconn`. For a
single statement libpq waits, without the interpreter lock. Several are one pipeline, and need psycopg's own loop, which
reads answers while it sends: server and client would otherwise wait for each other once both buffers are full.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.generators import fetch_many, send
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, TransactionStatus
from psycopg.rows import RowMaker

from muniment_server.postgres.engine import PLAIN, Engine

_PARAMETER = re.compile(r"%(?:\((\w+)\)s|%)")
_BEGIN: tuple[str, Mapping[str, object]] = ("BEGIN", {})
_COMMIT: tuple[str, Mapping[str, object]] = ("COMMIT", {})
_ROLLBACK: tuple[str, Mapping[str, object]] = ("ROLLBACK", {})
_numbers = itertools.count()


class PreparedStatements:
    """The prepared statements of one connection. Not for use within a pipeline of psycopg."""

    def __init__(self, connection: psycopg.Connection[Any], engine: Engine = PLAIN) -> None:
        self._connection = connection
        self._engine = engine
        self._transformer = Transformer(connection)
        self._names: dict[tuple[str, tuple[int, ...]], bytes] = {}
        """By query and types of its parameters. One query has few: an integer has the type of its size."""

    def rows(self, query: str, parameters: Mapping[str, object], row: RowMaker[Any]) -> list[Any]:
        """The rows of *query*, each made by *row*. Raises what psycopg's cursors raise."""
        return self._loaded(self._execute(query, parameters), row)

    def rows_of_all(self, queries: Sequence[tuple[str, Mapping[str, object], RowMaker[Any]]]) -> list[list[Any]]:
        """The rows of several queries, in one round trip. Raises what psycopg's cursors raise."""
        results = self._pipelined([self._bound(query, parameters) for query, parameters, _ in queries])
        return [self._loaded(self._checked(result), row) for result, (_, _, row) in zip(results, queries, strict=True)]

    def count(self, query: str, parameters: Mapping[str, object]) -> int:
        """How many rows *query* wrote. Raises what psycopg's cursors raise."""
        return self._execute(query, parameters).command_tuples or 0

    def transaction(self, statements: Sequence[tuple[str, Mapping[str, object]]], row: RowMaker[Any]) -> list[Any]:
        """Run *statements* in one transaction and one round trip; return the rows of the first, each made by *row*.

        All or none. Raises what psycopg's cursors raise.
        """
        bound = [self._bound(query, parameters) for query, parameters in (_BEGIN, *statements, _COMMIT)]
        try:
            _, result, *_ = map(self._checked, self._pipelined(bound))
        except psycopg.Error:
            self._roll_back()
            raise
        return self._loaded(result, row)

    def _roll_back(self) -> None:
        """Roll back, if there is a transaction. Unlike psycopg's method, this keeps the prepared statements.

        That method may deallocate none, and so callers who cancel their writes would fill the memory of the database.
        """
        if self._connection.info.transaction_status is TransactionStatus.INERROR:
            with contextlib.suppress(psycopg.Error):
                self._execute(*_ROLLBACK)

    def _loaded(self, result: psycopg.pq.abc.PGresult, row: RowMaker[Any]) -> list[Any]:
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, row)

    def _execute(self, query: str, parameters: Mapping[str, object]) -> psycopg.pq.abc.PGresult:
        return self._checked(self._connection.pgconn.exec_prepared(*self._bound(query, parameters)))

    def _pipelined(self, bound: Sequence[tuple[bytes, Any, Any]]) -> list[psycopg.pq.abc.PGresult]:
        """Run statements in one round trip; return the result of each."""
        connection, pgconn = self._connection, self._connection.pgconn
        pgconn.enter_pipeline_mode()
        try:
            for statement in bound:
                pgconn.send_query_prepared(*statement)
            pgconn.pipeline_sync()
            connection.wait(send(pgconn))
            *results, _ = [connection.wait(fetch_many(pgconn)) for _ in (*bound, "sync")]
        finally:
            if pgconn.status == ConnStatus.OK:
                pgconn.exit_pipeline_mode()
        return [found[0] for found in results]

    def _bound(self, query: str, parameters: Mapping[str, object]) -> tuple[bytes, Any, Any]:
        """The name of a prepared statement, the values of its parameters, and their formats."""
        text, names = _positional(self._engine.text(query))
        transformer = self._transformer
        values: Any = transformer.dump_sequence([parameters[name] for name in names], [PyFormat.AUTO] * len(names))
        key = (query, transformer.types or ())
        return self._names.get(key) or self._prepare(key, text), values, transformer.formats

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
