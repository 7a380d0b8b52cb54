"""What a query names and does, as Postgres has parsed it.

Postgres keeps the body of a function in standard SQL as a parse tree (`pg_proc.prosqlbody`), whether it reads or
writes. The tree also names what `pg_depend` leaves out: relations and functions that are built in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from muniment_server.embedded_postgres import EmbeddedPostgres
from tests.support.databases import cloned
from tests.support.named_queries import filled, literals_of, numbered

_RELATION = re.compile(r" :relid ([1-9]\d*)")
_FUNCTION = re.compile(r"\{FUNCEXPR :funcid (\d+) [^{}]*:funcformat [03] | :(?:aggfnoid|winfnoid) (\d+)")
"""But for the functions of casts, whose format is 1 or 2."""
_COMMAND = re.compile(r"\{QUERY :commandType (\d)")
_SELECT = "1"
FUNCTIONS = frozenset(
    {
        "bit_count", "bool_or", "count", "first_value", "jsonb_to_recordset", "lag", "max", "min", "octet_length",
        "replace", "round", "row_number", "sum", "to_tsvector", "ts_lexize", "unnest",
    }
)  # fmt: skip
"""The functions that the queries of nouns may call: none of them reads a relation that its arguments name."""


@dataclass(frozen=True)
class Parsed:
    """What one query names and does."""

    relations: frozenset[str]
    """Each with its schema. Those behind a view are not named."""
    functions: frozenset[str]
    """Each with its schema. Operators and casts are not calls."""
    only_reads: bool
    """Whether it neither changes nor locks rows."""


def parsed(connection: psycopg.Connection[Any], text: str) -> Parsed:
    """What the query *text* names and does on the search path of *connection*. Raises psycopg.Error."""
    tree = _tree(connection, numbered(text))
    functions = [found[1] or found[2] for found in _FUNCTION.finditer(tree)]
    return Parsed(
        _names(
            connection,
            "SELECT oid, relnamespace::regnamespace || '.' || relname FROM pg_class",
            _RELATION.findall(tree),
        ),
        _names(connection, "SELECT oid, pronamespace::regnamespace || '.' || proname FROM pg_proc", functions),
        only_reads=set(_COMMAND.findall(tree)) == {_SELECT} and ":hasForUpdate true" not in tree,
    )


def _tree(connection: psycopg.Connection[Any], text: bytes) -> str:
    """The parse tree of *text*, with parameters of the types that Postgres expects."""
    with connection.transaction(force_rollback=True):
        for result in (connection.pgconn.prepare(b"it", text), described := connection.pgconn.describe_prepared(b"it")):
            if message := result.error_message:
                raise psycopg.ProgrammingError(message.decode())
        connection.execute("DEALLOCATE it")
        numbers = [described.param_type(number) for number in range(described.nparams)]
        types = ", ".join(
            name
            for (name,) in connection.execute(
                "SELECT format_type(type, NULL) FROM unnest(%s::oid[]) WITH ORDINALITY AS of (type, n) ORDER BY n",
                [numbers],
            )
        )
        connection.execute(b"CREATE FUNCTION pg_temp.it(%s) RETURNS void BEGIN ATOMIC %s; END" % (types.encode(), text))
        (tree,) = connection.execute(
            "SELECT prosqlbody::text FROM pg_proc WHERE oid = 'pg_temp.it'::regproc"
        ).fetchone() or ("",)
    return str(tree)


def _names(connection: psycopg.Connection[Any], query: str, numbers: Collection[str]) -> frozenset[str]:
    names = dict(connection.execute(f"{query} WHERE oid = ANY(%s::oid[])".encode(), [list(numbers)]))
    return frozenset(names[int(number)] for number in numbers)


STAND_INS = "stand_ins"
"""The schema of the tables that stand in for relations which the monitor composes."""


@contextmanager
def standing_in(
    postgres: EmbeddedPostgres, relations: Mapping[str, str], schema: str
) -> Iterator[psycopg.Connection[Any]]:
    """A connection that finds a table in the place of each of *relations*, before what is in *schema*."""
    with cloned(postgres) as database, database.as_admin() as admin:
        admin.execute(f"SET search_path = {schema}".encode())
        admin.execute(f"CREATE SCHEMA {STAND_INS}".encode())
        for relation, body in relations.items():
            select = filled(body, literals_of(body)).removesuffix(" FOR NO KEY UPDATE")
            admin.execute(f"CREATE TABLE {STAND_INS}.{relation} AS {select} WITH NO DATA".encode())
        admin.execute(f"SET search_path = {STAND_INS}, {schema}".encode())
        yield admin


def faults(connection: psycopg.Connection[Any], text: str, relations: Collection[str]) -> list[str]:
    """What only a query of a trusted file may do. Others may name *relations*, and call FUNCTIONS."""
    try:
        found = parsed(connection, text)
    except psycopg.Error as error:
        return [str(error).splitlines()[0]]
    named = found.relations - {f"{STAND_INS}.{relation}" for relation in relations}
    called = found.functions - {f"pg_catalog.{function}" for function in FUNCTIONS}
    return [*sorted(named), *sorted(called), *([] if found.only_reads else ["changes or locks rows"])]
