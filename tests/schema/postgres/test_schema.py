"""`schema.sql` says what the migrations make."""

from __future__ import annotations

import re

import pytest

from muniment_server.domain.classification import Classification, Integrity, Label
from tests.support.schema import SCHEMA, dump, schema_of, shown


@pytest.fixture(scope="module")
def objects(postgres):
    return dump(postgres, "muniment")


def test_schema_sql_equals_the_migrations(objects):
    """A reader may trust it. When it differs: `make schema`."""
    assert SCHEMA.read_text() == shown(objects)


@pytest.mark.parametrize("integrity", Integrity)
@pytest.mark.parametrize("level", [one for one in Classification if one is not Classification.INTERNAL])
def test_every_level_has_the_tables_of_internal(objects, level, integrity):
    """So `schema.sql` need not show them. Views and grants follow what flows to a label: see monitor/grants.py."""
    tables = _tables(objects, Label.of(level, integrity))

    assert len(tables) > 40
    assert tables == _tables(objects, Label.of(Classification.INTERNAL, integrity))


def _tables(objects: list[str], label: Label) -> set[str]:
    """What makes the tables of *label*, without the name and the number of its level."""
    name, number = label.level.name.lower(), label.level.value
    return {
        re.sub(rf"(level smallint DEFAULT |\(level = |% 4\) = \(){number}\b", r"\1N", one.replace(name, "LEVEL"))
        for one in objects
        if schema_of(one) == label.role and not one.startswith(("CREATE VIEW", "GRANT"))
    }
