"""What a query becomes on a Citus cluster, which changes no rows through views, and what its messages mean."""

from __future__ import annotations

import re

import psycopg
import pytest

from muniment.cli.failures import Failure
from muniment_server.admin.connection import connect_operator
from muniment_server.admin.database import report_database_errors
from muniment_server.domain.errors import Unavailable
from muniment_server.engines.citus import cluster as citus
from muniment_server.engines.citus.statements import for_cluster
from muniment_server.postgres import roles
from muniment_server.postgres.driver_errors import domain_error
from tests.support.each import for_each
from tests.support.named_queries import EMBEDDER, ERASER, ERASING, OPERATORS, SERVED, named

_VIEWS = ("deleted", "erasable", "erasing")
_CHANGED = re.compile(r"\b(?:DELETE FROM|INSERT INTO|UPDATE) (\S+) AS")


@for_each("query", named(SERVED, ERASER))
def test_no_query_changes_rows_through_a_view_there(query):
    changed = _CHANGED.findall(for_cluster(query.text))

    assert [name for name in changed if name.startswith(_VIEWS)] == []
    if query.role == roles.ERASER:
        assert {"session", "conversation", "agent"}.isdisjoint(changed)


@for_each("query", [each for each in named(ERASER) if "DELETE" in each.text])
def test_the_eraser_names_the_agent_of_the_rows_that_it_deletes(query):
    """Where a row is, is not known to be the same row on another shard."""
    assert "(erased.tenant, erased.agent) = (%(tenant)s, %(agent)s)" in query.text


@for_each("query", named(SERVED, ERASER, EMBEDDER, OPERATORS))
def test_no_subquery_without_from_asks_for_the_time(query):
    """Citus refuses it in a query of several shards, such as those of the embedder."""
    assert _clocks_without_from(query.text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT (SELECT vault.clock())", 1),
        ("SELECT (SELECT coalesce(item.expire_time, vault.clock())) FROM item", 1),
        ("SELECT (SELECT item.expire_time IS DISTINCT FROM vault.clock())", 1),
        ("SELECT (SELECT max(item.expire_time) FROM item WHERE item.expire_time < vault.clock()), vault.clock()", 0),
    ],
)
def test_such_a_subquery_is_found(text, found):
    assert len(_clocks_without_from(text)) == found


def _clocks_without_from(text):
    """The subqueries that call the clock and have no FROM of their own."""
    text = re.sub(r"\bIS (?:NOT )?DISTINCT FROM\b", "=", text.replace("vault.clock()", "CLOCK"))
    found = []
    while inner := re.search(r"\(([^()]*)\)", text):
        rest = ""
        if not inner[1].lstrip().startswith("SELECT"):
            rest = re.sub(r"\bFROM\b", "", inner[1])  # of a function, such as extract
        elif "CLOCK" in inner[1] and not re.search(r"\bFROM\b", inner[1]):
            found.append(inner[1])
        text = text[: inner.start()] + rest + text[inner.end() :]
    return found


@for_each("query", named(OPERATORS))
def test_no_query_of_operators_asks_a_node_who_has_logged_in(query):
    """A worker would answer with the owner, as whom the coordinator has logged in there."""
    assert "session_user" not in query.text


def test_a_query_that_changes_no_rows_through_a_view_stays_as_it_is():
    text = "WITH erased AS (DELETE FROM vault.session AS erased RETURNING erased.agent) SELECT erased.agent FROM erased"

    assert for_cluster(text) == text


def test_the_rows_of_a_view_are_changed_in_its_table():
    texts = {query.name: for_cluster(query.text) for query in named({ERASING: (roles.ERASER,)})}

    assert "DELETE FROM item AS erased" in texts["erase_items_of_call"]
    assert "octet_length(erased.content) AS bytes )" in texts["erase_items_of_call"]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("failure on connection marked as essential: worker:5432", Unavailable),
        ("server closed the connection unexpectedly", Unavailable),
        ("terminating connection due to unexpected postmaster exit", Unavailable),
        ("unexpected node type", psycopg.errors.InternalError_),
    ],
)
def test_a_lost_node_is_no_bug_of_ours(database, message, kind):
    with database.as_owner() as owner, pytest.raises(psycopg.errors.InternalError_) as raised:
        owner.execute(f"DO $$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = 'XX000'; END $$")

    assert type(domain_error(raised.value)) is kind


def test_a_shard_that_is_moved_is_no_bug_of_ours(database):
    with database.as_owner() as owner, pytest.raises(psycopg.DatabaseError) as raised:
        owner.execute("DO $$ BEGIN RAISE EXCEPTION 'no result' USING ERRCODE = 'CIINF'; END $$")

    assert type(domain_error(raised.value)) is Unavailable


@pytest.mark.parametrize(
    ("message", "found"), [("failed to commit transaction on worker:5432", True), ("other", False)]
)
def test_a_commit_that_a_node_did_not_confirm_is_noticed(database, message, found):
    warnings = citus.CommitWarnings()
    with database.as_owner() as owner:
        owner.add_notice_handler(warnings.note)
        owner.execute(f"DO $$ BEGIN RAISE WARNING '{message}'; END $$")

    assert bool(warnings) is found


@pytest.mark.parametrize(
    ("message", "node"),
    [
        ("connection to the remote node postgres@db.example:5432 failed: Connection refused", "db.example:5432"),
        ("the node db.example:5432 of the cluster has failed: failed to connect to db.example:5432", "db.example:5432"),
        ("connection to the remote node postgres@db.example:5432 failed: FATAL:  password authentication failed", None),
        ("connection to server failed: Connection refused", None),
    ],
)
def test_a_node_that_does_not_answer_is_named(message, node):
    named_node = citus.silent_node(psycopg.OperationalError(message))

    assert named_node == node


def test_an_operator_learns_of_a_commit_that_a_node_did_not_confirm(database):
    lost = pytest.raises(Failure, match="a node of the cluster did not confirm")
    with lost, report_database_errors(), connect_operator(database.admin) as operator:
        operator.connection.execute("DO $$ BEGIN RAISE WARNING 'failed to commit transaction on worker:5432'; END $$")
