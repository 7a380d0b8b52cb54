"""Law 6: a high session never makes a low one wait, nor a host that works elsewhere.

At the level of the database for the high side, which holds in one transaction all that its role may lock; over gRPC for
the low side, with a lock timeout of 50 ms, so that a caller that waits for it gets UNAVAILABLE.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg.types.json import Jsonb

from muniment_server.domain.classification import Classification, Label
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.engines.citus import cluster as citus
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.proof.races.crew import code_of, opened
from tests.proof.races.mutants import impatience
from tests.rpcs import RPCS, World, filled, observe
from tests.support.databases import cloned
from tests.support.labels import untrusted
from tests.support.methods import POLICIES
from tests.support.services import Caller, Service, serving

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_ROW_LOCKS = ("FOR KEY SHARE", "FOR SHARE", "FOR NO KEY UPDATE", "FOR UPDATE")
_MODES = (
    "ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
)  # fmt: skip
_SAVE = "a save"
_RELATIONS = """
SELECT schema.nspname || '.' || relation.relname AS name
  FROM pg_class AS relation JOIN pg_namespace AS schema ON schema.oid = relation.relnamespace
 WHERE relation.relkind IN ('r', 'v', 'p')
   AND (schema.nspname = 'vault' OR schema.nspname LIKE 'muniment%')
 ORDER BY 1
