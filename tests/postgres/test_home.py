"""Steps of statements that run on a cluster where the tenant is, and so need no other node. See ADR 14.

Citus runs an INSERT … SELECT on the tenant's node only if it selects the tenant from a table. Otherwise it first sends
the results of the earlier steps to every node. A main statement that reads only such results may run on any node. Other
steps that read nothing else run on the coordinator.
"""

from __future__ import annotations

import re

import pytest

from muniment_server.monitor.queries import AUDIT_FILES, HOST_FILES, SESSION_FILES
from muniment_server.postgres import citus
from tests.support.each import for_each
from tests.support.named_queries import numbered, once
from tests.support.query_lint import common_table_expressions, main_statement

ELSEWHERE = {
    "erase_items_of_call": "of the eraser, which reads no table that has one row of a tenant",
    "erase_revisions_of_call": "of the eraser",
    "unindex_erased": "of the eraser",
}
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
    assert bool(steps_without_home(citus.for_cluster(query.text))) == (query.name in ELSEWHERE)


AT_HOME = [query for query in SERVED if re.search(r"\bJOIN home\b", query.text)]


@for_each("query", AT_HOME)
def test_a_step_that_runs_anywhere_is_found(query):
    spoiled = query.text.replace("home.tenant", "%(tenant)s").replace(" CROSS JOIN home", "")

    assert steps_without_home(citus.for_cluster(spoiled)) != set()


@for_each("query", AT_HOME)
@pytest.mark.parametrize("rewritten", [str, lambda text: numbered(text).decode()], ids=["by name", "by number"])
def test_on_a_cluster_home_is_a_row_of_a_table(query, rewritten):
    text = rewritten(query.text)
    tables = [f"FROM {table} AS home WHERE home.tenant = " for table in ("shelf", "vault.tenant")]

    assert [citus.for_cluster(text).count(table) for table in tables] == [
        query.file in SESSION_FILES,
        query.file in HOST_FILES,
    ]
