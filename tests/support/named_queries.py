"""The named queries as the tests of their texts see them: by file, name, role and kind of parameter."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from muniment_server.domain.classification import Label
from muniment_server.monitor.queries import (
    AUDIT_FILES,
    AUDIT_QUERIES,
    HOST_FILES,
    HOST_QUERIES,
    SESSION_FILES,
    SESSION_QUERIES,
)
from muniment_server.postgres import queries, roles

File: TypeAlias = tuple[str, str]
"""A package and the name of a file in it."""

SCOPE: File = ("muniment_server.monitor", "scope.sql")
"""The relations of sessions, which are composed in front of their queries."""
AUDIT_SCOPE: File = ("muniment_server.monitor", "audit.sql")
"""The relations of the auditor."""
RELATIONS = {SCOPE: roles.LABELS, AUDIT_SCOPE: (roles.AUDITOR,)}
ERASING: File = ("muniment_server.agents", "erasing.sql")
"""What EraseItems erases."""
SERVED = {
    **dict.fromkeys(SESSION_FILES, roles.LABELS),
    **dict.fromkeys(HOST_FILES, (roles.CONTROL,)),
    ERASING: (roles.ERASER,),
    **dict.fromkeys(AUDIT_FILES, (roles.AUDITOR,)),
}
"""The files of what principals ask for, and the roles that run them."""
UNSCOPED = {
    ("muniment_server.monitor", "catalog.sql"): (roles.CONTROL,),
    ("muniment_server.postgres", "connection.sql"): roles.SERVING,
    ("muniment_server.background", "census.sql"): (roles.CONTROL,),
    ("muniment_server.embedder", "labels.sql"): (Label.RESTRICTED.role,),
    ("muniment_server.runtime", "claims.sql"): (roles.CONTROL,),
    ("muniment_server.runtime", "clocks.sql"): (roles.CONTROL,),
    ("muniment_server.engines.citus", "grants.sql"): (roles.CONTROL,),
    ("muniment_server.runtime", "connection_budget.sql"): (roles.CONTROL,),
    ("muniment_server.runtime", "host_keys.sql"): (roles.CONTROL,),
    ("muniment_server.monitor", "log_settings.sql"): (roles.CONTROL,),
}
"""The files of what the server asks for itself."""
EMBEDDER = {
    ("muniment_server.embedder", "queue.sql"): roles.LABELS,
    ("muniment_server.embedder", "lists.sql"): roles.LABELS,
}
"""The files of what the embedder does, in no session, for all tenants: without the session predicate."""
ERASER = {("muniment_server.background", "eraser.sql"): (roles.ERASER,)}
"""The file of what the eraser does, for all tenants: without the session predicate."""
SEALER = {("muniment_server.background", "sealer.sql"): (roles.AUDITOR,)}
"""The file of what the sealer does, for all tenants: it reads audit rows, and writes hashes of them."""
OPERATORS = {
    ("muniment_server.admin", "connection.sql"): (roles.OWNER,),
    ("muniment_server.admin", "tenants.sql"): (roles.OWNER,),
    ("muniment_server.admin", "host_keys.sql"): (roles.OWNER,),
    ("muniment_server.admin", "sessions.sql"): (roles.OWNER,),
    ("muniment_server.admin", "purge.sql"): (roles.OWNER,),
    ("muniment_server.admin", "history.sql"): (roles.OWNER,),
    ("muniment_server.admin", "inspection.sql"): (roles.OWNER,),
    ("muniment_server.admin", "dumps.sql"): (roles.OWNER,),
    ("muniment_server.admin", "journal.sql"): (roles.OWNER,),
    ("muniment_server.admin", "moving.sql"): (roles.OWNER,),
    ("muniment_server.admin", "sealing.sql"): (roles.OWNER,),
    ("muniment_server.admin", "holds.sql"): (roles.OWNER,),
    ("muniment_server.search", "reindex.sql"): (roles.OWNER,),
    ("muniment_server.embedder.remote", "reindexing.sql"): (roles.OWNER,),
}
"""The files of what operators do at the terminal, across tenants."""
FILES = {**RELATIONS, **SERVED, **UNSCOPED, **EMBEDDER, **ERASER, **SEALER, **OPERATORS}
"""Every file of named queries."""

COMPOSED = {
    **dict.fromkeys(SESSION_FILES, SESSION_QUERIES),
    **dict.fromkeys(HOST_FILES, HOST_QUERIES),
    **dict.fromkeys(AUDIT_FILES, AUDIT_QUERIES),
}
"""The queries that are served, as they are sent."""

PATH_OF = {roles.ERASER: "muniment_eraser, muniment_restricted"}
"""The search path on which the queries of a role run, unless it is that of the role's own schema."""
_PARAMETER = re.compile(r"%\((\w+)\)s")

