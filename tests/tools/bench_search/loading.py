"""Fills a database with agents and memories: items by COPY, their index by the service's own statement."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import namedtuple_row

from muniment_server.domain.classification import Classification
from muniment_server.domain.items import ItemKind
from muniment_server.monitor.queries import SESSION_QUERIES
from muniment_server.monitor.session_scope import Statement
from muniment_server.postgres.pool import operator_conninfo
from muniment_server.search import index
from tests.support.labels import untrusted

SHARES = {
    Classification.PUBLIC: 0.6, Classification.INTERNAL: 0.25,
    Classification.CONFIDENTIAL: 0.1, Classification.RESTRICTED: 0.05,
}  # fmt: skip
"""Which part of the items is at each level."""
_BATCH = 500
_FOLDED_ONCE_IN = 64
_AGENTS = """
WITH agent AS (
    INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled, user_profile_enabled,
                             memory_char_limit, user_char_limit)
    SELECT tenant.tenant, n, 'agent' || n, '', '', true, true, 2200, 1375
      FROM vault.tenant, generate_series(1, %s) AS n
 RETURNING tenant, agent
),
conversation AS (
    INSERT INTO vault.conversation (tenant, agent, conversation_id, taint)
    SELECT tenant, agent, 'load' || level, level FROM agent, generate_series(1, 4) AS level
 RETURNING tenant, agent, conversation_id, taint
)
INSERT INTO vault.session (tenant, agent, session_id, conversation_id, token_hash, expire_time)
SELECT tenant, agent, gen_random_uuid(), conversation_id, uuid_send(gen_random_uuid()), now() + interval '1 day'
  FROM conversation
RETURNING tenant, agent, session_id, right(conversation_id, 1)::int AS level
"""
_COPY = """
COPY {level}.item (tenant, agent, kind, name, item_id, change_id, content) FROM STDIN
"""
_WORDS = ("chunk_stems", "chunk_grams")


class Owner(NamedTuple):
    """A session that writes for one agent at one level."""

    tenant: int
    agent: int
    session_id: uuid.UUID
    level: Classification


def new_owners(conninfo: Callable[[str], str], agents: int) -> list[Owner]:
    """Create *agents* agents, `agent1` and so on, each with a session at every level."""
    with _as_owner(conninfo) as owner:
        return [Owner(row[0], row[1], row[2], Classification(row[3])) for row in owner.execute(_AGENTS, [agents])]


def load(
    conninfo: Callable[[str], str], contents: Iterable[str], *, owners: Sequence[Owner], count: int,
    done: Callable[[int], None], loaders: int = 1,
) -> None:  # fmt: skip
    """Remember *count* of *contents*, dealt out evenly among the owners of each level, in *loaders* threads.

    After each batch, *done* receives its size.

    The rows are those that the service writes, but that the two indexes of words are made at the end.
    """
    texts, lock, changes = iter(contents), threading.Lock(), itertools.count(1)

    def batches(wanted: int) -> Iterator[list[str]]:
        while wanted:
            with lock:
                batch = list(islice(texts, min(wanted, _BATCH)))
            yield batch
            wanted -= len(batch)

    def load_one(one: Owner, wanted: int) -> None:
        with _as_owner(conninfo) as owner, _as_level(conninfo, one.level) as writer:
            for batch in batches(wanted):
                _remember(owner, writer, one, batch)
                if next(changes) % _FOLDED_ONCE_IN == 0:
                    _run(writer, one, Statement("fold_stats", {"kind": ItemKind.MEMORY, "fold_id": uuid.uuid4()}))
                done(len(batch))

    with _as_owner(conninfo) as owner:
        made_again = [_dropped(owner, level, name) for level in Classification for name in _WORDS]
        with ThreadPoolExecutor(loaders) as pool:
            list(pool.map(load_one, owners, _parts(owners, count)))
        for statement in made_again:
            owner.execute(statement)
        owner.execute("RESET ROLE")
        owner.execute("VACUUM ANALYZE")


def _parts(owners: Sequence[Owner], count: int) -> Iterator[int]:
    """How many items each owner gets: `_part` of those of its level."""
    places, sizes = Counter[Classification](), Counter(one.level for one in owners)
    for one in owners:
        yield _part(round(count * SHARES[one.level]), places[one.level], sizes[one.level])
        places[one.level] += 1


def _as_owner(conninfo: Callable[[str], str]) -> psycopg.Connection[Any]:
    return psycopg.connect(operator_conninfo(conninfo("postgres")), autocommit=True, row_factory=namedtuple_row)


def _as_level(conninfo: Callable[[str], str], level: Classification) -> psycopg.Connection[Any]:
    writer = psycopg.connect(conninfo(untrusted(level).role), autocommit=True, row_factory=namedtuple_row)
    writer.execute("SET synchronous_commit = off")
    return writer


def _remember(
    owner: psycopg.Connection[Any], writer: psycopg.Connection[Any], one: Owner, contents: Sequence[str]
) -> None:
    items = [(str(uuid.uuid4()), uuid.uuid4(), content) for content in contents]
    with owner.cursor() as cursor, cursor.copy(_COPY.replace("{level}", untrusted(one.level).role).encode()) as copy:
        for name, change_id, content in items:
            copy.write_row((one.tenant, one.agent, int(ItemKind.MEMORY), name, uuid.uuid4(), change_id, content))
    entries = [index.entry(ItemKind.MEMORY, name, change_id, content) for name, change_id, content in items]
    _run(writer, one, index.index_statement(ItemKind.MEMORY, entries), change_id=uuid.uuid4())


def _run(writer: psycopg.Connection[Any], one: Owner, statement: Statement, **parameters: object) -> None:
    session = {"tenant": one.tenant, "session_id": one.session_id}
    writer.execute(SESSION_QUERIES[statement.name], {**statement.parameters, **parameters, **session})


def _part(count: int, place: int, parts: int) -> int:
    return count * (place + 1) // parts - count * place // parts


def _dropped(owner: psycopg.Connection[Any], level: Classification, index: str) -> bytes:
    """Drop an index; return how to make it."""
    row: Any = owner.execute("SELECT pg_get_indexdef(%s::regclass)", [f"{untrusted(level).role}.{index}"]).fetchone()
    owner.execute(f"DROP INDEX {untrusted(level).role}.{index}".encode())
    return str(row[0]).encode()
