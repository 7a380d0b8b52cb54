"""The grants on a Citus cluster, which are compared with the matrix on each node and on each of its shards.

Views that use their owner's privileges on plain Postgres use the caller's here, since a node connects to the others as
the caller. So the levels have grants on the tables below the views, and row policies restrict what these tables show.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any

import psycopg

from muniment_server.domain.classification import Label
from muniment_server.engines.citus import cluster, settings
from muniment_server.monitor import grants
from muniment_server.monitor.grants import Fact
from muniment_server.postgres import queries, roles

_CATALOG = queries.load(grants.__package__ or "", "catalog.sql")
_QUERIES = queries.load(__package__, "grants.sql")
_SHARD = re.compile(r"(?P<table>.*[a-z])_(?P<shard>\d{6,})")
_INVOKER = "security_invoker=true"
_BARRIER = "security_barrier=true"
_VIEWS_OF_OWNER = ("session", "agent", "link", "deleted_item")
"""The views of each level that use their owner's privileges on plain Postgres."""
_READABLE = {
    "conversation": ("tenant", "agent", "conversation_id", "ceiling", "taint", "trusted", "fence"),
    "session": (
        "tenant", "agent", "session_id", "conversation_id", "ceiling", "create_time", "expire_time", "close_time",
        "level", "trusted", "read_only", "fence",
    ),
    "agent": (
        "tenant", "agent", "agent_id", "language", "memory_enabled", "user_profile_enabled", "memory_char_limit",
        "user_char_limit", "max_items", "max_bytes", "max_revisions", "known_from",
    ),
}  # fmt: skip
"""The columns of the hosts' tables that the views of a level show."""
_ERASED = {
    "item": (
        "ctid", "tenant", "agent", "kind", "name", "item_id", "revision", "change_id", "tags", "content", "delete_time",
    ),
    "revision": ("ctid", "tenant", "agent", "kind", "name", "item_id", "revision", "tags", "content"),
    "chunk": (
        "ctid", "tenant", "agent", "kind", "name", "change_id", "sample", "language", "stem_count", "gram_count",
    ),
    "stat": ("ctid", "tenant", "agent", "kind", "language", "change_id"),
    "storage": ("ctid", "tenant", "agent", "change_id"),
    "meaning": ("tenant", "agent", "kind", "prior"),
    "embedding_list": ("tenant", "agent", "kind", "embedder", "number", "signs", "version"),
    "remote_embedding": ("tenant", "agent", "kind", "prior_name"),
}  # fmt: skip
"""The columns of a level's tables that the eraser reads, through its views or to find the rows that it changes."""
_ERASED_OF_HOSTS = {
    "agent": ("tenant", "agent", "ceiling", "delete_time"),
    "conversation": ("ctid", "tenant", "agent", "conversation_id"),
    "session": ("ctid", "tenant", "agent", "session_id", "create_time"),
    "host_key": ("tenant", "host_key_id", "revoke_time", "freeze_time", "expire_time"),
    "erasure": ("tenant", "agent", "kind", "ceiling"),
}
_ERASERS_VIEWS = (
    "erasable_item", "erasable_revision", "erasable_chunk", "erasable_stat", "erasable_storage", "erasing_item",
    "erasing_revision", "erasing_chunk", "erasing_embedding_list",
)  # fmt: skip
_LOCKED = ("conversation", "session")
_NO_NODES = "the cluster knows no node: run `muniment migrate`"
_MOST_NAMED = 3
"""How many differences of each node are named."""


def risky_settings(connection: psycopg.Connection[Any], *, durable: bool) -> Iterator[str]:
    """The settings of each node that log statements and, if the database must be *durable*, that can lose writes."""
    for node, found in cluster.facts_of_nodes(connection, _QUERIES["risky_settings"], {"durable": durable}).items():
        yield from (f"{fault} at {node}: {risk}; {remedy}" for fault, risk, remedy in found)


def differences(connection: psycopg.Connection[Any], of_newer: Collection[str] | None = None) -> list[str]:
    """How the grants in the catalog of any node differ from the matrix: see `grants.differences`."""
    found = _differences(connection, of_newer)
    return [difference for of_node in found.values() for difference in of_node] if found else [_NO_NODES]


def by_node(connection: psycopg.Connection[Any], of_newer: Collection[str] | None) -> list[str]:
    """The first differences of each node, how many it has, and what to do: a node that was added has hundreds."""
    found = _differences(connection, of_newer)
    if not found:
        return [_NO_NODES]
    return [
        problem
        for node, of_node in found.items()
        if of_node
        for problem in (
            *of_node[:_MOST_NAMED],
            f"grants that differ from the matrix at {node}: {len(of_node)}. Run `muniment migrate`: this repeats "
            "those that Citus omits when a node is added or shards are moved",
        )
    ]


def _differences(connection: psycopg.Connection[Any], of_newer: Collection[str] | None) -> dict[str, list[str]]:
    """The differences of each node of the cluster, with its address, by that address."""
    names = {"roles": list(roles.ALL), "serving": list(roles.SERVING)}
    found: dict[str, set[Fact]] = {}
    for query in (_CATALOG["rights"], _CATALOG["preconditions"], _QUERIES["policies"]):
        for node, rows in cluster.facts_of_nodes(connection, query, names).items():
            found.setdefault(node, set()).update(Fact(*row) for row in rows)
    return {
        node: [f"{difference} at {node}" for difference in _of_node(facts, of_newer)]
        for node, facts in sorted(found.items())
    }


