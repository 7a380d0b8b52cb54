"""Every named query, as text and as its role."""

from __future__ import annotations

import re
from importlib import resources

import psycopg
import pytest

from muniment_server.postgres import queries
from tests.store.named import ANYBODY, EMBEDDER, OPERATORS, SERVED, named, numbered

FILES = {**SERVED, **ANYBODY, **EMBEDDER, **OPERATORS}


def test_every_file_of_queries_is_known_to_these_tests():
    found = {entry.name for entry in resources.files(queries).iterdir() if entry.name.endswith(".sql")}

    assert found == {f"{file}.sql" for file in FILES}


@pytest.mark.parametrize("query", named(SERVED, ANYBODY, EMBEDDER), ids=str)
def test_a_query_prepares_as_its_role_without_declared_types(migrated, query):
    with migrated.connect(query.role) as connection:
        result = connection.pgconn.prepare(b"it", numbered(query.text), None)

        assert result.error_message.decode() == ""


@pytest.mark.parametrize("query", [each for each in named(OPERATORS) if not each.text.startswith("LOCK")], ids=str)
def test_a_query_of_operators_prepares_in_the_place_of_the_owner(migrated, query):
    """On a level's path where it reads items."""
    with migrated.as_owner() as connection:
        connection.execute("SET search_path = muniment_restricted")

        assert connection.pgconn.prepare(b"it", numbered(query.text), None).error_message.decode() == ""


@pytest.mark.parametrize("query", named(dict.fromkeys(FILES, ("nobody",))), ids=str)
def test_psycopg_remembers_how_it_rewrote_the_query(query):
    """Above 4,096 characters it would parse the text for every call. To a search that adds less than a hundredth."""
    assert len(query.text) <= 4096 or query.name == "search_items"


@pytest.mark.parametrize("file", FILES)
def test_every_query_begins_with_what_it_does_or_says_it_in_its_name(file):
    text = resources.files(queries).joinpath(f"{file}.sql").read_text("utf-8")

    assert text.startswith("-- ")
    assert len(set(queries.load(file))) == len(re.findall(r"^-- name:", text, re.MULTILINE))


def test_a_query_that_does_not_prepare_would_be_found(migrated):
    with migrated.connect("muniment_public") as connection:
        bad = connection.pgconn.prepare(b"it", numbered("SELECT %(a)s + no_column FROM item"), None)
        above = connection.pgconn.prepare(b"it", numbered("SELECT %(a)s FROM muniment_internal.item"), None)

    assert bad.status == psycopg.pq.ExecStatus.FATAL_ERROR
    assert above.status == psycopg.pq.ExecStatus.FATAL_ERROR
