"""Servicers and repositories as hostile code: whatever they ask the monitor for, nothing of another comes back.

A real server, in which the code of some methods is replaced. Hostile code uses what it is given by its public names; it
may keep it, forge it and pass what it likes. Two lints keep it from more: it imports no driver and no other part of the
monitor, and it uses no name that begins with an underscore. What it reaches behind those names, on the connection of
its level, is the last part: levels hold there too, agents and tenants do not.

What no monitor in the same process can hold: code that keeps what it saw in the call of one session, and shows it in a
later call of another one. The egress filter holds back what is honestly labeled above the caller, and nothing else.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from muniment.v1 import agent_pb2, agent_service_pb2, memory_pb2, memory_service_pb2
from muniment_server.agents.servicer import AgentServicer
from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.errors import MemoryNotFound, StaleSession, Unavailable
from muniment_server.domain.ids import SessionId
from muniment_server.domain.principals import SessionIdentity
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.embedder.queue import START, embed_batch
from muniment_server.memories.servicer import MemoryServicer
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.policy import Flow, PolicyViolation
from muniment_server.monitor.queries import HOST_QUERIES, HOST_STATEMENTS, READS, SESSION_QUERIES, WRITES
from muniment_server.monitor.session_scope import Query, SessionScope, Statement, WriteLock
from muniment_server.search.embeddings import EMBEDDER
from muniment_server.sessions.servicer import SessionServicer
from tests.support.databases import cloned
from tests.support.embedders import quick
from tests.support.labels import untrusted
from tests.support.services import Caller, Outcome, Service, serving

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
CANARY = "CANARY"
ITEM_ID, CHANGE_ID = uuid.uuid4(), uuid.uuid4()
PASSAGE_ID = str(uuid.UUID(int=1, version=4))
FOREVER = datetime.max.replace(tzinfo=UTC)
Code = Callable[[CallContext], Any]


@dataclass(init=False, repr=False)
class Anything:
    """A row of any query."""

    def __init__(self, *values: object) -> None:
        self._values = values

    def __repr__(self) -> str:
        return repr(self._values)


PARAMETERS: Mapping[str, object] = {
    "kind": 1, "tier": 1, "name": "plan", "names": ["plan", CANARY, PASSAGE_ID],
    "versions": json.dumps([{"name": name, "size": 1, "tags": []} for name in ("plan", CANARY, PASSAGE_ID)]),
    "name_prefix": "", "after_prefix": "\U0010ffff", "new_name": "hostile", "release_id": uuid.uuid4(), "tag": CANARY,
    "tags": [], "content": "hostile",
    "after": "", "after_label": "", "after_owner": "", "before_create": FOREVER, "before_event": FOREVER,
    "before_name": "~", "before_time": FOREVER, "before_id": uuid.UUID(int=2**128 - 1), "limit": 100, "overhead": 0,
    "page_bytes": 1 << 20, "owner_agent_id": None, "with_revisions": True, "smallest_first": True,
    "after_revisions": [2**31 - 1] * 4, "thread": None, "start_time": None, "end_time": None,
    "any_tag": False, "query": CANARY, "language": "english", "words": [CANARY.lower()],
    "grams": [], "quoted_grams": [], "least_best": 0.0,
    "gram_weights": [], "stems": ["'canari'"], "stem_weights": [1e6], "wanted_stems": "'canari'", "wanted_grams": None,
    "damping": 1.0, "stem_slope": 0.0, "gram_slope": 0.0, "most": 200, "bound": None, "percent": 15, "max_lenders": 3,
    "most_stems": 64, "max_sampled": 100, "few_sampled": 10, "max_stems_counted": 100, "max_grams_counted": 100,
    "semantic_scores": [1, 1, 1], "threads": [None] * 3, "places": [None] * 3, "turn_factors": [1000] * 3,
    "by_named_author": [False] * 3,
    "authors": None,
    "share": 1_000_000, "semantic_share": 1, "embedder": EMBEDDER, "model": None,
    "signs": "0" * 384, "vector": [1] * 384,
    "change_id": CHANGE_ID, "item_id": ITEM_ID, "fold_id": uuid.uuid4(), "changes": [], "stemmers": "{}",
    "texts": json.dumps([{"name": "plan", "change_id": str(CHANGE_ID), "language": "english", "chunks": []}]),
    "passages": "[]", "count": 0, "position": 0, "expire_time": None, "etag_item": None, "etag_revision": None,
    "agent": 1, "agent_id": "carol", "label": "plan", "labels": [], "contents": [], "item_ids": [], "change_ids": [],
    "conversation_id": "hostile", "display_name": "hostile", "include_closed": True, "memory_char_limit": 1,
    "calls_per_second": 1, "max_items": 1, "max_bytes": 1, "max_revisions": 1,
    "successor_id": uuid.uuid4(),
    "memory_enabled": False, "user_char_limit": 1, "user_profile_enabled": False, "new_session_id": uuid.uuid4(),
    "open_change_id": uuid.uuid4(), "reason": "hostile", "taint": RESTRICTED, "token_hash": b"x" * 32,
    "ttl": timedelta(hours=1),
}  # fmt: skip
"""Parameters for every named query."""


class Hostile:
    """The code that runs in the place of a servicer's, and what it found."""

    def __init__(self) -> None:
        self.code: Code | None = None
        self.found: list[Any] = []

    def run(self, call: Callable[[], Outcome], code: Code) -> Outcome:
        """What is observed of *call*, with *code* for its servicer."""
        self.code = code
        self.found.clear()
        try:
            return call()
        finally:
            self.code = None

    def tries(self, attempt: Callable[[], Any]) -> None:
        """Note what *attempt* returns or raises."""
        try:
            self.found.append(attempt())
        except Exception as error:  # noqa: BLE001 - hostile code stops at nothing
            self.found.append(error)