def _of_node(facts: Iterable[Fact], of_newer: Collection[str] | None) -> Iterator[str]:
    """The differences on one node. Each shard must have the facts of its table."""
    expected = matrix()
    own: dict[str, set[Fact]] = {"": set()}
    table_of = {}
    for subject, relation, fact in facts:
        shard = _SHARD.fullmatch(relation)
        own.setdefault(relation if shard else "", set()).add(Fact(subject, shard["table"] if shard else relation, fact))
        if shard:
            table_of[relation] = shard["table"]
    for relation, found in sorted(own.items()):
        wanted = {fact for fact in expected if fact.object == table_of[relation]} if relation else expected
        where = f" in its shard {relation}" if relation else ""
        yield from (f"{difference}{where}" for difference in grants.compared(found, wanted, of_newer))


def matrix() -> frozenset[Fact]:
    """Every privilege that may exist on a node, and the properties that they depend on."""
    absent = set(chain.from_iterable(map(_only_on_plain_postgres, Label)))
    labels = chain.from_iterable(map(_label, Label))
    return frozenset(chain(grants.matrix() - absent, labels, _hosts(), _functions(), _settings()))


def _only_on_plain_postgres(label: Label) -> Iterator[Fact]:
    """Facts of plain Postgres that do not hold here: Citus cannot lock rows behind a security barrier."""
    yield Fact("view", f"{label.role}.session", _BARRIER)


def _label(label: Label) -> Iterator[Fact]:
    role = label.role
    for view in _VIEWS_OF_OWNER:
        yield Fact("view", f"{role}.{view}", _INVOKER)
    yield Fact("view", f"{role}.session", "security_barrier=false")
    for table, columns in _READABLE.items():
        yield from (Fact(role, f"vault.{table}", f"SELECT ({column})") for column in columns)
    yield Fact(role, "vault.block_link", "SELECT")
    yield from (Fact(role, f"vault.{table}", "UPDATE (fence)") for table in _LOCKED)
    trusted = str(label.is_trusted).lower()
    yield Fact(role, "vault.conversation", f"rows ((taint = {label.level.value}) AND (trusted = {trusted}))")
    yield Fact(role, "vault.session", f"rows ((level <= {label.level.value}) AND (trusted >= {trusted}))")
    yield Fact(role, f"{role}.item", "DELETE")
    yield from _eraser(role)


def _eraser(schema: str) -> Iterator[Fact]:
    """What the eraser may do to the tables of a level, since Citus cannot change rows through views."""
    role = roles.ERASER
    yield from (Fact("view", f"{schema}.{view}", _INVOKER) for view in _ERASERS_VIEWS)
    for table, columns in _ERASED.items():
        yield from (Fact(role, f"{schema}.{table}", f"SELECT ({column})") for column in columns)
    for table in ("item", "revision", "chunk", "stat", "storage", "remote_embedding"):
        yield Fact(role, f"{schema}.{table}", "DELETE")
    for table in ("stat", "storage"):
        yield Fact(role, f"{schema}.{table}", "INSERT")
    yield Fact(role, f"{schema}.item", "UPDATE (delete_time)")  # the right to lock
    for column in ("prior", "embedder", "signs", "vector", "list"):
        yield Fact(role, f"{schema}.meaning", f"UPDATE ({column})")
    for column in ("signs", "version"):
        yield Fact(role, f"{schema}.embedding_list", f"UPDATE ({column})")


def _hosts() -> Iterator[Fact]:
    for table in _LOCKED:
        yield Fact("row security", f"vault.{table}", "enabled")
        yield Fact("pinned", f"vault.{table}", "CHECK ((fence = 0))")
        yield from (Fact(role, f"vault.{table}", "rows true") for role in (roles.CONTROL, roles.ERASER))
    yield Fact(roles.AUDITOR, "vault.session", "rows true")
    yield Fact(roles.ERASER, "schema vault", "USAGE")
    for table, columns in _ERASED_OF_HOSTS.items():
        yield from (Fact(roles.ERASER, f"vault.{table}", f"SELECT ({column})") for column in columns)
    for table in ("agent", "conversation", "session"):
        yield Fact(roles.ERASER, f"vault.{table}", "DELETE")
    for view in ("agent", "conversation", "session", "host_key"):
        yield Fact("view", f"{roles.ERASER}.{view}", _INVOKER)


def _functions() -> Iterator[Fact]:
    """What may be executed: only the control role runs commands on nodes, and it may not read any item."""
    asks = "vault.epochs_of_nodes"
    yield Fact("function", asks, f"{cluster.EPOCHS_OF_NODES} as its owner")
    yield Fact("PUBLIC", f"function {asks}", "EXECUTE")
    yield Fact("PUBLIC", f"function {asks}", "EXECUTE as its owner")
    yield Fact(roles.CONTROL, "function master_run_on_worker(text[],integer[],text[],boolean)", "EXECUTE")


def _settings() -> Iterator[Fact]:
    """The settings of connections between nodes, which those of a session do not reach."""
    for role, wanted in settings.SETTINGS_BETWEEN_NODES.items():
        yield from (Fact(role, "setting", f"{name}={value}") for name, value in wanted.items())