LITERALS = {
    "tenant": "1000000000007::bigint", "agent": "5::bigint", "owner": "5::bigint",
    "agent_id": "'alice'", "owner_agent_id": "'alice'", "display_name": "'A'", "language": "'ta'", "label": "'l'",
    "memory_enabled": "true", "user_profile_enabled": "true", "memory_char_limit": "1", "user_char_limit": "1",
    "calls_per_second": "1", "max_items": "1", "max_bytes": "1", "max_revisions": "1",
    "successor_id": "'00000000-0000-0000-0000-000000000009'::uuid",
    "taint": "1", "trusted": "false", "key_trusted": "true", "read_only": "false", "level": "1",
    "chain": "1", "ceiling": "4", "agent_ceiling": "4", "max_agents": "1", "only_service": "NULL",
    "lifetime": "NULL", "part": "0.8",
    "kind": "1", "tag": "'t'", "tier": "1", "position": "0", "limit": "51",
    "page_bytes": "3145728", "name": "'plan'", "content": "'text'", "query": "'whale'", "after": "''",
    "tags": "'{}'::text[]", "any_tag": "false", "include_closed": "true", "method": "'GetMemory'", "outcome": "'OK'",
    "reason": "NULL", "conversation_id": "'c'", "ttl": "interval '1 hour'", "token_hash": "'\\x00'::bytea",
    "token_hashes": "ARRAY['\\x00'::bytea]",
    "etag_revision": "1", "revision": "1", "result_count": "1", "expire_time": "NULL::timestamptz",
    "start_time": "NULL::timestamptz", "end_time": "NULL::timestamptz", "before_time": "now()",
    "thread": "NULL::text", "before_event": "now()", "before_create": "now()", "before_name": "''", "count": "1",
    "texts": """'[{"name": "n", "change_id": "00000000-0000-0000-0000-000000000009", "language": "english",
                   "header": "n", "chunks": [{"number": 0, "start": 0, "size": 4, "sample": 1,
                               "grams": ["text"], "marks": []}]}]'::jsonb""",
    "names": "'{n}'::text[]", "new_name": "'new plan'", "name_prefix": "'pl'", "after_prefix": "'pm'",
    "versions": """'[{"name": "n", "size": 4, "content": "text", "tags": []}]'::jsonb""",
    "stemmers": """'{"ta": "tamil"}'""", "words": "'{whale}'", "grams": "'{_wha}'::text[]",
    "quoted_grams": "'{''_wha''}'::text[]", "least_best": "0",
    "stems": "'{''whale''}'::text[]", "authors": "'whale'", "threads": "'{thread}'::text[]",
    "gram_weights": "'{1}'::float8[]", "stem_weights": "'{1}'::float8[]", "most_stems": "40", "max_lenders": "100",
    "max_sampled": "1000", "few_sampled": "250", "max_stems_counted": "1000", "max_grams_counted": "100",
    "wanted_stems": "'whale'", "wanted_grams": "'_wha'", "damping": "0.3", "stem_slope": "0.1", "gram_slope": "0.1",
    "after_label": "''", "after_owner": "''", "overhead": "512", "labels": "'{l}'", "contents": "'{text}'",
    "embedder": "1", "model": "7", "models": "'{7}'", "is_missing": "true",
    "signs": "repeat('1', 384)", "vector": "array_fill(1, '{384}')", "bound": "1000", "most": "200", "percent": "15",
    "least": "20000", "size": "500", "growth": "4", "last": "0", "last_agent": "5::bigint",
    "last_kind": "1", "last_name": "'plan'", "last_number": "1", "wanted": "40", "stride": "10", "numbers": "'{1}'",
    "made": "'[]'", "kept": "'[]'", "found": "'[]'", "durable": "TRUE", "retired": "'{1}'",
    "number": "1", "time": "now()", "event_id": "'00000000-0000-0000-0000-000000000009'::uuid", "by_host": "true",
    "event_count": "1", "event_ids": "'{00000000-0000-0000-0000-000000000009}'", "events_hash": "'\\x00'::bytea",
    "hash": "'\\x00'::bytea", "login": "'operator'",
    "key": "7", "schema": "'muniment_public'",
    "semantic_scores": "'{1}'", "places": "'{1}'::text[]", "turn_factors": "'{1000}'", "by_named_author": "'{f}'",
    "share": "700000", "semantic_share": "300000",
    "agent_ids": "'{ada}'", "known_from": "1", "with_revisions": "TRUE", "smallest_first": "FALSE",
    "after_revisions": "array_fill(2147483647, '{4}')",
    "memory_ttl": "interval '0'", "passage_ttl": "interval '0'", "agents": "'{5}'",
    "item_ids": "'{00000000-0000-0000-0000-000000000009}'", "change_ids": "'{00000000-0000-0000-0000-000000000009}'",
    "release_ids": "'{00000000-0000-0000-0000-000000000009}'", "content_hash": "sha256('text')", "source": "2",
    "target": "1", "declassifies": "false", "endorses": "true", "state": "3", "refusal": "'QUOTA_EXCEEDED'",
    "new_revision": "NULL", "new_item_id": "NULL",
    "changes": "'{00000000-0000-0000-0000-000000000009}'",
    "passages": """'[{"position": 0, "name": "n", "content": "text"}]'::jsonb""",
}  # fmt: skip
"""A value for every parameter that is no id."""
_IDS = re.compile(r"\w+_id|etag_item|last_session")


