"""One word for one thing: what the glossary retired is neither a name nor a word of our prose."""

from __future__ import annotations

import re

import pytest

from tests.support.each import for_each
from tests.support.words import GLOSSARY, ROOT, files, findings, glossary, in_text

_SCHEMA = ROOT / "service" / "muniment_server"


@for_each("path", files())
def test_a_file_uses_no_retired_word(path):
    """The message has the lines. Words are retired, and excepted, in service/docs/glossary.md alone."""
    assert list(map(str, findings(path))) == []


@for_each("name", sorted(glossary().carried))
def test_a_name_that_is_excepted_is_one_of_the_schema(name):
    """So the list of exceptions shrinks with the schema."""
    migrations = list(_SCHEMA.rglob("migrations/*.sql"))
    (schema,) = _SCHEMA.rglob("schema.sql")

    assert name in {path.name for path in migrations} or re.search(rf"\b{name}\b", schema.read_text(encoding="utf-8"))


@for_each("word", [word for word in glossary().retired if word.islower()])
def test_the_replacement_of_a_retired_word_is_in_the_glossary(word):
    assert any(term in glossary().terms or term in _UNDEFINED for term in _terms(glossary().retired[word]))


_UNDEFINED = {"status_for", "no_embedder"}
"""Functions, and no terms."""


def _terms(instead: str) -> list[str]:
    return [term.strip() for term in re.split(r"[,;]", instead)]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (".py", "session_window = 1\n"),
        (".py", "class PieceRow:\n    pass\n"),
        (".py", "row.piece\n"),
        (".py", "def f():\n    '''Nobody is told.'''\n"),
        (".py", "x = 1  # behind the walls\n"),
        (".sql", "WITH fence AS MATERIALIZED (SELECT 1) SELECT 1"),
        (".sql", "SELECT chunk.number AS piece FROM chunk"),
        (".sql", "-- name: lock_shelf\nSELECT 1"),
        (".sql", "SELECT %(wanted_pieces)s"),
        (".sql", "SELECT 1 -- the shelves are locked"),
        (".md", "Each window is a view."),
        (".md", "`FollowTaint` runs it again."),
        (".yaml", "name: one  # nobody's"),
    ],
)
def test_a_retired_word_is_found(kind, text):
    assert list(in_text(kind, text)) != []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (".py", "content = 'Nobody is told of the shelf.'\n"),
        (".py", "import walling\n"),
        (".py", "def f():\n    '''The column `piece` of `muniment_public.chunk`, by the wall clock.'''\n"),
        (".sql", "SELECT chunk.piece FROM muniment_public.meaning AS embedding"),
        (".sql", "SELECT 'nobody' -- the table `shelf`"),
        (".md", "The model's context\nwindow. The table `shelf` holds the write lock."),
        (".yaml", "content: the shelf  # a lock"),
    ],
)
def test_an_allowed_use_of_a_word_is_accepted(kind, text):
    assert list(in_text(kind, text)) == []


def test_no_term_is_defined_twice():
    terms = re.findall(r"^\| \*\*(.+?)\*\* ", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(terms) == sorted(set(terms))