"""


@pytest.fixture
def impatient(timed_postgres: EmbeddedPostgres) -> Iterator[Service]:
    """A server whose roles wait 50 ms for a lock."""
    with cloned(timed_postgres) as clone, impatience(), serving(clone) as served:
        yield served


_Below = tuple[Caller, Caller, World, Caller | None]
"""A host, a session with what requests name, and a session above."""
_OF_SESSIONS = {"session", "conversation"}


class Call(NamedTuple):
    """A row of tests/rpcs.py that is played below, and a session above, with the same names, where one is."""

    rpc: str
    caller: Caller
    world: World
    above: Caller | None

    @property
    def name(self) -> str:
        return f"{self.rpc} at {Classification(self.world.level).name}"

    def code(self) -> str:
        return observe(self.caller, self.rpc, RPCS[self.rpc].request(self.world)).code.name


def _calls(arena: Service, high: Classification) -> list[Call]:
    """All that sessions below do, and hosts, though not with a conversation above."""
    worlds: dict[tuple[str, bool, Classification], _Below] = {}
    calls = []
    for (rpc, row), level in product(RPCS.items(), sorted({PUBLIC, Classification(high - 1)})):
        is_elsewhere = POLICIES[rpc].for_hosts and row.changes not in _OF_SESSIONS and rpc != "GetAuditCheckpoint"
        key = (rpc if row.changes else "reads", is_elsewhere, level)
        if key not in worlds:
            worlds[key] = _below(arena, high, key)
        host, session, world, above = worlds[key]
        calls.append(Call(rpc, host if POLICIES[rpc].for_hosts else session, world, above))
    return calls


def _below(arena: Service, high: Classification, key: tuple[str, bool, Classification]) -> _Below:
    """A new agent. Who changes agents, or what they share, works elsewhere: with a key below, and no session above."""
    name, is_elsewhere, level = key
    ceiling = Classification(high - 1) if is_elsewhere else RESTRICTED
    host, desk = arena.host(ceiling=ceiling), arena.host(ceiling=ceiling, name="desk")
    session, world = filled(host, level, word=f"{name}-{level.name}-{is_elsewhere}", content="low plan", desk=desk)
    return host, session, world, None if is_elsewhere else opened(arena, world.word, high)


@pytest.mark.parametrize("high", [INTERNAL, RESTRICTED])
def test_no_low_caller_waits_for_a_high_transaction(
    impatient: Service, high: Classification, pytestconfig: pytest.Config
) -> None:
    on_cluster = pytestconfig.getoption("cluster")
    calls = _calls(impatient, high)
    above = next(call.above for call in calls if call.above)
    with _holding_all(impatient, high, calls) as held:
        answers = {call.name: call.code() for call in calls}
        on_it = code_of(impatient.host().raise_taint, session_id=above.session_id, taint=int(RESTRICTED))

    # Who may delete from its index may lock that table: who erases an agent waits for SQL that does.
    waited = {name: code for name, code in answers.items() if code != "OK"}
    assert waited.items() <= {(f"DeleteAgent at {level.name}", "UNAVAILABLE") for level in Classification}
    assert len(answers) == len(RPCS) * len({PUBLIC, high - 1})
    own = {f"FOR UPDATE of {untrusted(high).role}.shelf", f"FOR UPDATE of {untrusted(high).role}.session"}
    assert held >= ({_SAVE} if on_cluster else {_SAVE, *own})
    others = [f"{label.role}." for label in Label if label is not untrusted(high)]
    assert [name for name in held if name.startswith("FOR") and any(role in name for role in others)] == []
    assert on_it == "UNAVAILABLE"  # what does wait, shows that it was held
    print(f"law 6: {len(answers)} calls beside a {high.name} transaction, 0 waited; it held {sorted(held)}")


@pytest.mark.proof
@pytest.mark.plain_postgres("on a cluster, the first lock that is refused ends the transaction that tries them")
def test_a_right_to_lock_lower_rows_would_show(impatient: Service) -> None:
    """UPDATE of one column is enough to lock."""
    calls = _calls(impatient, RESTRICTED)
    with impatient.database.as_owner() as owner:
        owner.execute("GRANT UPDATE (tags) ON muniment_public.item TO muniment_restricted")
    with _holding_all(impatient, RESTRICTED, calls):
        waited = sorted(call.name for call in calls if call.code() == "UNAVAILABLE")

    assert "SaveMemory at PUBLIC" in waited
    assert "UpdateNote at PUBLIC" in waited
    assert "UpdateBlock at PUBLIC" in waited
    print(f"law 6, mutant with a right to lock: {waited} waited")


@contextmanager
def _holding_all(arena: Service, high: Classification, calls: list[Call]) -> Iterator[set[str]]:
    """An open transaction of a high role that tries every lock there is, and keeps what it gets."""
    with arena.database.connect(untrusted(high).role) as connection, connection.transaction():
        connection.execute("SET LOCAL citus.propagate_set_commands = 'local'")  # elsewhere it means nothing
        connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        for above, world in {call.above: call.world for call in calls if call.above}.items():
            _write(connection, arena, above, world)
        if citus.is_cluster(connection):  # there, the first lock that is refused ends the transaction
            yield {_SAVE}
            return
        names = [str(name) for (name,) in connection.execute(_RELATIONS).fetchall()]
        tried = {
            **{f"{mode} of {name}": f"LOCK TABLE {name} IN {mode} MODE" for name in names for mode in _MODES},
            **{f"{lock} of {name}": f"SELECT * FROM {name} {lock}" for name in names for lock in _ROW_LOCKS},
        }
        yield {_SAVE, *(what for what, text in tried.items() if _gets(connection, text))}


def _write(connection: psycopg.Connection[Any], arena: Service, high: Caller, world: World) -> None:
    """What a session above does, under the write lock: save names of every kind that the lower level has, and new
    ones; delete its own.
    """
    who = {"tenant": int(high.token.split("_")[2]), "session_id": high.session_id}
    etag = {"etag_item": None, "etag_revision": None}
    new = {"content": "high plan", "tags": [], "tier": 1, "position": 0, "expire_time": None}

    def run(query: str, **fields: object) -> None:
        ids = {name: arena.ids.new_uuid() for name in ("item_id", "successor_id", "change_id")}
        parameters = {**who, **etag, **new, **ids, **fields, "method": "SaveMemory"}
        done = connection.execute(SESSION_QUERIES[query].encode(), parameters)
        assert done.rowcount == 1

    run("lock_writes")
    for kind, name in {1: world.word, 2: world.note, 3: world.word}.items():
        run("save_item", kind=kind, name=name)
        run("delete_item", kind=kind, name=name)
        run("save_item", kind=kind, name=world.new)
    for name in (world.passage, world.new):
        ids = {"item_id": str(arena.ids.new_uuid()), "change_id": str(arena.ids.new_uuid())}
        passage = {"position": 0, "name": name, "content": "low plan", "tags": [], **ids}
        run("store_passages", passages=Jsonb([passage]), count=1)


def _gets(connection: psycopg.Connection[Any], text: str) -> bool:
    """Whether the role gets this lock. One that is refused takes nothing with it."""
    try:
        with connection.transaction():
            connection.execute(text.encode())
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported, psycopg.errors.WrongObjectType):
        return False
    return True
