"""The grants in the database: which role may do what. Compared with the catalog at start-up and while serving.

`matrix()` states the policy a second time, independently of the migrations, so that the comparison shows an error in
either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from muniment_server.domain.classification import Label
from muniment_server.domain.ids import TenantNumber
from muniment_server.postgres import queries, roles
from muniment_server.postgres.engine import engine_of
from muniment_server.postgres.migrate import OLDEST_POSTGRES, newest_version
from muniment_server.postgres.rows import row_of

_QUERIES = queries.load(__package__, "catalog.sql")

_AGENT_COLUMNS = (
    "agent_id", "display_name", "language", "memory_enabled", "user_profile_enabled", "memory_char_limit",
    "user_char_limit", "calls_per_second", "max_items", "max_bytes", "max_revisions", "update_time", "delete_time",
    "known_from", "memory_ttl", "passage_ttl",
)  # fmt: skip
_RELEASE_COLUMNS = ("state", "refusal", "writer", "new_item_id", "new_revision")
_READ = ("item", "revision", "chunk", "stat", "meaning", "remote_embedding", "embedding_list")
_LABEL_TABLES = (*_READ, "shelf", "audit", "storage")
_LABEL_VIEWS = (
    "session", "agent", "link", "visible", "shared_visible", "visible_chunk", "visible_stat", "visible_meaning",
    "visible_remote_embedding", "visible_embedding_list", "visible_revision", "storage_size", "deleted_item",
)  # fmt: skip
_UPDATED: Mapping[str, tuple[str, ...]] = {
    "item": ("item_id", "revision", "change_id", "content", "tags", "create_time", "update_time", "expire_time",
             "delete_time"),
    "meaning": ("prior", "embedder", "signs", "vector", "list"), "remote_embedding": ("prior_name", "signs", "vector"),
    "embedding_list": ("signs", "version", "is_retired"),
}  # fmt: skip
"""The columns that a label may update."""
_STAT_COLUMNS = ("tenant", "agent", "chunks", "stems", "grams")


def _on(right: str, *columns: str) -> tuple[str, ...]:
    """A right on each of some columns."""
    return tuple(f"{right} ({column})" for column in columns)


_ERASABLE = ("item", "revision", "chunk", "stat", "storage")
_ERASING = (
    ("item", "item", "SELECT", "DELETE", "UPDATE (fence)"),
    ("revision", "revision", "SELECT", "DELETE"),
    ("chunk", "chunk", "SELECT", "DELETE"),
    ("stat", "stat", "INSERT"),
    ("storage", "storage", "INSERT"),
    ("embedding", "meaning", *_on("SELECT", "tenant", "agent", "kind", "prior"),
        *_on("UPDATE", "prior", "embedder", "signs", "vector", "list")),
    ("remote_embedding", "remote_embedding", "SELECT", "DELETE"),
    ("embedding_list", "embedding_list", *_on("UPDATE", "signs", "version"),
        *_on("SELECT", "tenant", "agent", "kind", "embedder", "number", "version")),
)  # fmt: skip
"""The views of what hosts erase, with their tables, and the eraser's rights."""
_CONTROL_VIEWS = tuple(f"{roles.CONTROL}.{view}" for view in ("session", "unclosed", "host_key"))
_SEALS = ("seal", "sealed_event")
_HOST_TABLES = (
    "host_key",
    "agent",
    "conversation",
    "session",
    "shared_block",
    "block_link",
    "erasure",
    "release",
    "release_approval",
)


_BARRIER = "security_barrier=true"
_INVOKER = "security_invoker=true"
_NOT_EXPIRED = "where expire_time > vault.clock()"
_OPEN_SESSIONS = ("reads vault.conversation", "reads vault.session", "where close_time IS NULL", _NOT_EXPIRED)

_VALID = ("where revoke_time IS NULL", "where freeze_time IS NULL", _NOT_EXPIRED)