@dataclass
class Stage:
    """A served database with a hostile caller, and its victims, whose items all say CANARY."""

    service: Service
    hostile: Hostile
    own: Caller
    """PUBLIC, of alice: the one whose calls hostile code answers."""
    high: Caller
    """RESTRICTED, of alice."""
    neighbor: Caller
    """PUBLIC, of bob."""
    stranger: Caller
    """PUBLIC, of carol, in another tenant."""

    def identity(self, caller: Caller, taint: Classification) -> SessionIdentity:
        """What the monitor would know of *caller*."""
        return SessionIdentity(_tenant(caller), uuid.UUID(caller.session_id), taint, 0, 1)  # type: ignore[arg-type]

    def reads(self, code: Code, caller: Caller | None = None) -> Outcome:
        """Run *code* in a method that reads."""
        return self.hostile.run(lambda: (caller or self.own).observe("GetMemory", key="plan"), code)

    def writes(self, code: Code) -> Outcome:
        """Run *code* in a method that writes."""
        return self.hostile.run(lambda: self.own.observe("SaveMemory", key="hostile", content="x"), code)

    def hosts(self, code: Code, *, ceiling: Classification) -> Outcome:
        """Run *code* in a method for hosts."""
        host = self.service.host("acme", ceiling)
        return self.hostile.run(lambda: host.observe("GetAgent", agent_id="alice"), code)

    def state(self, *, of: str) -> list[Any]:
        """All rows of an agent in all tables."""
        with self.service.database.as_owner() as owner:
            mine: Any = owner.execute("SELECT tenant, agent FROM vault.agent WHERE agent_id = %s", [of]).fetchone()
            tables: Any = owner.execute(
                """SELECT DISTINCT table_schema || '.' || table_name AS name FROM information_schema.columns
                    WHERE column_name = 'agent' AND table_name IN
                          ('item', 'revision', 'chunk', 'stat', 'meaning', 'shelf', 'audit', 'agent', 'session',
                           'conversation')
                      AND (table_schema LIKE 'muniment%' OR table_schema = 'vault')
                      AND (table_schema, table_name) IN (SELECT schemaname, tablename FROM pg_tables) ORDER BY 1"""
            ).fetchall()
            whose = f"WHERE tenant = {mine.tenant} AND agent = {mine.agent}"
            rows = {table.name: owner.execute(f"SELECT * FROM {table.name} {whose}".encode()) for table in tables}
            return [(name, sorted(map(repr, found.fetchall()))) for name, found in rows.items()]


