"""Connections whose statements have spans while a call that is traced uses them. The pools of `--traces` have these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import psycopg
from psycopg.pq import PipelineStatus
from psycopg.rows import RowMaker

from muniment_server.postgres.driver_errors import sqlstate_of
from muniment_server.postgres.pool import RoleConnection, RoleCursor
from muniment_server.telemetry.traces import StatementSpan

_R = TypeVar("_R")


class TracedConnection(RoleConnection):
    """A connection that begins a span when a statement of a traced call is sent, and ends it with the answer."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.cursor_factory = _TracedCursor
        self._sent: list[StatementSpan] = []
        """The spans of the statements that were sent in the current pipeline."""

    def read(self, query: str, parameters: Mapping[str, object], row: RowMaker[_R]) -> list[_R]:
        with self.traced(query):
            return super().read(query, parameters, row)

    def write(self, query: str, parameters: Mapping[str, object]) -> int:
        with self.traced(query):
            return super().write(query, parameters)

    def read_all(self, queries: Sequence[tuple[str, Mapping[str, object], RowMaker[Any]]]) -> list[list[Any]]:
        with self.traced(*(query for query, _, _ in queries)):
            return super().read_all(queries)

    def write_all(self, statements: Sequence[tuple[str, Mapping[str, object]]], row: RowMaker[_R]) -> list[_R]:
        with self.traced(*(query for query, _ in statements), "COMMIT"):
            return super().write_all(statements, row)

    @contextmanager
    def pipeline(self) -> Iterator[psycopg.Pipeline]:
        """A pipeline. When it ends, all its statements have been answered, and so their spans end."""
        outer, self._sent = self._sent, []
        try:
            with _ending(self._sent), super().pipeline() as pipeline:
                yield pipeline
        finally:
            self._sent = outer

    @contextmanager
    def traced(self, *queries: str) -> Iterator[None]:
        """The spans of statements that are sent together, and answered within the block."""
        with _ending([span for query in queries if (span := self._begin_span(query)) is not None]):
            yield

    def _begin_span(self, query: str) -> StatementSpan | None:
        """Begin the span of a statement, if the call is traced and the statement has a name."""
        return self.trace.statement(query) if self.trace is not None else None

    def begin_span_in_pipeline(self, query: str) -> list[StatementSpan]:
        """Begin the span of a statement that the pipeline sends. Returns the spans of all that it has sent."""
        span = self._begin_span(query)
        if span is not None:
            self._sent.append(span)
        return self._sent.copy()


class _TracedCursor(RoleCursor):
    """In a pipeline, a statement and those before it have been answered once its rows are fetched."""

    _sent: Sequence[StatementSpan] = ()

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        connection: Any = self.connection
        if connection.info.pipeline_status is PipelineStatus.OFF:
            with connection.traced(query):
                return super().execute(query, params, **options)
        self._sent = connection.begin_span_in_pipeline(query)
        return super().execute(query, params, **options)

    def fetchone(self) -> Any:
        row = super().fetchone()
        _end(self._sent)
        return row

    def fetchall(self) -> list[Any]:
        rows = super().fetchall()
        _end(self._sent)
        return rows


@contextmanager
def _ending(spans: Sequence[StatementSpan]) -> Iterator[None]:
    """End *spans* after the block, with the SQLSTATE if it fails. It may add to them."""
    sqlstate = None
    try:
        yield
    except psycopg.Error as error:
        sqlstate = sqlstate_of(error)
        raise
    finally:
        _end(spans, sqlstate)


def _end(spans: Sequence[StatementSpan], sqlstate: str | None = None) -> None:
    for span in spans:
        span.end(sqlstate)
