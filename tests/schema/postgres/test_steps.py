"""Steps of one statement that read what an earlier step of it has written.

On plain Postgres, all steps see the tables as they were before the statement. On a cluster, Citus executes most
statements step by step, and each step sees what those before it have written. See ADR 14.
"""

from __future__ import annotations

import re

import pytest

from muniment_server.engines.citus.statements import for_cluster
from muniment_server.postgres import roles
from tests.support.named_queries import FILES, PATH_OF, RELATIONS, SERVED, named
from tests.support.query_lint import common_table_expressions

BOTH_WAYS = {
    "add_lists: embedding_list, by retired, then by the main statement": "the new numbers are above all retired ones",
    "begin_erasure: erasure, by begun, then by forgotten": "what has just begun is not a day old",
    "delete_agent: block_link, by unshared, then by detached": "a link that both delete is gone in either order",
    "delete_agent_again: block_link, by unshared, then by the main statement": "as in delete_agent",
    "close_sessions: session, by expired, then by closed": "none has expired and is open at one moment",
    "find_sessions: session, by closed, then by the main statement": "what is closed has expired, and is shown as that",
    "index_items: chunk, by deleted, then by new": "the deleted chunks have other change ids than the new ones",
    "index_items: meaning, by deleted, then by cleared": "a row that both change is gone in the end",
    "purge: item, by old_item, then by old_revision": "of an item that was deleted, all revisions go in any case",
    "reset_session: session, by closed, then by opened": "only the times are read, which closing does not change",
    "store_passages: item, by expired, then by stored": "uniqueness is checked against the newest rows",
    "undelete_item: item, by moved, then by new": "uniqueness is checked against the newest rows",
    "unindex_erased: meaning, by cleared, then by unindexed": "only the deletion of its chunk removes a row",
    "unindex_erased: remote_embedding, by forgotten, then by unindexed": "a row that both delete is gone in the end",
}
"""Why what a statement answers and writes is the same in both orders."""

_PARTS = """
WITH RECURSIVE part AS (
    SELECT pg_class.oid AS whole, pg_class.oid
      FROM pg_class
     UNION
    SELECT part.whole, pg_depend.refobjid
      FROM part
           JOIN pg_rewrite ON pg_rewrite.ev_class = part.oid
           JOIN pg_depend ON pg_depend.objid = pg_rewrite.oid AND pg_depend.refclassid = 'pg_class'::regclass
)
SELECT part.whole::regclass::text,
       coalesce(array_agg(part.oid::regclass::text) FILTER (WHERE pg_class.relkind = 'r'), '{}')
  FROM part
       JOIN pg_class ON pg_class.oid = part.oid
 GROUP BY part.whole
"""
_CASCADES = """
SELECT pg_constraint.confrelid::regclass::text, array_agg(pg_constraint.conrelid::regclass::text)
  FROM pg_constraint
 WHERE pg_constraint.confdeltype IN ('c', 'n', 'd')
 GROUP BY pg_constraint.confrelid
"""
_NAMED = re.compile(
    r"(?<!DISTINCT )(?<!KEY )(?<!FOR )(?<!DO )\b(FROM|JOIN|USING|UPDATE|INSERT INTO|DELETE FROM)"
    r" (?!LATERAL\b)([\w.]+)(?![\w(])"
)
_LOCKS = re.compile(r"\bFOR (?:NO KEY UPDATE|UPDATE|SHARE|KEY SHARE)\b")


class Tables:
    """Which tables views read, and which tables a deletion also changes."""

    def __init__(self, database):
        with database.as_owner() as owner:
            owner.execute("SET search_path = ''")  # names have their schema, but for those of Postgres itself
            self._parts = dict(owner.execute(_PARTS).fetchall())
            self._cascades = dict(owner.execute(_CASCADES).fetchall())

    def of(self, name, path):
        """The tables that *name* reads on this search path."""
        names = (name.removeprefix("pg_catalog."), *(f"{schema}.{name}" for schema in path.split(", ")))
        return set(next(self._parts[each] for each in names if each in self._parts))

    def after_deletion(self, changed):
        """*changed*, and the tables to which a deletion of their rows cascades."""
        more = changed.union(*(self._cascades.get(table, ()) for table in changed))
        return changed if more == changed else self.after_deletion(more)


