"""What a level or an agent ends at, broken: the level views, what a process remembers, samples, scores.

Three of these leaks passed every comparison of worlds and grants before `level_views.py` was written: the statistics of
the level above, counts that are remembered without the taint, and a sample over all agents.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import psycopg

from muniment_server.domain.classification import Classification
from muniment_server.monitor import grants
from muniment_server.monitor.grants import Fact
from muniment_server.search import ranking, search
from tests.proof.noninterference import level_views, scores
from tests.proof.noninterference.mutants.scheme import ITEMS, Mutant, Patch, edit, remembering, setting
from tests.support.labels import untrusted

_READ = ("item", "revision", "chunk", "stat", "meaning", "remote_embedding", "embedding_list", "storage")


def reading_above(low: Classification) -> tuple[str, ...]:
    """The grants with which *low* could read the tables of the level above."""
    high, role = untrusted(Classification(low + 1)).role, untrusted(low).role
    both = (high, f"{high}_trusted")
    tables = ", ".join(f"{schema}.{table}" for schema in both for table in _READ)
    return f"GRANT USAGE ON SCHEMA {', '.join(both)} TO {role}", f"GRANT SELECT ON {tables} TO {role}"


def _definition(admin: psycopg.Connection[Any], view: str) -> str:
    (text,) = admin.execute("SELECT pg_get_viewdef(%s::regclass)", [view]).fetchone() or ("",)
    return str(text).rstrip("; ")


def _widened(admin: psycopg.Connection[Any], relation: str, low: str, high: str) -> str:
    """The definition of a view of the level *low* that also reads the level *high*."""
    own, above = (_definition(admin, f"{level}.{relation}") for level in (low, high))
    if relation == "shared_visible":  # the links of the own sessions, to what is visible above
        visible = f"JOIN {low}.visible"
        assert visible in own
        return own.replace(visible, f"JOIN ({_definition(admin, f'{high}.visible')}) visible")
    return f"{own} UNION ALL {above}" if relation == "storage_size" else above


@contextlib.contextmanager
def widened(admin: psycopg.Connection[Any], relation: str, low: Classification) -> Iterator[None]:
    """A view of *low* that also reads the level above, until the block ends."""
    view, high = f"{untrusted(low).role}.{relation}", untrusted(Classification(low + 1)).role
    before = _definition(admin, view)
    options = ", ".join(
        name
        for row in admin.execute("SELECT reloptions FROM pg_class WHERE oid = %s::regclass", [view])
        for name in row[0]
    )
    wide = _widened(admin, relation, untrusted(low).role, high)
    admin.execute(f"CREATE OR REPLACE VIEW {view} WITH ({options}) AS {wide}".encode())
    try:
        yield
    finally:
        admin.execute(f"CREATE OR REPLACE VIEW {view} WITH ({options}) AS {before}".encode())


WIDENED = ("visible", "shared_visible", "visible_chunk", "visible_stat", "storage_size", "deleted_item")
"""The views of a level that end at it, of which each is widened in test_level_views.py."""
COVERED = {
    "visible_revision": "what is listed belongs to a visible version, by its level and id: M98",
    "visible_meaning": "what is compared is a visible chunk of the same version",
    "visible_remote_embedding": "whether one above waits is shown in tests/calls/search/test_remote_search.py",
    "visible_embedding_list": "whether one above is counted is shown in tests/calls/search/test_embedding_lists.py",
    "session": "it shows the sessions of one taint: M69 to M71",
    "agent": "it shows the agents of the level's sessions, which have no level",
    "link": "it shows the links of the level's sessions, which hosts make",
}
"""The views that are not widened, and why."""

_MATRIX = grants.matrix
_INTERNAL, _CONFIDENTIAL = untrusted(Classification.INTERNAL).role, untrusted(Classification.CONFIDENTIAL).role


def _matrix_with_one_above(table: str) -> frozenset[Fact]:
    return _MATRIX() | {
        fact
        for schema in (_CONFIDENTIAL, f"{_CONFIDENTIAL}_trusted")
        for fact in (
            Fact(_INTERNAL, f"schema {schema}", "USAGE"),
            Fact(_INTERNAL, f"{schema}.{table}", "SELECT"),
            Fact("view", f"{_INTERNAL}.visible_{table}", f"reads {schema}.{table}"),
        )
    }


def _reading_above(name: str, table: str, *patches: Patch) -> Mutant:
    """At INTERNAL, the view of a table is that of CONFIDENTIAL."""
    return Mutant(
        name,
        "what is above changes nothing below",
        (setting(grants, "matrix", functools.partial(_matrix_with_one_above, table)), *patches),
        damage=(
            f"GRANT USAGE ON SCHEMA {_CONFIDENTIAL}, {_CONFIDENTIAL}_trusted TO {_INTERNAL}",
            f"GRANT SELECT ON {_CONFIDENTIAL}.{table}, {_CONFIDENTIAL}_trusted.{table} TO {_INTERNAL}",
            f"""DO $$ BEGIN EXECUTE 'CREATE OR REPLACE VIEW {_INTERNAL}.visible_{table} WITH (security_invoker = true)'
                      || ' AS ' || pg_get_viewdef('{_CONFIDENTIAL}.visible_{table}'::regclass); END $$""",
        ),
        probe=level_views.internal_ends_at_its_level,
    )


_lexical = search._lexical


def _counts_of_agents() -> Any:
    """Counts of a query's words that are remembered for each agent, whatever the taint."""
    known: dict[Any, Any] = {}

    def counted(scope: Any, kind: Any, query: str, terms: Any) -> Any:
        key = scope._session.tenant, scope._session.agent, kind, query
        if key not in known:
            known[key] = _lexical(scope, kind, query, terms)
        return known[key]

    return counted