Compare = Callable[[psycopg.Connection[Any], Collection[str] | None], list[str]]
RESERVED_CONNECTIONS = 10
"""Connections that are left to operators."""


class Fact(NamedTuple):
    """One privilege, or one property that a privilege depends on."""

    subject: str
    object: str
    fact: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.fact} on {self.object}"


@dataclass(frozen=True, slots=True)
class _Server:
    server_version: int
    is_standby: bool
    folds_case: bool
    is_utf8: bool
    is_durable: bool
    max_connections: int


@dataclass(frozen=True, slots=True)
class _Schema:
    version: int
    oldest_server: int
    """The schema version of the oldest Muniment server that may keep running."""
    grants: list[str]


def differences(connection: psycopg.Connection[Any], of_newer: Collection[str] | None = None) -> list[str]:
    """How the grants in the catalog differ from the matrix.

    If the schema is newer than this server, *of_newer* holds the grants that its migration recorded. Then any other
    grant is reported, and so is a missing one that both the matrix and *of_newer* contain.
    """
    names = {"roles": list(roles.ALL), "serving": list(roles.SERVING)}
    found: set[Fact] = set()
    for query in ("rights", "preconditions"):
        found.update(Fact(*row) for row in _cursor(connection, tuple_row).execute(_QUERIES[query], names))
    return list(compared(found, matrix(), of_newer))


def compared(found: Set[Fact], expected: Set[Fact], of_newer: Collection[str] | None) -> Iterator[str]:
    """How the facts *found* differ from those *expected*: see `differences`."""
    allowed = set(map(str, expected)) if of_newer is None else set(of_newer)
    yield from (f"not in the matrix: {fact}" for fact in sorted(found) if str(fact) not in allowed)
    yield from (f"missing: {fact}" for fact in sorted(expected - found) if str(fact) in allowed)


def problems(connection: psycopg.Connection[Any], *, connections: int, durable: bool = True) -> list[str]:
    """What is wrong with the database, and what to do about it; empty if everything is as it must be.

    *connections* is how many the server may open. *durable* False accepts a database without fsync: for tests only.
    """
    engine = engine_of(connection)
    found = [*_server_problems(connection, connections=connections, durable=durable)]
    if refusal := engine.refusal(connection):
        return [*found, refusal]
    found += engine.risks(connection, durable=durable)
    return [*found, *schema_problems(connection, engine.compare or differences)]


def served_tenants(connection: psycopg.Connection[Any]) -> frozenset[TenantNumber]:
    """The tenants that the server of *connection* has, but for those that are moving."""
    return frozenset(tenant for (tenant,) in _cursor(connection, tuple_row).execute(_QUERIES["served_tenants"]))


def _server_problems(connection: psycopg.Connection[Any], *, connections: int, durable: bool) -> Iterator[str]:
    server = _cursor(connection, row_of(_Server)).execute(_QUERIES["server"]).fetchone()
    assert server is not None  # one row for the current database
    if server.server_version < OLDEST_POSTGRES:
        yield "the database server is older than PostgreSQL 15: upgrade it"
    if server.is_standby:
        yield "the database server is a standby: name the primary, because every statement reads the taint"
    if not server.is_utf8:
        yield "the database is not in UTF8: create one with ENCODING 'UTF8'"
    if not server.folds_case:
        yield "the database's locale cannot fold case: create one with the locale C.UTF-8"
    if durable and not server.is_durable:
        yield "fsync, full_page_writes or synchronous_commit is off: an acknowledged write could be lost; turn them on"
    if connections > server.max_connections - RESERVED_CONNECTIONS:
        yield (
            f"up to {connections} connections are needed and max_connections is {server.max_connections}: "
            "raise it, or start fewer workers or threads"
        )


def _cursor(connection: psycopg.Connection[Any], row: Any) -> psycopg.Cursor[Any]:
    return connection.cursor(row_factory=row)