def _tenant(caller: Caller) -> int:
    return int(caller.token.split("_")[2])


def _instead(original: Any, hostile: Hostile) -> Any:
    def method(self: Any, request: Any, context: Any) -> Any:
        return hostile.code(context) if hostile.code else original(self, request, context)

    return method


def _fill(service: Service, caller: Caller, level: Classification) -> None:
    """Items of every kind whose text, names and tags say CANARY."""
    caller.save_memory(key="plan", content=f"{CANARY} at {level.name}", tags=[CANARY])
    caller.save_memory(key=CANARY, content=CANARY)
    caller.save_memory(key="gone", content=CANARY)
    caller.delete_memory(key="gone")
    caller.add_note(content=f"{CANARY} note")
    caller.update_block(label="plan", content=f"{CANARY} block")
    caller.store_passage(passage_id=PASSAGE_ID, content=f"{CANARY} passage", thread=CANARY)
    with service.database.connect(untrusted(level).role) as connection:
        while embed_batch(connection, quick, START):
            pass


@pytest.fixture(scope="module")
def hostile() -> Hostile:
    return Hostile()


@pytest.fixture(scope="module")
def stage(postgres: EmbeddedPostgres, hostile: Hostile) -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for servicer, name in (
            (MemoryServicer, "GetMemory"),
            (MemoryServicer, "SaveMemory"),
            (AgentServicer, "GetAgent"),
            (AgentServicer, "UndeleteItem"),
            (SessionServicer, "GetSession"),
        ):
            monkeypatch.setattr(servicer, name, _instead(getattr(servicer, name), hostile))
        with cloned(postgres) as database, serving(database) as service:
            own, high = service.session(PUBLIC), service.session(RESTRICTED)
            neighbor = service.session(PUBLIC, agent_id="bob")
            stranger = service.session(PUBLIC, agent_id="carol", tenant="other")
            for victim, level in ((high, RESTRICTED), (neighbor, PUBLIC), (stranger, PUBLIC)):
                _fill(service, victim, level)
            own.save_memory(key="mine", content="mine")
            yield Stage(service, hostile, own, high, neighbor, stranger)


_SERVER = "service/muniment_server"
_SHOWS_NO_TEXT = {"get_room", "search_terms"}
"""The reads whose rows hold numbers, or words of the query, and no text of an item."""
_OTHERS: Mapping[str, Mapping[str, object]] = {"get_deleted_item": {"name": "gone"}}
"""Parameters of one query that differ from PARAMETERS."""
VICTIMS = ("high", "neighbor", "stranger")


def forged(stage: Stage, victim: str) -> dict[str, object]:
    """Parameters that name somebody else."""
    caller: Caller = getattr(stage, victim)
    with stage.service.database.as_owner() as owner:
        row: Any = owner.execute(
            "SELECT agent FROM vault.session WHERE session_id = %s", [caller.session_id]
        ).fetchone()
        items = [
            item_id
            for label in Label
            for (item_id,) in owner.execute(
                f"SELECT item_id FROM {label.role}.item WHERE agent = %s AND name = %s".encode(), [row.agent, CANARY]
            )
        ]
    return {
        "item_id": items[-1],
        "tenant": _tenant(caller),
        "session_id": uuid.UUID(caller.session_id),
        "agent": row.agent,
        "method": "Forged",
        "ceiling": RESTRICTED,
        "host_key_id": uuid.uuid4(),
    }


def ok() -> Any:
    return memory_service_pb2.GetMemoryResponse(memory=memory_pb2.Memory(key="x", classification=1))  # type: ignore[arg-type]


