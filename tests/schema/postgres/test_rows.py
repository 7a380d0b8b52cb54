"""Every named query returns the columns that the dataclass of its rows declares."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import muniment_server
from muniment_server.admin import connection
from muniment_server.monitor.queries import AUDIT_QUERIES, HOST_QUERIES, SESSION_QUERIES
from muniment_server.postgres import queries, roles
from tests.support.each import for_each
from tests.support.named_queries import ERASING

_PARAMETER = re.compile(r"%\((\w+)\)s")
ROOT = Path(muniment_server.__file__).parent
OWNER_QUERIES = {
    **connection.QUERIES,
    **queries.load("muniment_server.search", "reindex.sql"),
    **queries.load("muniment_server.admin", "sealing.sql"),
}
SEALER_QUERIES = queries.load("muniment_server.background", "sealer.sql")
EMBEDDER_QUERIES = queries.load("muniment_server.embedder", "queue.sql")
TEXTS = {
    **{name: (text, "muniment_restricted") for name, text in {**SESSION_QUERIES, **EMBEDDER_QUERIES}.items()},
    **{name: (text, roles.CONTROL) for name, text in HOST_QUERIES.items()},
    **{name: (HOST_QUERIES[name], roles.ERASER) for name in queries.load(*ERASING)},
    **{name: (text, roles.AUDITOR) for name, text in {**AUDIT_QUERIES, **SEALER_QUERIES}.items()},
    **{name: (text, roles.OWNER) for name, text in OWNER_QUERIES.items()},
}


class Use(NamedTuple):
    """A query and the dataclass of its rows, named together in one call."""

    module: str
    query: str
    row: str

    def __str__(self) -> str:
        return f"{self.query}-{self.row}"


ELSEWHERE = {
    Use("muniment_server.search.reindex", "list_agents_to_reindex", "_Agent"),
    Use("muniment_server.search.reindex", "lock_items", "_Item"),
    Use("muniment_server.embedder.queue", "waiting_chunks", "QueuedChunk"),
    Use("muniment_server.embedder.queue", "last_of_batch", "ChunkPosition"),
    Use("muniment_server.embedder.queue", "keep_vectors", "_Kept"),
    Use("muniment_server.monitor.session_scope", "lock_writes", "_Locked"),
}
"""Those that a call does not name side by side."""


def uses() -> list[Use]:
    """Every call of the server that names a query and a dataclass side by side."""
    return sorted(
        ELSEWHERE
        | {
            Use(_module(path), *pair)
            for path in ROOT.rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Call) and (pair := _pair(node)) is not None
        }
    )


def numbered(text: str) -> bytes:
    """*text* with `$1` in the place of its first parameter, and so on: as the driver sends it, without types."""
    order: dict[str, int] = {}
    return (
        _PARAMETER.sub(lambda match: f"${order.setdefault(match[1], len(order) + 1)}", text).replace("%%", "%").encode()
    )


def _pair(call: ast.Call) -> tuple[str, str] | None:
    for first, second in zip(call.args, call.args[1:], strict=False):
        if (
            isinstance(first, ast.Constant)
            and first.value in TEXTS
            and isinstance(second, ast.Name)
            and second.id.lstrip("_")[0].isupper()
        ):
            return str(first.value), second.id
    return None


def _module(path: Path) -> str:
    return ".".join(["muniment_server", *path.relative_to(ROOT).with_suffix("").parts])


def test_the_calls_are_found():
    assert len({use.query for use in uses()}) > 40


@for_each("use", uses())
def test_a_query_returns_the_fields_of_its_dataclass(migrated, use):
    text, role = TEXTS[use.query]
    row = getattr(importlib.import_module(use.module), use.row)
    with migrated.as_owner() if role == roles.OWNER else migrated.connect(role) as connection:
        if role in {roles.OWNER, roles.ERASER}:
            connection.execute("SET search_path = muniment_restricted")
        prepared = connection.pgconn.prepare(b"it", numbered(text), None)
        assert prepared.error_message.decode() == ""
        described = connection.pgconn.describe_prepared(b"it")

    assert [described.fname(n).decode() for n in range(described.nfields)] == [field.name for field in fields(row)]