def schema_problems(connection: psycopg.Connection[Any], compare: Compare = differences) -> Iterator[str]:
    """What is wrong with the schema, and with its grants as *compare* compares them, and what to do about it."""
    try:
        schema = _cursor(connection, row_of(_Schema)).execute(_QUERIES["schema"]).fetchone()
    except psycopg.errors.UndefinedTable:
        schema = None
    needed = newest_version()
    if schema is None:
        yield "the database has no Muniment schema: run `muniment migrate`"
    elif schema.version < needed:
        yield f"the schema is at version {schema.version}, this server needs {needed}: run `muniment migrate`"
    elif schema.version == needed:
        yield from compare(connection, None)
    elif schema.oldest_server <= needed:
        yield from compare(connection, schema.grants)
    else:
        yield f"the schema is at version {schema.version}, this server needs {needed}: upgrade this server"


def grant_names() -> list[str]:
    """The matrix as `muniment migrate` records it, for servers that are older than the schema."""
    return sorted(map(str, matrix()))


def matrix() -> frozenset[Fact]:
    """Every privilege that may exist, and the properties that they depend on."""
    return frozenset(
        chain(
            _common(),
            _control(),
            _auditor(),
            _eraser(),
            chain.from_iterable(map(_label, Label)),
            _views(),
            _owned(),
        )
    )


def _common() -> Iterator[Fact]:
    yield Fact("PUBLIC", "function vault.clock", "EXECUTE")
    yield Fact("function", "vault.clock", "RETURN now()")
    for role in roles.ALL:
        yield Fact(role, "database", "CONNECT")
    yield Fact(roles.OWNER, "database", "CREATE")
    for table in ("muniment_control.audit", "vault.session"):
        yield Fact("pinned", table, "CHECK (((level >= 1) AND (level <= 4)))")
    for table in _SEALS:
        yield Fact("pinned", f"{roles.AUDITOR}.{table}", "CHECK (((level >= 1) AND (level <= 8)))")


def _label(label: Label) -> Iterator[Fact]:
    role = label.role
    yield Fact(role, "schema vault", "USAGE")
    for lower in (lower for lower in Label if lower.can_flow_to(label)):
        yield Fact(role, f"schema {lower.role}", "USAGE")
        for table in _READ:
            yield Fact(role, f"{lower.role}.{table}", "SELECT")
    for relation in (*_LABEL_VIEWS, "shelf", "storage"):
        yield Fact(role, f"{role}.{relation}", "SELECT")
    for locked in ("session", "shelf", "stat", "storage"):
        yield Fact(role, f"{role}.{locked}", "UPDATE (fence)")  # the right to lock rows, and no other
    yield from (Fact(role, f"{role}.{table}", "INSERT") for table in (*_READ, "audit", "storage"))
    for derived in ("chunk", "stat", "remote_embedding", "embedding_list", "storage"):  # can be rebuilt at any time
        yield Fact(role, f"{role}.{derived}", "DELETE")
    yield Fact(role, f"{role}.deleted_item", "DELETE")  # to move a deleted item back: no other role sees these rows
    for table, columns in _UPDATED.items():
        yield from (Fact(role, f"{role}.{table}", right) for right in _on("UPDATE", *columns))
    for table in ("item", "audit", "chunk", "meaning", "remote_embedding", "embedding_list"):
        yield Fact("pinned", f"{role}.{table}", f"CHECK ((level = {label.level.value}))")


