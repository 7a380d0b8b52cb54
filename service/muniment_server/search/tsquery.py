"""The syntax of Postgres' text search queries."""

from __future__ import annotations

from collections.abc import Iterable

from muniment_server.search.grams import PREFIX


def any_of(combinations: Iterable[tuple[str, ...]]) -> str:
    """A query for any of *combinations*, each of which needs all of its terms. Empty if there are none."""
    return " | ".join("(" + " & ".join(map(quoted, terms)) + ")" for terms in combinations)


def quoted(term: str) -> str:
    """A query for one term, quoted, so that nothing in it is syntax but the `:*` of a prefix."""
    quotable = term.removesuffix(PREFIX)
    return "'" + quotable.replace("\\", "\\\\").replace("'", "''") + "'" + term[len(quotable) :]
