"""The queries of sessions and hosts, composed at load.

A query of a session names relations of `scope.sql`, such as `session` and `visible`; each becomes a common table
expression in front of it. So the session predicate is written once, and no query can omit it. Only the files in TRUSTED
may also name tables: writes must name their targets, and locks their rows. `make trusted` counts these files. The
others return rows only while the session is open at the level of the connection: no row always means a stale session.
A test has Postgres parse these, and finds what they name (tests/calls/monitor/test_queries.py).

All queries of hosts are trusted. A lint (tests/support/query_lint.py) checks that each is restricted to the host's
tenant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from muniment_server.postgres.queries import flattened, load, read, split

SESSION_FILES: Final = (
    ("muniment_server.monitor", "session.sql"),
    ("muniment_server.items", "queries.sql"),
    ("muniment_server.items", "writes.sql"),
    ("muniment_server.passages", "queries.sql"),
    ("muniment_server.search", "index.sql"),
    ("muniment_server.search", "lexical.sql"),
    ("muniment_server.search", "semantic.sql"),
)
"""The query files that run as the role of a session's level."""
HOST_FILES: Final = (
    ("muniment_server.monitor", "host.sql"),
    ("muniment_server.agents", "queries.sql"),
    ("muniment_server.agents", "erasing.sql"),
    ("muniment_server.sessions", "queries.sql"),
    ("muniment_server.blocks", "sharing.sql"),
    ("muniment_server.releases", "queries.sql"),
)
"""The query files that run as the control role; what erases items, as the eraser."""
AUDIT_FILES: Final = (("muniment_server.audit_log", "queries.sql"),)
"""The query files that run as the auditor."""
TRUSTED: Final = frozenset(
    {
        ("muniment_server.monitor", "session.sql"),
        ("muniment_server.items", "writes.sql"),
        ("muniment_server.search", "index.sql"),
        *HOST_FILES,
    }
)
"""The query files that may name tables: an error in one of them can mix up agents, though a role never reads above its
level. `sessions/queries.sql` also decides which level a session has."""

_NAMED = re.compile(r"\b(?:FROM|JOIN) (\w+)")
"""Where a query names a relation. A name that this misses fails the test: Postgres would find a table."""
_LOCKED = re.compile(r"^-- session: locked$", re.MULTILINE)


def session_queries() -> Mapping[str, str]:
    """The queries of sessions by name, each composed with the session predicate."""
    return _composed_files(SESSION_FILES, load(__package__, "scope.sql"))


def audit_queries() -> Mapping[str, str]:
    """The queries of the auditor by name, each restricted to a tenant and a ceiling."""
    return _composed_files(AUDIT_FILES, load(__package__, "audit.sql"))


def host_queries() -> Mapping[str, str]:
    """The queries of hosts by name."""
    return {name: text for package, file in HOST_FILES for name, text in load(package, file).items()}


def composed(text: str, relations: Mapping[str, str], *, locked: bool = False) -> str:
    """*text*, preceded by the *relations* that it names."""
    expressions = ", ".join(_expressions(_NAMED.findall(text), relations, locked=locked))
    if expressions and text.startswith("WITH "):
        return f"WITH {expressions}, {text.removeprefix('WITH ')}"
    return f"WITH {expressions} {text}" if expressions else text


def _composed_files(files: tuple[tuple[str, str], ...], relations: Mapping[str, str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for package, file in files:
        for name, body in split(read(package, file)).items():
            text = flattened(body)
            if (package, file) not in TRUSTED and "session" in relations:
                text = _while_open(text)
            found[name] = composed(text, relations, locked=_LOCKED.search(body) is not None)
    return found


def _while_open(text: str) -> str:
    """*text*, with no row if the session is stale. An aggregate would otherwise count nothing, and return a row."""
    return f"SELECT answer.* FROM ({text}) AS answer WHERE EXISTS (SELECT FROM session)"  # noqa: S608 - the text of a file


def _expressions(named: Collection[str], relations: Mapping[str, str], *, locked: bool) -> Iterator[str]:
    """The common table expressions. The session comes first, named or not, because the others depend on it."""
    for relation, body in relations.items():
        if relation == "session":
            yield f"session AS MATERIALIZED ({relations['session_locked'] if locked else body})"
        elif relation in named:
            yield f"{relation} AS NOT MATERIALIZED ({body})"


def _names(files: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The names of the queries in *files*, except those that only the monitor runs."""
    return frozenset(name for package, file in files if package != __package__ for name in load(package, file))


SESSION_QUERIES: Final = session_queries()
READS: Final = _names(file for file in SESSION_FILES if file not in TRUSTED)
"""The queries that a noun may run as a session. They name no table, so they cannot write."""
WRITES: Final = _names(file for file in SESSION_FILES if file in TRUSTED)
"""The writes that a noun may run as a session."""
HOST_STATEMENTS: Final = _names(HOST_FILES)
"""The statements that a noun may run as a host."""
HOST_QUERIES: Final = host_queries()
AUDIT_QUERIES: Final = audit_queries()