# Queries of sessions.


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("query", sorted(READS))
def test_a_read_that_names_another_session_reads_its_own(stage: Stage, hostile: Hostile, query: str, victim: str):
    """Tenant, session and agent of somebody else as parameters, and kinds of every item."""

    def steal(context: CallContext) -> Any:
        with context.session_scope() as scope:
            for kind in range(1, 5):
                parameters = {**PARAMETERS, **_OTHERS.get(query, {}), "kind": kind, **forged(stage, victim)}
                hostile.tries(partial(scope.look_up, Query(query, Anything, parameters)))
        return ok()

    stage.reads(steal)

    errors = [one for one in hostile.found if isinstance(one, Exception)]
    assert errors == [], f"{query} does not run: give each of its parameters a value in PARAMETERS above"
    assert len(hostile.found) == 4
    assert CANARY not in repr(hostile.found)


@pytest.mark.parametrize("query", sorted(READS - _SHOWS_NO_TEXT))
def test_the_victim_itself_can_read_the_target(stage: Stage, hostile: Hostile, query: str):
    """The proof that the parameters above would find it."""

    def read(context: CallContext) -> Any:
        with context.session_scope() as scope:
            for kind in range(1, 5):
                item_id = forged(stage, "neighbor")["item_id"]
                parameters = {**PARAMETERS, **_OTHERS.get(query, {}), "kind": kind, "item_id": item_id}
                hostile.tries(partial(scope.look_up, Query(query, Anything, parameters)))
        return ok()

    stage.reads(read, stage.neighbor)

    assert CANARY in repr(hostile.found), (
        f"{query} shows nothing of the items of _fill() above: choose PARAMETERS by which it finds them, or if it "
        "returns an aggregate and no text, add it to _SHOWS_NO_TEXT"
    )


def test_nothing_is_written_in_the_name_of_another_session(stage: Stage, hostile: Hostile):
    """Every statement that writes, with the tenant, session and agent of each victim, and another method's name."""
    before = [stage.state(of=agent) for agent in ("bob", "carol")]

    def write(context: CallContext) -> Any:
        for victim in VICTIMS:
            for name in sorted(WRITES):
                new = {"change_id": uuid.uuid4(), "item_id": uuid.uuid4()}
                query = Query(name, Anything, {**PARAMETERS, **forged(stage, victim), **new})
                with context.session_scope() as scope:
                    hostile.tries(partial(scope.write, query))
        return memory_service_pb2.SaveMemoryResponse()

    stage.writes(write)

    assert len(hostile.found) == len(VICTIMS) * len(WRITES)
    assert [stage.state(of=agent) for agent in ("bob", "carol")] == before
    own = str(stage.state(of="alice"))
    assert "hostile" in own  # what was written, was written as the caller
    assert "Forged" not in own
    with stage.service.database.as_owner() as owner:
        higher = owner.execute("SELECT count(*) FROM muniment_restricted.item WHERE content = 'hostile'").fetchone()
    assert higher == (0,)


def test_a_method_that_reads_cannot_write(stage: Stage, hostile: Hostile):
    """By none of the ways there are: a write, the write lock, a write as a query, a lock made by hand."""
    before = stage.state(of="alice")
    save = Query("save_item", Anything, {**PARAMETERS, "change_id": uuid.uuid4()})

    def under_the_lock(scope: SessionScope) -> None:
        with scope.write_lock() as lock:
            lock.write(save)

    def write(context: CallContext) -> Any:
        with context.session_scope() as scope:
            hostile.tries(lambda: scope.write(save))
            hostile.tries(lambda: under_the_lock(scope))
            hostile.tries(lambda: WriteLock(scope, None).write(save))
            hostile.tries(lambda: scope.look_up(save))
            hostile.tries(lambda: scope.look_up_both(save, save))
            hostile.tries(lambda: WriteLock(scope, None).look_up(save))
        return ok()

    stage.reads(write)

    assert [type(error) for error in hostile.found] == [PolicyViolation] * 6
    assert stage.state(of="alice") == before