class Named(NamedTuple):
    """One named query, for one role."""

    file: File
    name: str
    text: str
    role: str

    def __str__(self) -> str:
        package, _, file = ".".join(self.file).removeprefix("muniment_server.").removesuffix(".sql").partition(".")
        query = f"{package}.{file}.{self.name}"
        return f"{query}-{self.role.removeprefix('muniment_')}" if self.role else query


def named(*files: Mapping[File, tuple[str, ...]]) -> list[Named]:
    """The queries of these files as they are sent, each once for every role that runs it."""
    return [
        Named(file, name, COMPOSED.get(file, own)[name], role)
        for group in files
        for file, serving in group.items()
        for own in (queries.load(*file),)
        for name in own
        for role in serving
    ]


def once(*files: Iterable[File]) -> list[Named]:
    """The queries of these files as they are sent, each once."""
    return named(*(dict.fromkeys(group, ("",)) for group in files))


def numbered(text: str) -> bytes:
    """*text* with `$1` in the place of its first parameter, and so on: as the driver sends it, without types."""
    order: dict[str, int] = {}
    return (
        _PARAMETER.sub(lambda match: f"${order.setdefault(match[1], len(order) + 1)}", text).replace("%%", "%").encode()
    )


def parameters(text: str) -> Iterator[str]:
    """The names of the parameters of *text*, each once."""
    yield from dict.fromkeys(_PARAMETER.findall(text))


def literals_of(text: str) -> dict[str, str]:
    """A literal for each parameter of *text*: a new one for an id. Raises KeyError for a parameter without one."""
    return {name: _literal(name) for name in parameters(text)}


def _literal(name: str) -> str:
    if name in LITERALS:
        return LITERALS[name]
    if _IDS.fullmatch(name):
        return f"'{uuid.uuid4()}'::uuid"
    raise KeyError(f"the parameter {name} has no value: add one to LITERALS in tests/support/named_queries.py")


def filled(text: str, literals: dict[str, str]) -> str:
    """*text* with literals in the place of its parameters."""
    return _PARAMETER.sub(lambda match: literals[match[1]], text).replace("%%", "%")