def read_after_written(text, tables, path):
    """(table, writer, reader) of every step that reads a table that an earlier step writes."""
    found, known = set(), set()
    inlined: dict[str, set[str]] = {}
    written: list[tuple[str, set[str]]] = []
    expressions = [*common_table_expressions(text)]
    for name, start, end in [*expressions, ("the main statement", max(end for *_, end in expressions), len(text))]:
        body = text[start:end]
        reads: set[str] = set()
        writes: set[str] = set()
        for verb, relation in _NAMED.findall(body):
            if verb in {"INSERT INTO", "UPDATE", "DELETE FROM"}:
                own = tables.of(relation, path)
                own = tables.after_deletion(own) if verb == "DELETE FROM" else own
                writes |= own
                reads |= own if verb != "INSERT INTO" or "ON CONFLICT" in body else set()
            elif relation not in known:
                reads |= tables.of(relation, path)
            else:
                reads |= inlined.get(relation, set())
        known.add(name)
        is_fixed = writes or _LOCKS.search(body) or text[:start].endswith(" MATERIALIZED (")
        if not is_fixed and len(re.findall(rf"\b(?:FROM|JOIN|USING) {name}\b(?!\.)", text[end:])) == 1:
            inlined[name] = reads  # where it is named: so does Citus, and reads there
            continue
        found |= {(table, writer, name) for writer, changed in written for table in changed & reads}
        written.append((name, writes))
    return found


@pytest.fixture(scope="module")
def tables(migrated):
    return Tables(migrated)


def of_query(query, tables):
    path = PATH_OF.get(query.role, query.role if query.role != roles.OWNER else roles.LABELS[0])
    return read_after_written(for_cluster(query.text), tables, path)


def test_what_reads_the_rows_of_an_earlier_step_is_right_in_both_orders(tables):
    several = [each for each in named(FILES) if each.file not in RELATIONS and each.text.startswith("WITH ")]
    found = {
        f"{query.name}: {table.partition('.')[2]}, by {writer}, then by {reader}"
        for query in several
        for table, writer, reader in of_query(query, tables)
    }

    assert found == set(BOTH_WAYS)


def test_a_sum_that_counts_what_the_statement_adds_is_found(tables):
    (query,) = (query for query in named(SERVED) if query.name == "create_shared_block")
    before, after = query.text.split(" stored AS MATERIALIZED (")
    stored, _, rest = after.partition("), new_item AS (")
    late = f"{before} new_item AS ({rest}".replace("CROSS JOIN stored", f"CROSS JOIN ({stored}) AS stored")
    inlined = query.text.replace("stored AS MATERIALIZED (", "stored AS (")

    expected = {("muniment_public.storage", "counted", "the main statement")}
    assert read_after_written(late, tables, query.role) == expected
    assert read_after_written(inlined, tables, query.role) == expected


@pytest.mark.parametrize(
    ("text", "reader"),
    [
        ("WITH a AS (DELETE FROM chunk), b AS (UPDATE meaning SET prior = NULL) SELECT", "b"),
        ("WITH a AS (INSERT INTO item SELECT), b AS (SELECT FROM visible FOR SHARE) SELECT FROM b", "b"),
        ("WITH a AS (INSERT INTO item SELECT), b AS (SELECT FROM item) SELECT FROM b JOIN b ON TRUE", "b"),
        ("WITH b AS (SELECT FROM item), a AS (INSERT INTO item SELECT) SELECT FROM b", "the main statement"),
        ("WITH a AS (INSERT INTO item SELECT) INSERT INTO item SELECT ON CONFLICT DO NOTHING", "the main statement"),
        ("WITH a AS (INSERT INTO item SELECT) INSERT INTO item SELECT FROM a", None),
        ("WITH b AS MATERIALIZED (SELECT FROM item), a AS (INSERT INTO item SELECT) SELECT FROM b", None),
    ],
)
def test_a_step_that_reads_what_is_written_is_found(tables, text, reader):
    assert {found for _, _, found in read_after_written(text, tables, "muniment_public")} == ({reader} - {None})