@pytest.mark.parametrize("name", sorted(SESSION_QUERIES.keys() - READS - WRITES))
def test_the_monitors_own_statements_are_not_for_nouns(stage: Stage, hostile: Hostile, name: str):
    """No audit row can be forged, and no lock taken."""
    query = Query(name, Anything, {**PARAMETERS, "outcome": "OK"})

    def run(context: CallContext) -> Any:
        with context.session_scope() as scope:
            hostile.tries(lambda: scope.look_up(query))
            hostile.tries(lambda: scope.write(query))
            hostile.tries(lambda: scope.write(Query("fold_stats", Anything, PARAMETERS), Statement(name, PARAMETERS)))
        return memory_service_pb2.SaveMemoryResponse()

    stage.writes(run)

    assert [type(error) for error in hostile.found] == [PolicyViolation] * 3


# Queries of hosts.


@pytest.mark.parametrize("name", sorted(HOST_STATEMENTS))
def test_a_host_statement_that_names_another_tenant_or_ceiling_has_its_own(stage: Stage, hostile: Hostile, name: str):
    before = stage.state(of="carol")
    marks = _marks(stage)

    def steal(context: CallContext) -> Any:
        with context.host_scope() as scope:
            for victim in ("high", "stranger"):
                parameters = {**PARAMETERS, **forged(stage, victim), "change_id": uuid.uuid4()}
                if victim == "high":
                    parameters["agent_id"] = "nobody" if name in {"mark_agent", "create_agent"} else "alice"
                hostile.tries(partial(scope.first, name, Anything, **parameters))
                hostile.tries(lambda: scope.tenant)
        return agent_service_pb2.GetAgentResponse(agent=agent_pb2.Agent(agent_id="alice"))

    stage.hosts(steal, ceiling=PUBLIC)

    assert hostile.found[1::2] == [_tenant(stage.own)] * 2
    assert stage.state(of="carol") == before
    assert _marks(stage) == marks
    assert stage.high.session_id not in repr(hostile.found)
    assert str(uuid.UUID(stage.stranger.session_id)) not in repr(hostile.found)


def _marks(stage: Stage) -> list[Any]:
    """The sessions above PUBLIC, and the taint of every conversation that is marked above it."""
    with stage.service.database.as_owner() as owner:
        return owner.execute(
            """SELECT session_id, taint, close_time FROM vault.session
                      JOIN vault.conversation USING (tenant, agent, conversation_id)
                WHERE taint > 1 ORDER BY 1"""
        ).fetchall()


@pytest.mark.parametrize("name", sorted(HOST_QUERIES.keys() - HOST_STATEMENTS))
def test_nouns_neither_authenticate_nor_record_refusals(stage: Stage, hostile: Hostile, name: str):
    def run(context: CallContext) -> Any:
        with context.host_scope() as scope:
            hostile.tries(lambda: scope.first(name, Anything, **PARAMETERS))
            hostile.tries(lambda: scope.rows(name, Anything, **PARAMETERS))
            hostile.tries(lambda: scope.send(name, Anything, **PARAMETERS))
            hostile.tries(lambda: scope.execute(name, **PARAMETERS))
        return agent_service_pb2.GetAgentResponse()

    stage.hosts(run, ceiling=PUBLIC)

    assert [type(error) for error in hostile.found] == [PolicyViolation] * 4


# The call.


def test_a_servicer_sees_of_its_call_only_what_it_may_use(stage: Stage, hostile: Hostile):
    """Neither the call, nor its method, nor grpc's context, which could send what no filter sees."""

    def look(context: CallContext) -> Any:
        hostile.found.extend(name for name in dir(context) if not name.startswith("_"))
        with context.session_scope() as scope:
            hostile.found.append([name for name in dir(scope) if not name.startswith("_")])
        return ok()

    stage.reads(look)

    assert hostile.found == [
        "audit_scope", "close_session", "closing_scope", "end", "eraser_scope", "host_scope", "own_session_scope",
        "pager", "principal", "session_scope",
        [
            "end", "expiry_of", "look_up", "look_up_both", "new_uuid", "record_read", "record_refusal", "require_audit",
            "room", "session", "taint", "write", "write_lock",
        ],
    ]  # fmt: skip


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_principal_cannot_be_replaced(stage: Stage, hostile: Hostile, victim: str):
    """Not in the context, not in itself, and not by a method of the context's."""

    def forge(context: CallContext) -> Any:
        identity = stage.identity(getattr(stage, victim), RESTRICTED)
        known: Any = context.principal
        replaced = replace(known, session_id=identity.session_id, taint=RESTRICTED)
        hostile.tries(lambda: setattr(context, "principal", identity))
        hostile.tries(lambda: setattr(context, "principal", replaced))
        hostile.tries(lambda: setattr(context, "session_scope", None))
        hostile.tries(lambda: setattr(context.principal, "session_id", identity.session_id))
        hostile.tries(lambda: setattr(context.principal, "taint", RESTRICTED))
        with context.session_scope() as scope:
            hostile.tries(lambda: setattr(scope, "taint", RESTRICTED))
            hostile.found.append(scope.session().session_id)
        return ok()

    stage.reads(forge)

    *errors, own = hostile.found
    assert all(isinstance(error, AttributeError) for error in errors)
    assert str(own) == stage.own.session_id


