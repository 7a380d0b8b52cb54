"""The text of statements on a Citus cluster. See ADR 14.

Citus cannot change rows through a view, so its table takes its place. A query of a session contains the view's
condition itself; those of the eraser find the rows in its views first.

Citus runs a step on the node of the tenant only if the step selects the tenant from a table. So the steps of a call
that read only what earlier steps return also read `home`: one row of the tenant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from muniment_server.postgres import queries

_QUERIES = queries.load(__package__, "citus.sql")
_CHANGED_VIEW = re.compile(r"\b((?:DELETE FROM|INSERT INTO|UPDATE) )(?:deleted|erasable|erasing)_(\w+)")
"""A change of rows through a view whose name ends with that of its table."""
_TABLE_OF: Mapping[str, str] = {"embedding": "meaning"}
"""The tables of the views whose names end otherwise."""
_OF_HOSTS = re.compile(r"\b(DELETE FROM )((?:session|conversation|agent) AS erased\b)")
_ADDRESS = re.compile(r"\berased\.address\b")
_BYTES = re.compile(r"(\bRETURNING [^()]*)\berased\.bytes")

_OF_SESSION = "WITH session AS MATERIALIZED ("
_OF_HOST = re.compile(r"\bINSERT INTO audit AS logged \([^)]*\bhost_key_id\b")
"""A call of a host writes its audit row in the statement that has the effect."""
_EXPRESSION = re.compile(r"(?:WITH|,) (\w+) AS (NOT MATERIALIZED )?(?:MATERIALIZED )?\(")
_INSERT = re.compile(r"(\bINSERT INTO \S+ AS \w+ \(tenant,[^)]*\) SELECT )%\(tenant\)s(?=,)")
_SELECTED = re.compile(r" (?:FROM|JOIN) (?!LATERAL\b)([\w.]+)")
_CHANGED = re.compile(r"\b(?:UPDATE|DELETE FROM) ")
_GROUPS = " GROUP BY "


@cache
def for_cluster(query: str) -> str:
    """The text of *query* on a cluster."""
    query = _OF_HOSTS.sub(r"\1vault.\2", _at_home(query))
    query = _CHANGED_VIEW.sub(lambda match: match[1] + _TABLE_OF.get(match[2], match[2]), query)
    return _ADDRESS.sub("erased.ctid", _BYTES.sub(r"\1octet_length(erased.content) AS bytes", query))


def _at_home(query: str) -> str:
    """*query*, with `home` in the steps that insert what earlier steps return, and in a main statement that reads it.

    Only what sessions and hosts run: the eraser may read no table that has exactly one row of a tenant.
    """
    of_session = query.startswith(_OF_SESSION)
    if not of_session and not _OF_HOST.search(query):
        return query
    text, place, returned = "", 0, set[str]()
    for match in _EXPRESSION.finditer(query):
        if match.start() >= place:
            end = _end(query, match.end())
            text += query[place : match.end()] + _step(query[match.end() : end], returned)
            place, returned = end, returned | (set() if match[2] else {match[1]})
    text, main = (f"{text})", query[place + 1 :]) if place else ("", query)
    changed = _step(main, returned)
    if changed == main and set(_SELECTED.findall(main)) <= returned and not _CHANGED.search(main):
        changed = _joined(main)
    return query if text + changed == query else _with_home(text + changed, of_session=of_session)


def _step(text: str, returned: set[str]) -> str:
    """A step, which selects its tenant from `home` if it inserts what earlier ones have *returned*."""
    insert = _INSERT.search(text)
    if insert is None or not returned & set(_SELECTED.findall(text)):
        return text
    return text[: insert.end(1)] + _joined(f"home.tenant{text[insert.end() :]}")


def _joined(select: str) -> str:
    """The rest of a statement from its SELECT on, which also reads `home`."""
    place = _outermost(select, " FROM ")
    if place is None:
        return f"{select} FROM home"
    end = place + len(" FROM ")
    groups = _outermost(select, _GROUPS)
    if groups is not None:
        select = f"{select[:groups]}{_GROUPS}home.tenant, {select[groups + len(_GROUPS) :]}"
    return f"{select[:end]}home CROSS JOIN {select[end:]}"


def _with_home(text: str, *, of_session: bool) -> str:
    """*text*, which names `home`, with that as one more step: after the session, which it reads, or first."""
    home = f"home AS NOT MATERIALIZED ({_QUERIES['home_of_session' if of_session else 'home_of_host']})"
    if of_session:
        end = _end(text, len(_OF_SESSION)) + 1
        return f"{text[:end]}, {home}{text[end:]}"
    return f"WITH {home}, {text.removeprefix('WITH ')}"


def _outermost(text: str, word: str) -> int | None:
    """Where *text* has *word* outside of parentheses."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and text.startswith(word, place):
            return place
    return None


def _end(text: str, start: int) -> int:
    """Where the parenthesis ends that began before *start*."""
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    raise ValueError(text)
