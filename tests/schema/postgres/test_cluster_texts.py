"""A statement names on a Citus cluster what it names on plain Postgres, and one thing more. Postgres parses both texts.

So the rewritten text still has the session predicate, and calls no other function. See ADR 14.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muniment_server.engines.citus.statements import for_cluster
from muniment_server.postgres import roles
from tests.support.databases import Database
from tests.support.each import for_each
from tests.support.named_queries import ERASER, PATH_OF, SERVED, Named, named
from tests.support.parsed import Parsed, parsed

HOME = {f"{roles.LABELS[0]}.shelf", "vault.tenant"}
"""Where a statement finds the row of its tenant, for a session and for a host."""
_QUERIES = named({file: of_file[:1] for file, of_file in {**SERVED, **ERASER}.items()})
_OF_CALLERS = [query for query in _QUERIES if query.role != roles.ERASER]
_OF_THE_ERASER = [query for query in _QUERIES if query.role == roles.ERASER]


@pytest.fixture(scope="module")
def both(migrated: Database) -> Callable[[Named], tuple[Parsed, Parsed]]:
    """What a query names on plain Postgres, and on a cluster."""

    def parse(query: Named) -> tuple[Parsed, Parsed]:
        with migrated.as_admin() as admin:
            admin.execute(f"SET search_path = {PATH_OF.get(query.role, query.role)}".encode())
            return parsed(admin, query.text), parsed(admin, for_cluster(query.text))

    return parse


@for_each("query", _OF_CALLERS)
def test_what_a_caller_runs_names_the_same_and_at_most_the_row_of_its_tenant(
    both: Callable[[Named], tuple[Parsed, Parsed]], query: Named
):
    plain, cluster = both(query)

    assert plain.relations <= cluster.relations <= plain.relations | HOME
    assert (cluster.functions, cluster.only_reads) == (plain.functions, plain.only_reads)


@for_each("query", _OF_THE_ERASER)
def test_what_the_eraser_runs_names_the_tables_of_its_views(
    both: Callable[[Named], tuple[Parsed, Parsed]], query: Named
):
    """Citus changes no rows through a view."""
    plain, cluster = both(query)

    tables = set(map(_table_of, plain.relations))
    assert cluster.relations <= plain.relations | tables
    assert tables <= set(map(_table_of, cluster.relations))
    assert cluster.functions - plain.functions <= {"pg_catalog.octet_length"}


def _table_of(relation: str) -> str:
    """The table that an eraser's view shows."""
    schema, name = relation.split(".")
    name = name.removeprefix("erasable_").removeprefix("erasing_")
    if schema == roles.ERASER:
        return f"vault.{name}"
    return f"{schema}.{'meaning' if name == 'embedding' else name}"