def test_a_session_opens_no_scope_of_hosts(stage: Stage, hostile: Hostile):
    def climb(context: CallContext) -> Any:
        hostile.tries(context.host_scope)
        hostile.tries(context.closing_scope)
        hostile.tries(context.audit_scope)
        hostile.tries(context.eraser_scope)
        return ok()

    stage.reads(climb)

    assert [type(error) for error in hostile.found] == [PolicyViolation] * 4


def test_a_host_opens_no_scope_of_sessions(stage: Stage, hostile: Hostile):
    def descend(context: CallContext) -> Any:
        hostile.tries(context.session_scope)
        hostile.tries(context.close_session)
        return agent_service_pb2.GetAgentResponse()

    stage.hosts(descend, ceiling=RESTRICTED)

    assert [type(error) for error in hostile.found] == [PolicyViolation] * 2


def test_a_host_undeletes_at_no_level_above_its_ceiling(stage: Stage, hostile: Hostile):
    """Code that does not check the level: the session that it writes as has at most the ceiling of the key."""

    def undelete(context: CallContext) -> Any:
        session_id = SessionId(uuid.UUID(stage.high.session_id))
        with context.own_session_scope(session_id, Label.RESTRICTED, writes=True) as scope:
            hostile.tries(lambda: scope.look_up(Query("get_item", Anything, PARAMETERS)))
        return agent_service_pb2.UndeleteItemResponse()

    fields = {"agent_id": "alice", "kind": 1, "name": "plan", "classification": RESTRICTED}
    for ceiling in (CONFIDENTIAL, RESTRICTED):
        host = stage.service.host("acme", ceiling)
        hostile.run(partial(host.observe, "UndeleteItem", **fields), undelete)
        if ceiling is CONFIDENTIAL:
            assert [type(found) for found in hostile.found] == [StaleSession]

    assert CANARY in repr(hostile.found)


def test_a_host_uses_a_session_of_its_own_only_where_the_contract_says_so(stage: Stage, hostile: Hostile):
    """And with a label that its request names, if it names any."""
    session_id = SessionId(uuid.UUID(stage.high.session_id))

    def get_agent(context: CallContext) -> Any:
        hostile.tries(lambda: context.own_session_scope(session_id, Label.RESTRICTED))
        return agent_service_pb2.GetAgentResponse()

    def undelete(context: CallContext) -> Any:
        hostile.tries(lambda: context.own_session_scope(session_id, Label.RESTRICTED))
        return agent_service_pb2.UndeleteItemResponse()

    host = stage.service.host("acme", RESTRICTED)
    hostile.run(partial(host.observe, "GetAgent", agent_id="alice"), get_agent)
    assert [type(found) for found in hostile.found] == [PolicyViolation]
    fields = {"agent_id": "alice", "kind": 1, "name": "plan", "classification": CONFIDENTIAL}
    hostile.run(partial(host.observe, "UndeleteItem", **fields), undelete)
    assert [type(found) for found in hostile.found] == [PolicyViolation]