def _control() -> Iterator[Fact]:
    role = roles.CONTROL
    for schema in ("vault", role, *roles.LABELS):
        yield Fact(role, f"schema {schema}", "USAGE")
    for table in (*(f"vault.{name}" for name in (*_HOST_TABLES, "tenant", "migration")), *_CONTROL_VIEWS):
        yield Fact(role, table, "SELECT")
    yield from (Fact(role, name, "UPDATE (fence)") for name in ("vault.tenant", *_CONTROL_VIEWS[:2]))
    for name in (name for name in _HOST_TABLES if name != "host_key"):
        yield Fact(role, f"vault.{name}", "INSERT")
    for name in ("shared_block", "block_link", "erasure"):
        yield Fact(role, f"vault.{name}", "DELETE")
    yield from (Fact(role, "vault.agent", right) for right in _on("UPDATE", *_AGENT_COLUMNS))
    yield from (Fact(role, "vault.conversation", right) for right in _on("UPDATE", "taint", "trusted"))
    yield from (Fact(role, "vault.session", f"UPDATE ({name}_time)") for name in ("close", "expire", "renew"))
    yield from (Fact(role, "vault.release", right) for right in _on("UPDATE", *_RELEASE_COLUMNS))
    for label in roles.LABELS:
        yield from (Fact(role, f"{label}.{name}", "SELECT") for name in ("storage", "storage_size"))
        yield from (Fact(role, f"{label}.stat", f"SELECT ({column})") for column in _STAT_COLUMNS)
    first_blocks = ("muniment_public.item", "muniment_public.revision", "muniment_public.storage")
    for table in (*(f"{label}.shelf" for label in roles.LABELS), f"{role}.audit", *first_blocks):
        yield Fact(role, table, "INSERT")
    yield Fact(role, "muniment_public.item", "SELECT (item_id)")


def _auditor() -> Iterator[Fact]:
    role = roles.AUDITOR
    for schema in ("vault", role, roles.CONTROL, *roles.LABELS):
        yield Fact(role, f"schema {schema}", "USAGE")
    for schema in (role, roles.CONTROL, *roles.LABELS):
        yield Fact(role, f"{schema}.audit", "SELECT")
    yield from (
        Fact(role, "vault.agent", right)
        for right in _on("SELECT", "tenant", "agent", "agent_id", "ceiling", "known_from")
    )
    yield from (
        Fact(role, "vault.session", right) for right in _on("SELECT", "tenant", "agent", "session_id", "ceiling")
    )
    yield Fact(role, f"{roles.CONTROL}.erased_agent", "SELECT")
    yield Fact(role, "vault.tenant", "SELECT (tenant)")
    yield from (Fact(role, f"{role}.{table}", right) for table in _SEALS for right in ("SELECT", "INSERT"))


def _eraser() -> Iterator[Fact]:
    """It may add audit rows, and the ceilings of erased agents, and has no other right on a table.

    Views show it the rows of deleted agents, and what hosts erase, without content.
    """
    role = roles.ERASER
    for schema in (role, roles.CONTROL, *roles.LABELS):
        yield Fact(role, f"schema {schema}", "USAGE")
    views = [(role, name, f"vault.{name}") for name in ("agent", "session", "conversation")]
    views += [(label, f"erasable_{name}", f"{label}.{name}") for label in roles.LABELS for name in _ERASABLE]
    for schema, name, table in views:
        yield Fact(roles.OWNER, f"{schema}.{name}", "owns")
        yield from (Fact(role, f"{schema}.{name}", right) for right in ("SELECT", "DELETE"))
        reads = dict.fromkeys((f"reads {table}", "reads vault.agent"))
        yield from _view(schema, name, _BARRIER, "where delete_time IS NOT NULL", *reads)
    for table in ("audit", "erased_agent"):
        yield Fact(role, f"{roles.CONTROL}.{table}", "INSERT")
    yield Fact(role, f"{role}.host_key", "SELECT")
    yield Fact(roles.OWNER, f"{role}.host_key", "owns")
    yield from _view(role, "host_key", _BARRIER, "reads vault.host_key", *_VALID)
    yield from chain.from_iterable(map(_erasing, Label))