def _counts_of_queries() -> Any:
    """The same for each query, whoever asks it."""
    known: dict[Any, Any] = {}

    def counted(scope: Any, kind: Any, query: str, terms: Any) -> Any:
        if (kind, query) not in known:
            known[kind, query] = _lexical(scope, kind, query, terms)
        return known[kind, query]

    return counted


_OF_THE_AGENT = "visible_chunk.agent = (SELECT session.agent FROM session)"
_OWN_CHUNKS = (
    "(SELECT count(*) FROM visible_chunk AS own WHERE own.tenant = %(tenant)s AND own.kind = %(kind)s"
    " AND own.agent = (SELECT session.agent FROM session))"
)
STATISTICS_ABOVE = _reading_above(
    "M12 the statistics of INTERNAL are those of CONFIDENTIAL, in the grants and in the matrix", "stat"
)
_OF_A_VISIBLE_VERSION = " AND (old.label, old.item_id) = (live.label, live.item_id)"


def _scored(name: str, *patches: Patch) -> Mutant:
    return Mutant(name, "scores are those of what is seen", patches, probe=scores.scores_are_those_of_what_is_seen)


LEVEL_VIEWS = (
    _scored(
        "words are estimated where they could be counted",
        setting(search, "MAX_SAMPLED", 10),
        setting(search, "MAX_STEMS_COUNTED", 1),
    ),
    _scored("grams weigh more", setting(ranking, "GRAM_WEIGHT", 0.31)),
    _scored(
        "what is shadowed is not counted",
        edit(
            ITEMS,
            "search_terms",
            "FROM visible_chunk AS chunk WHERE chunk.kind = %(kind)s",
            "FROM visible_chunk AS chunk WHERE chunk.kind = %(kind)s AND chunk.label = (SELECT max(above.label)"
            " FROM visible_chunk AS above WHERE (above.kind, above.name) = (chunk.kind, chunk.name))",
        ),
    ),
    STATISTICS_ABOVE,
    Mutant(
        "M98 the revisions of any item of the agent are listed",
        "model",
        (edit(ITEMS, "list_versions", _OF_A_VISIBLE_VERSION, ""),),
        about="versions",
    ),
    _reading_above(
        "M98 the revisions of INTERNAL are those of CONFIDENTIAL, of any item, in the grants and in the matrix",
        "revision",
        edit(ITEMS, "list_versions", _OF_A_VISIBLE_VERSION, ""),
    ),
    Mutant(
        "M78 the counts of a query's words are remembered without the taint",
        "what is above changes nothing below",
        (remembering(search, "_lexical", _counts_of_agents),),
        probe=level_views.internal_ends_at_its_level,
    ),
    Mutant(
        "M78 the counts of a query's words are remembered for whoever asks",
        "worlds",
        (remembering(search, "_lexical", _counts_of_queries),),
    ),
    Mutant(
        "M78 the counts of a query's words are remembered for whoever asks, compared without others",
        "alone",
        (remembering(search, "_lexical", _counts_of_queries),),
    ),
    Mutant(
        "words are counted in a sample over all agents, once there are more chunks than a sample has",
        "what another agent holds changes nothing",
        (edit(ITEMS, "search_terms", _OF_THE_AGENT, f"({_OF_THE_AGENT} OR {_OWN_CHUNKS} >= %(max_sampled)s)"),),
        probe=level_views.an_agent_ends_at_itself,
    ),
)
