"""What a query becomes on a Citus cluster, which changes no rows through views."""

from __future__ import annotations

import re

import pytest

from muniment_server.postgres import citus, roles
from tests.support.named_queries import ERASER, ERASING, SERVED, named

_VIEWS = ("deleted", "erasable", "erasing")
_CHANGED = re.compile(r"\b(?:DELETE FROM|INSERT INTO|UPDATE) (\S+) AS")


@pytest.mark.parametrize("query", named(SERVED, ERASER), ids=str)
def test_no_query_changes_rows_through_a_view_there(query):
    changed = _CHANGED.findall(citus.for_cluster(query.text))

    assert [name for name in changed if name.startswith(_VIEWS)] == []
    if query.role == roles.ERASER:
        assert {"session", "conversation", "agent"}.isdisjoint(changed)


@pytest.mark.parametrize("query", [each for each in named(ERASER) if "DELETE" in each.text], ids=str)
def test_the_eraser_names_the_agent_of_the_rows_that_it_deletes(query):
    """Where a row is, is not known to be the same row on another shard."""
    assert "(erased.tenant, erased.agent) = (%(tenant)s, %(agent)s)" in query.text


def test_a_query_that_changes_no_rows_through_a_view_stays_as_it_is():
    text = "WITH erased AS (DELETE FROM vault.session AS erased RETURNING erased.agent) SELECT erased.agent FROM erased"

    assert citus.for_cluster(text) == text


def test_the_rows_of_a_view_are_changed_in_its_table():
    texts = {query.name: citus.for_cluster(query.text) for query in named({ERASING: (roles.ERASER,)})}

    assert "DELETE FROM item AS erased" in texts["erase_items_of_call"]
    assert "octet_length(erased.content) AS bytes )" in texts["erase_items_of_call"]
