"""What `muniment doctor` counts in a database: damage, and what waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from muniment_server.admin.connection import Operator
from muniment_server.domain.classification import Label
from muniment_server.domain.limits import NEARLY_FULL
from muniment_server.search.embeddings import EMBEDDER

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class NearlyFull:
    """An agent that has stored most of what it may at one level."""

    tenant: str
    agent_id: str
    items: int
    max_items: int
    bytes: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Size:
    """How many tenants and agents a database has."""

    tenants: int
    agents: int


@dataclass(frozen=True, slots=True)
class _Waiting:
    waiting: int
    outdated: int


@dataclass(frozen=True, slots=True)
class _RemoteChunks:
    waiting: int
    made: int


def size_of(operator: Operator) -> Size:
    """How many tenants and agents the database has."""
    return operator.one("count_agents", Size)


def broken_ledgers(operator: Operator) -> dict[Label, int]:
    """How many items of each level are lost, or have lost versions: their revisions have a gap."""
    return _counted(operator, "lost_items", "broken_ledgers")


def broken_index(operator: Operator) -> dict[Label, int]:
    """How many entries of the search index are missing, stale or miscounted, by level."""
    return _counted(operator, "broken_index")


def broken_storage(operator: Operator) -> dict[Label, int]:
    """How many agents have wrong counts of what they store, by level."""
    return _counted(operator, "broken_storage")


def nearly_full_agents(operator: Operator) -> dict[Label, list[NearlyFull]]:
    """The agents that have stored most of what they may, by level."""
    return _at_levels(operator, "nearly_full_agents", NearlyFull, part=NEARLY_FULL)


def waiting_chunks(operator: Operator) -> tuple[int, int]:
    """How many chunks are queued for embedding, and how many have an embedding of another model."""
    counts = [count for (count,) in _at_levels(operator, "count_waiting", _Waiting, embedder=EMBEDDER).values()]
    return sum(count.waiting for count in counts), sum(count.outdated for count in counts)


def remote_chunks(operator: Operator) -> tuple[int, int]:
    """How many embeddings by models at addresses are waited for, and how many are stored."""
    counts = [count for (count,) in _at_levels(operator, "count_remote", _RemoteChunks).values()]
    return sum(count.waiting for count in counts), sum(count.made for count in counts)


def erasing(operator: Operator) -> tuple[int, int]:
    """How many deleted agents are not yet erased, and how many items and versions of theirs are left."""
    return operator.values("count_deleted_agents")[0], sum(_counted(operator, "count_erasing").values())


def _counted(operator: Operator, *queries: str) -> dict[Label, int]:
    """What *queries* count at each level, together."""
    counts = dict.fromkeys(Label, 0)
    for level in Label:
        with operator.at(level):
            counts[level] = sum(operator.values(query)[0] for query in queries)
    return counts


def _at_levels(operator: Operator, query: str, row: type[_R], /, **more: object) -> dict[Label, list[_R]]:
    found = {}
    for level in Label:
        with operator.at(level):
            found[level] = operator.rows(query, row, **more)
    return found