def test_what_is_kept_of_a_call_is_of_no_use_in_another(stage: Stage, hostile: Hostile):
    """The context and the scope of a RESTRICTED session, in the call of a PUBLIC one."""
    kept: list[Any] = []

    def keep(context: CallContext) -> Any:
        with context.session_scope() as scope:
            kept.extend((context, scope))
        return ok()

    def use(_: CallContext) -> Any:
        context, scope = kept
        hostile.tries(context.session_scope)
        hostile.tries(scope.session)
        hostile.tries(lambda: scope.look_up(Query("get_item", Anything, PARAMETERS)))
        return ok()

    stage.reads(keep, stage.high)
    stage.reads(use)

    assert [type(error) for error in hostile.found] == [PolicyViolation] * 3


# What leaves.


@pytest.mark.parametrize("label", [0, INTERNAL, RESTRICTED, 5])
def test_a_response_above_the_caller_or_without_a_label_is_withheld(stage: Stage, caplog: Any, label: int):
    with caplog.at_level(logging.CRITICAL):
        memory = memory_pb2.Memory(key="x", content=CANARY, classification=label)  # type: ignore[arg-type]
        outcome = stage.reads(lambda _: memory_service_pb2.GetMemoryResponse(memory=memory))

    assert outcome.code is grpc.StatusCode.INTERNAL
    assert CANARY not in repr(outcome)
    assert [record.levelname for record in caplog.records if record.levelno == logging.CRITICAL] == ["CRITICAL"]


@pytest.mark.parametrize("error", [MemoryNotFound, Unavailable, StaleSession])
def test_a_detail_above_the_caller_is_withheld_whatever_the_error(stage: Stage, error: Any):
    """Also of errors that are no refusals."""

    def fail(_: CallContext) -> Any:
        raised = error()
        raised.detail = memory_pb2.Memory(key="x", content=CANARY, classification=4)  # type: ignore[arg-type]
        raise raised

    outcome = stage.reads(fail)

    assert outcome.code is grpc.StatusCode.INTERNAL
    assert CANARY not in repr(outcome)


def test_text_in_an_error_is_not_sent(stage: Stage, caplog: Any):
    """Neither to the caller nor to the log."""
    secret = uuid.uuid4().hex

    def fail(_: CallContext) -> Any:
        raise RuntimeError(secret)

    with caplog.at_level(logging.DEBUG, "muniment"):
        outcome = stage.reads(fail)

    assert outcome.code is grpc.StatusCode.INTERNAL
    assert secret not in repr(outcome)
    assert secret not in caplog.text


def test_what_a_cache_keeps_of_a_higher_session_is_withheld_if_it_has_its_label(stage: Stage, hostile: Hostile):
    cached: list[Any] = []

    def remember(context: CallContext) -> Any:
        with context.session_scope() as scope:
            cached.extend(scope.look_up(Query("get_item", Anything, PARAMETERS)))
            scope.record_read(None, [])
        return ok()

    def repeat(_: CallContext) -> Any:
        memory = memory_pb2.Memory(key="x", content=repr(cached), classification=4)  # type: ignore[arg-type]
        return memory_service_pb2.GetMemoryResponse(memory=memory)

    stage.reads(remember, stage.high)
    outcome = stage.reads(repeat)

    assert CANARY in repr(cached)
    assert outcome.code is grpc.StatusCode.INTERNAL
    assert CANARY not in repr(outcome)


def test_a_false_label_is_believed(stage: Stage):
    """The limit of the egress filter. What a session's own scope yields cannot be above its taint, so that a label can
    be too low for nothing but what was kept from another call: this needs code that does so on purpose.
    """
    memory = memory_pb2.Memory(key="x", content="kept from elsewhere", classification=1)  # type: ignore[arg-type]

    outcome = stage.reads(lambda _: memory_service_pb2.GetMemoryResponse(memory=memory))

    assert outcome.code is grpc.StatusCode.OK


@pytest.mark.parametrize(
    "look_up",
    [lambda scope, query: scope.look_up(query), lambda scope, query: scope.look_up_both(query, query)],
    ids=["one query", "two"],
)
def test_a_read_without_its_audit_row_is_not_answered(stage: Stage, look_up: Any):
    """At levels where reads are audited."""

    def read(context: CallContext) -> Any:
        with context.session_scope() as scope:
            look_up(scope, Query("get_item", Anything, PARAMETERS))
        return ok()

    assert stage.reads(read, stage.high).code is grpc.StatusCode.INTERNAL