def _erasing(label: Label) -> Iterator[Fact]:
    """What the eraser may do with one label during an erasure whose ceiling is not lower."""
    schema = label.role
    for name, table, *rights in _ERASING:
        yield Fact(roles.OWNER, f"{schema}.erasing_{name}", "owns")
        yield from (Fact(roles.ERASER, f"{schema}.erasing_{name}", right) for right in rights)
        reads = (f"reads {schema}.{table}", "reads vault.erasure")
        yield from _view(schema, f"erasing_{name}", _BARRIER, f"where ceiling >= {label.level.value}", *reads)
    for name in ("erasing_stat", "erasing_storage"):
        yield Fact("view", f"{schema}.{name}", "check_option=cascaded")


def _views() -> Iterator[Fact]:
    """Whose privileges a view uses, whether it is a security barrier, what it reads and what it filters."""
    for label in Label:
        yield from _label_views(label)
    yield from _view(roles.CONTROL, "session", _INVOKER, *_OPEN_SESSIONS)
    yield from _view(roles.CONTROL, "unclosed", _INVOKER, *_OPEN_SESSIONS[:3])
    yield from _view(roles.CONTROL, "host_key", _INVOKER, "reads vault.host_key", *_VALID)
    audits = [f"reads {schema}.audit" for schema in (roles.CONTROL, *roles.LABELS)]
    yield from _view(roles.AUDITOR, "audit", _INVOKER, *audits)


def _label_views(label: Label) -> Iterator[Fact]:
    role = label.role
    for table in _READ:
        tables = (f"{lower.role}.{table}" for lower in Label if lower.can_flow_to(label))
        view = "visible" if table == "item" else f"visible_{table}"
        yield from _view(role, view, _INVOKER, *(f"reads {table}" for table in tables))
    yield from _view(role, "session", _BARRIER, *_OPEN_SESSIONS, *_having(label))
    yield from _view(role, "agent", _BARRIER, f"reads {role}.session", "reads vault.agent")
    yield from _view(role, "link", _BARRIER, f"reads {role}.session", "reads vault.agent", "reads vault.block_link")
    yield from _view(role, "visible", "where delete_time IS NULL")
    yield from (
        Fact("view", f"{role}.{name}", _NOT_EXPIRED) for name in ("visible", "visible_chunk", "visible_revision")
    )
    yield from _view(role, "storage_size", _INVOKER, f"reads {role}.stat", f"reads {role}.storage")
    yield from _view(role, "deleted_item", _BARRIER, f"reads {role}.item", "where delete_time IS NOT NULL")
    yield from _view(role, "shared_visible", _INVOKER, _BARRIER, f"reads {role}.link", f"reads {role}.visible")


def _having(label: Label) -> tuple[str, str]:
    """What the view of open sessions asks of their conversations."""
    return f"where taint = {label.level.value}", f"where trusted = {str(label.is_trusted).lower()[0]}"


def _view(schema: str, name: str, *facts: str) -> Iterator[Fact]:
    for fact in facts:
        yield Fact("view", f"{schema}.{name}", fact)


def _owned() -> Iterator[Fact]:
    """Everything belongs to the owner role, because an owner has every privilege."""
    for schema in ("vault", roles.CONTROL, roles.AUDITOR, roles.ERASER, *roles.LABELS):
        yield Fact(roles.OWNER, f"schema {schema}", "owns")
    for name in (*_HOST_TABLES, "tenant", "migration", "tenant_tenant_seq"):
        yield Fact(roles.OWNER, f"vault.{name}", "owns")
    for label in roles.LABELS:
        for name in (*_LABEL_TABLES, *_LABEL_VIEWS):
            yield Fact(roles.OWNER, f"{label}.{name}", "owns")
    for relation in (f"{roles.CONTROL}.audit", f"{roles.CONTROL}.erased_agent", *_CONTROL_VIEWS):
        yield Fact(roles.OWNER, relation, "owns")
    yield from (Fact(roles.OWNER, f"{roles.AUDITOR}.{name}", "owns") for name in ("audit", *_SEALS))
