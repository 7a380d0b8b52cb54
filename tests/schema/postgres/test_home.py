"""Steps of statements that run on a cluster where the tenant is, and so need no other node. See ADR 14.

Citus runs an INSERT … SELECT on the tenant's node only if it selects the tenant from a table. Otherwise it first sends
the results of the earlier steps to every node. A main statement that reads only such results may run on any node. Other
steps that read nothing else run on the coordinator.
"""

from __future__ import annotations

import re

import pytest

from muniment_server.engines.citus.statements import for_cluster
from muniment_server.monitor.queries import AUDIT_FILES, HOST_FILES, SESSION_FILES
from tests.support.each import for_each
from tests.support.named_queries import once
from tests.support.query_lint import common_table_expressions, main_statement

ELSEWHERE = {
    "erase_items_of_call": "of the eraser, which reads no table that has one row of a tenant",
    "erase_revisions_of_call": "of the eraser",
    "unindex_erased": "of the eraser",
}
SESSION = "WITH session AS MATERIALIZED (SELECT session.agent FROM session WHERE session.tenant = %(tenant)s)"
OF_SESSION = (
    "home AS NOT MATERIALIZED (SELECT home.tenant FROM shelf AS home WHERE home.tenant = %(tenant)s"
    " AND home.agent = (SELECT session.agent FROM session))"
)
OF_HOST = "home AS NOT MATERIALIZED (SELECT home.tenant FROM vault.tenant AS home WHERE home.tenant = %(tenant)s)"
LOGGED = "logged AS (INSERT INTO audit AS logged (tenant, host_key_id)"
_INSERT = re.compile(r"INSERT INTO \S+ AS \w+ \([^)]*\) SELECT (\S+),")
_SELECTED = re.compile(r" (?:FROM|JOIN) (?!LATERAL\b)([\w.]+)")


def steps_without_home(text: str) -> set[str]:
    """The steps that need other nodes: INSERTs of what steps return, and a main statement that reads only that."""
    expressions = {name: text[start:end] for name, start, end in common_table_expressions(text)}
    main = main_statement(text)
    found = set()
    for name, body in {**expressions, "the main statement": main}.items():
        insert = _INSERT.search(body)
        if insert and insert[1] != "home.tenant" and expressions.keys() & set(_SELECTED.findall(body)):
            found.add(name)
    read = set(_SELECTED.findall(main))
    inlined = {name for name in read if _is_inlined(name, text)}
    if expressions and not inlined and read <= expressions.keys() and not re.search(r"\b(UPDATE|DELETE FROM) ", main):
        found.add("the main statement")
    return found


def _is_inlined(name: str, text: str) -> bool:
    """Whether what the expression reads is read where it is named."""
    if f"{name} AS NOT MATERIALIZED (" in text:
        return True
    is_read = re.search(rf"\b{name} AS \( ?SELECT ", text)
    return bool(is_read) and len(re.findall(rf"\b(?:FROM|JOIN) {name}\b(?!\.)", text)) == 1


SERVED = once(SESSION_FILES, HOST_FILES, AUDIT_FILES)


@for_each("query", SERVED)
def test_every_step_of_a_call_runs_where_the_tenant_is(query):
    assert bool(steps_without_home(for_cluster(query.text))) == (query.name in ELSEWHERE)


AT_HOME = [query for query in SERVED if "home.tenant" in for_cluster(query.text)]


@for_each("query", AT_HOME)
def test_a_step_that_runs_anywhere_is_found(query):
    changed = for_cluster(query.text).replace("SELECT home.tenant,", "SELECT %(tenant)s,")
    changed = changed.replace("home CROSS JOIN ", "")

    assert steps_without_home(changed) != set()


@for_each("query", SERVED)
def test_on_a_cluster_home_is_a_row_of_a_table(query):
    text = for_cluster(query.text)
    tables = [f"FROM {table} AS home WHERE home.tenant = %(tenant)s" for table in ("shelf", "vault.tenant")]
    is_there = re.search(r"\bhome\b", text) is not None

    assert [text.count(table) for table in tables] == [
        is_there and query.file in SESSION_FILES,
        is_there and query.file in HOST_FILES,
    ]


@for_each("query", once(SESSION_FILES, HOST_FILES, AUDIT_FILES))
def test_on_plain_postgres_no_statement_knows_it(query):
    assert "home" not in re.findall(r"\w+", query.text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{SESSION} INSERT INTO audit AS logged (tenant, agent) SELECT %(tenant)s, session.agent FROM session",
            f"{SESSION}, {OF_SESSION} INSERT INTO audit AS logged (tenant, agent) SELECT home.tenant, session.agent"
            " FROM home CROSS JOIN session",
        ),
        (
            f"{SESSION}, gone AS (DELETE FROM item AS gone RETURNING gone.agent), counted AS (INSERT INTO storage AS"
            " counted (tenant, agent, items) SELECT %(tenant)s, gone.agent, (SELECT count(*) FROM gone) FROM gone"
            " GROUP BY gone.agent) SELECT EXISTS (SELECT FROM gone) AS is_gone",
            f"{SESSION}, {OF_SESSION}, gone AS (DELETE FROM item AS gone RETURNING gone.agent), counted AS (INSERT INTO"
            " storage AS counted (tenant, agent, items) SELECT home.tenant, gone.agent, (SELECT count(*) FROM gone)"
            " FROM home CROSS JOIN gone GROUP BY home.tenant, gone.agent) SELECT EXISTS (SELECT FROM gone) AS is_gone"
            " FROM home",
        ),
        (
            f"WITH owner AS (SELECT 5 AS agent), {LOGGED} SELECT %(tenant)s, owner.agent FROM owner) SELECT FROM owner",
            f"WITH {OF_HOST}, owner AS (SELECT 5 AS agent), {LOGGED} SELECT home.tenant, owner.agent FROM home"
            " CROSS JOIN owner) SELECT FROM home CROSS JOIN owner",
        ),
        *(
            (text, text)
            for text in (
                f"{SESSION} SELECT item.name FROM item WHERE item.tenant = %(tenant)s",
                f"{SESSION}, visible AS NOT MATERIALIZED (SELECT item.name FROM item) SELECT visible.name FROM visible",
                f"{SESSION} UPDATE item AS own SET name = %(name)s FROM session WHERE own.tenant = %(tenant)s",
                "WITH erased AS (SELECT 1 AS agent) INSERT INTO stat AS erased (tenant, agent) SELECT %(tenant)s,"
                " erased.agent FROM erased",
            )
        ),
    ],
)
def test_steps_that_read_what_others_return_get_a_home(text, expected):
    assert for_cluster(text) == expected