# Behind names that begin with an underscore: levels hold there too.


def test_a_scope_made_by_hand_finds_no_session_of_another_level(stage: Stage, hostile: Hostile):
    """On the connection of PUBLIC, whatever identity it is given."""

    def forge(context: CallContext) -> Any:
        with context.session_scope() as scope:
            for victim, taint in (("high", RESTRICTED), ("high", PUBLIC)):
                identity = stage.identity(getattr(stage, victim), taint)
                made = SessionScope(
                    scope._connection, identity, scope._ids, method="Forged", flow=Flow.WRITE, audit_reads=False
                )
                for query in sorted(READS):
                    hostile.tries(partial(made.look_up, Query(query, Anything, PARAMETERS)))
                hostile.tries(partial(made.write, Query("save_item", Anything, PARAMETERS)))
        return ok()

    stage.reads(forge)

    assert {type(one) for one in hostile.found} == {StaleSession}


_READABLE = {
    f"muniment_public_trusted.{table}"
    for table in ("item", "revision", "chunk", "stat", "meaning", "remote_embedding", "embedding_list")
}


def test_sql_of_its_own_reaches_no_other_level(stage: Stage, hostile: Hostile):
    """Every table and view of every other label and of the vault, read and written on the connection of PUBLIC.

    What is trusted at its level it may read, but not write.
    """
    with stage.service.database.as_owner() as owner:
        relations: Any = owner.execute(
            """SELECT schemaname || '.' || tablename AS name FROM pg_tables
                WHERE (schemaname LIKE 'muniment%' AND schemaname <> 'muniment_public') OR schemaname = 'vault'
                UNION ALL
               SELECT schemaname || '.' || viewname FROM pg_views
                WHERE schemaname LIKE 'muniment%' AND schemaname <> 'muniment_public'"""
        ).fetchall()

    def attack(context: CallContext) -> Any:
        with context.session_scope() as scope:
            run = scope._connection.execute
            for relation in relations:
                for sql in ("SELECT * FROM {}", "DELETE FROM {}", "INSERT INTO {} DEFAULT VALUES", "TRUNCATE {}"):
                    if "SELECT" not in sql or relation.name not in _READABLE:
                        hostile.tries(partial(run, sql.format(relation.name)))
            for role in ("muniment_restricted", "muniment_control", "muniment_owner"):
                hostile.tries(partial(run, f"SET ROLE {role}"))
            hostile.tries(lambda: run("CREATE TEMPORARY TABLE t ()"))
            hostile.tries(lambda: run("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"))
        return ok()

    stage.reads(attack)

    assert len(hostile.found) > 100
    refused = (
        psycopg.errors.InsufficientPrivilege,
        psycopg.errors.InvalidSchemaName,
        psycopg.errors.UndefinedTable,
        psycopg.errors.WrongObjectType,  # a view that it would truncate
        psycopg.errors.ObjectNotInPrerequisiteState,  # a view that nothing can be written through
    )
    assert [one for one in hostile.found if not isinstance(one, refused)] == []


def test_sql_of_its_own_is_kept_from_other_agents_by_a_lint_only(stage: Stage, hostile: Hostile):
    """What the lints below are for: the connection is that of a level, and knows of no agent."""

    def attack(context: CallContext) -> Any:
        with context.session_scope() as scope:
            hostile.tries(lambda: scope._connection.execute("SELECT content FROM item").fetchall())
        return ok()

    stage.reads(attack)

    assert CANARY in repr(hostile.found)
    assert "RESTRICTED" not in repr(hostile.found)


@pytest.mark.parametrize("package", ["memories", "notes", "items", "search", "sessions"])
def test_the_lint_finds_a_private_name_in_a_noun(package: str):
    code = "def steal(scope):\n    return scope._connection\n"
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", f"--stdin-filename={_SERVER}/{package}/x.py", "-"],
        input=code,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=False,
    )

    assert "SLF001" in found.stdout
