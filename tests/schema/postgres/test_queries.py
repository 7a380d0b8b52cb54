"""Every named query, as text and as its role."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import psycopg

import muniment_server
from muniment_server.domain.classification import Label
from muniment_server.postgres import queries
from tests.support.each import for_each
from tests.support.named_queries import (
    EMBEDDER,
    ERASER,
    FILES,
    OPERATORS,
    PATH_OF,
    RELATIONS,
    SEALER,
    SERVED,
    UNSCOPED,
    named,
    numbered,
    once,
)

SERVER = Path(muniment_server.__file__).parent
NO_QUERIES = {
    "postgres/schema.sql",
    "embedded_postgres/create_database.sql",
    "engines/citus/citus.sql",
    "engines/citus/on_cluster.sql",
    "engines/citus/on_cluster.labels.sql",
    "admin/pages.sql",
}
"""The schema as a whole; a statement of the embedded Postgres, which imports nothing of ours; what prepares only on a
Citus cluster, where tests/operations/citus runs it; and what needs amcheck, where tests/operations/admin/test_damage.py
runs it."""
LONG = {"search_items", "search_terms", "search_embeddings", "purge"}
"""Searches, and an operator's batch: there psycopg's work is less than a hundredth of the whole."""


def test_every_file_of_queries_is_known_to_these_tests():
    found = {path.relative_to(SERVER).as_posix() for path in SERVER.rglob("*.sql") if path.parent.name != "migrations"}
    known = {"/".join((*package.split(".")[1:], file)) for package, file in FILES}

    assert found - NO_QUERIES == known, "name a new query file in monitor/queries.py, or tests/support/named_queries.py"


@for_each("query", named(SERVED, RELATIONS, UNSCOPED, EMBEDDER, ERASER, SEALER))
def test_a_query_prepares_as_its_role_without_declared_types(migrated, query):
    with migrated.connect(query.role) as connection:
        connection.execute(f"SET search_path = {PATH_OF.get(query.role, query.role)}".encode())
        result = connection.pgconn.prepare(b"it", numbered(query.text), None)

        assert result.error_message.decode() == ""


@for_each("query", [each for each in named(OPERATORS) if not each.text.startswith("LOCK")])
def test_a_query_of_operators_prepares_in_the_place_of_the_owner(migrated, query):
    """On a level's path where it reads items."""
    with migrated.as_owner() as connection:
        connection.execute("SET search_path = muniment_restricted")

        assert connection.pgconn.prepare(b"it", numbered(query.text), None).error_message.decode() == ""


@for_each("query", once(FILES))
def test_psycopg_caches_how_it_rewrote_the_query(query):
    """Above 4,096 characters it parses the text for every call."""
    assert len(query.text) <= 4096 or query.name in LONG


@for_each("file", FILES)
def test_every_query_has_a_comment_or_a_name_that_says_what_it_does(file):
    package, name = file
    text = resources.files(package).joinpath(name).read_text("utf-8")

    assert text.startswith("-- ")
    named = re.findall(r"^-- name: (.+)", text, re.MULTILINE)
    assert len(queries.load(*file)) == sum(len(Label) if "{label}" in name else 1 for name in named)


def test_no_two_queries_have_the_same_name():
    """Queries of several files are merged by name: one would silently take the place of another one."""
    different = {(query.name, query.text) for query in once(SERVED, UNSCOPED, EMBEDDER, OPERATORS)}
    names = [name for name, _ in different]

    assert sorted(names) == sorted(set(names))


def test_a_query_that_does_not_prepare_would_be_found(migrated):
    with migrated.connect("muniment_public") as connection:
        bad = connection.pgconn.prepare(b"it", numbered("SELECT %(a)s + no_column FROM item"), None)
        above = connection.pgconn.prepare(b"it", numbered("SELECT %(a)s FROM muniment_internal.item"), None)

    assert bad.status == psycopg.pq.ExecStatus.FATAL_ERROR
    assert above.status == psycopg.pq.ExecStatus.FATAL_ERROR
