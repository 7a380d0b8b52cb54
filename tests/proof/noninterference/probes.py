"""Pointed checks, for guards that neither two worlds nor a model can miss: locks, audit, start-up.

Each passes on the system as it is, and raises AssertionError when its guard is gone.
"""

from __future__ import annotations

import itertools
import tempfile
import uuid
from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.errors import Unavailable
from muniment_server.domain.ids import RandomIds
from muniment_server.embedder.queue import START, embed_batch
from muniment_server.monitor import policy
from muniment_server.monitor.policy import Flow
from muniment_server.monitor.queries import HOST_QUERIES, SESSION_QUERIES
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.epochs import EpochGuard
from muniment_server.postgres.pool import SINGLE, epoch_of
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.search import search
from tests import rpcs
from tests.proof.noninterference.replay import BEGINNING, embedding_of
from tests.proof.noninterference.values import METHODS
from tests.proof.noninterference.worlds import PATHS, World
from tests.rpcs import RPCS
from tests.support.methods import POLICIES
from tests.support.services import Caller, Outcome, reason_of

_numbers = itertools.count(1)


class Probed:
    """A tenant of its own in a world, with one host."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.name = f"probe-{next(_numbers)}"
        self.now = BEGINNING
        self.host = world.add_host(self.name, 4)
        self.call(self.host, "CreateAgent", agent_id="alice")

    def call(self, token: str, rpc: str, **fields: Any) -> Outcome:
        """Call *rpc*; return what is observed."""
        request = GetMessageClass(METHODS[rpc].input_type)(**fields).SerializeToString()
        operation = f"{self.name}.{next(_numbers)}"
        return self.world.call(operation, self.now, PATHS[rpc], [request], [("authorization", f"Bearer {token}")])

    def audited(self, rpc: str) -> int:
        """How many audit rows *rpc* leaves at CONFIDENTIAL."""
        word = f"{self.name}-{rpc}"
        caller = Called(self, self.host)
        session, filled = rpcs.filled(caller, Classification.CONFIDENTIAL, word=word)
        session.save_memory(key=f"{word} too", content="x", tags=[word])
        assert session.call(rpc, **RPCS[rpc].request(filled)) is not None
        query = "SELECT FROM muniment_confidential.audit WHERE (session_id, method) = (%s, %s)"
        return self.world.owner.execute(query, [filled.session, rpc]).rowcount

    def session(self, level: Classification, agent_id: str = "alice") -> tuple[str, str]:
        """The token and the id of a new session."""
        self.call(self.host, "CreateAgent", agent_id=agent_id)
        answer = self.call(self.host, "OpenSession", agent_id=agent_id, taint=level).response
        opened: Any = GetMessageClass(METHODS["OpenSession"].output_type).FromString(answer)
        return opened.token, opened.session.session_id


class Called(Caller):
    """A caller in a world."""

    def __init__(self, probed: Probed, token: str, session_id: str = "") -> None:
        super().__init__(probed.world.channel, token, session_id)
        self._probed = probed

    def session(self, opened: Any) -> Called:
        return Called(self._probed, opened.token, opened.session.session_id)

    def call(self, rpc: str, *, timeout: float = 0, **fields: Any) -> Any:
        """Call *rpc*, which must succeed."""
        outcome = self._probed.call(self.token, rpc, **fields)
        assert outcome.code.name == "OK", f"{rpc}: {outcome}"
        return GetMessageClass(METHODS[rpc].output_type).FromString(outcome.response)


def a_session_is_in_one_conversation(world: World) -> None:
    """Keys of two ceilings may begin two conversations of one name. A session of one is in no other."""
    probed = Probed(world)
    low = world.add_host(probed.name, 1)
    probed.call(probed.host, "CreateAgent", agent_id="bob", known_from=1)
    for host in (probed.host, low):  # the higher one first: the lower key does not see it
        answer = probed.call(host, "OpenSession", agent_id="bob", conversation_id="c", taint=1).response
        opened: Any = GetMessageClass(METHODS["OpenSession"].output_type).FromString(answer)
        assert probed.call(opened.token, "SaveMemory", key="plan", content="x").code.name == "OK"


def a_raise_waits_for_the_writer(world: World) -> None:
    """While a save is not committed, RaiseTaint of its conversation waits."""
    probed = Probed(world)
    _, session_id = probed.session(Classification.PUBLIC)
    _assert_raise_waits(probed, session_id, "save_item", content="x", tags=[], expire_time=None, tier=1, position=0)


def a_raise_waits_for_the_deleter(world: World) -> None:
    """While a delete is not committed, RaiseTaint of its conversation waits."""
    probed = Probed(world)
    token, session_id = probed.session(Classification.PUBLIC)
    probed.call(token, "SaveMemory", key="plan", content="x")
    _assert_raise_waits(probed, session_id, "delete_item")


def a_raise_waits_for_the_renamer(world: World) -> None:
    """While a rename is not committed, RaiseTaint of its conversation waits."""
    probed = Probed(world)
    token, session_id = probed.session(Classification.PUBLIC)
    probed.call(token, "SaveMemory", key="plan", content="x")
    _assert_raise_waits(probed, session_id, "release_item", new_name="x", release_id=uuid.uuid4())


def a_raise_waits_for_the_deleter_of_many(world: World) -> None:
    """While a delete of many is not committed, RaiseTaint of its conversation waits."""
    probed = Probed(world)
    token, session_id = probed.session(Classification.PUBLIC)
    probed.call(token, "SaveMemory", key="plan", content="x", tags=["t"])
    _assert_raise_waits(
        probed, session_id, "delete_items", tag="t", thread=None, change_ids=[uuid.uuid4()], max_bytes=1
    )


def _assert_raise_waits(probed: Probed, session_id: str, query: str, **parameters: Any) -> None:
    parameters |= {"tenant": int(probed.host.split("_")[2]), "session_id": session_id}
    parameters |= {"kind": 1, "name": "plan", "method": "probe", "etag_item": None, "etag_revision": None}
    parameters |= {"item_id": uuid.uuid4(), "change_id": uuid.uuid4(), "successor_id": uuid.uuid4()}
    request = GetMessageClass(METHODS["RaiseTaint"].input_type)(session_id=session_id, taint=2)
    with psycopg.connect(probed.world.database.conninfo("muniment_public")) as writer:
        writer.execute(SESSION_QUERIES[query].encode(), parameters)
        call: Any = probed.world.channel.unary_unary(PATHS["RaiseTaint"])
        with pytest.raises(Exception, match="DEADLINE_EXCEEDED"):
            call(request.SerializeToString(), metadata=(("authorization", f"Bearer {probed.host}"),), timeout=0.4)
        writer.rollback()


def no_level_lowers_a_taint(world: World) -> None:
    """A level's role may lock its sessions, not change them: neither through the view nor behind it."""
    Probed(world).session(Classification.INTERNAL)
    for table in ("session", "vault.conversation"):
        with world.database.connect("muniment_internal") as internal, pytest.raises(psycopg.Error):
            internal.execute(f"UPDATE {table} SET taint = 1".encode())


def every_effect_is_audited(world: World) -> None:
    """Each read and each write at CONFIDENTIAL leaves an audit row; many at once, one for each item."""
    probed = Probed(world)
    of_items = {rpc for rpc, method in POLICIES.items() if method.flow in (Flow.READ, Flow.WRITE)}
    audited = Counter({rpc: probed.audited(rpc) for rpc in of_items})
    assert audited.keys() == of_items == {rpc for rpc, count in audited.items() if count}
    assert audited["SaveMemories"] == audited["DeleteMemories"] == 2


def search_knows_what_there_is(world: World) -> None:
    """After writes of every sort, what search finds is what there is, and is counted."""
    probed = Probed(world)
    token, _ = probed.session(Classification.INTERNAL)
    for content in ("the first whale", "the second whale"):
        probed.call(token, "SaveMemory", key="plan", content=content)
        probed.call(token, "SaveMemory", key="other", content=content)
    probed.call(token, "DeleteMemory", key="plan")
    tenant = int(probed.host.split("_")[2])
    chunks = world.owner.execute("SELECT name FROM muniment_internal.chunk WHERE tenant = %s", [tenant]).fetchall()
    (count,) = world.owner.execute("SELECT sum(chunks) FROM muniment_internal.stat WHERE tenant = %s", [tenant])
    assert (chunks, count) == ([("other",)], (1,))


def what_is_shown_was_compared(world: World) -> None:
    """A version that takes the place of the one that was compared is no match."""
    probed = Probed(world)
    token, _ = probed.session(Classification.INTERNAL)
    probed.call(token, "SaveMemory", key="plan", content="running")
    world.embed(Label.INTERNAL.value)
    compare = search._similar

    def compare_and_wait(*arguments: Any) -> Any:
        found = compare(*arguments)
        probed.call(token, "SaveMemory", key="plan", content="budget")
        return found

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(search, "_similar", compare_and_wait)
        assert _search(probed, token) == (True, [])


def what_has_expired_is_not_compared(world: World) -> None:
    """A memory is compared until it expires."""
    probed = Probed(world)
    token, _ = probed.session(Classification.INTERNAL)
    probed.call(token, "SaveMemory", key="plan", content="running", expire_time=BEGINNING + timedelta(seconds=1))
    world.embed(Label.INTERNAL.value)
    assert _search(probed, token) == (True, ["plan"])
    probed.now += timedelta(seconds=1)
    assert _search(probed, token) == (False, [])


def what_expires_now_is_gone(world: World) -> None:
    """At the very moment of its expiry a memory is not found, and a save does not continue it."""
    probed = Probed(world)
    token, _ = probed.session(Classification.INTERNAL)
    expiry = BEGINNING + timedelta(seconds=1)
    probed.call(token, "SaveMemory", key="plan", content="1", expire_time=expiry)
    probed.now = expiry
    assert probed.call(token, "GetMemory", key="plan").code.name == "NOT_FOUND"
    response = probed.call(token, "SaveMemory", key="plan", content="2").response
    saved: Any = GetMessageClass(METHODS["SaveMemory"].output_type).FromString(response)
    assert saved.memory.create_time.ToDatetime(tzinfo=UTC) == expiry


def a_save_only_creates(world: World) -> None:
    """With the etag `absent`, over an own version and over a lower one."""
    probed = Probed(world)
    low, high = (probed.session(level)[0] for level in (Classification.INTERNAL, Classification.CONFIDENTIAL))
    saves = [probed.call(token, "SaveMemory", key="plan", content="1", etag="absent") for token in (low, low, high)]
    assert [save.code.name for save in saves] == ["OK", "ABORTED", "ABORTED"]


def a_neighbor_is_a_turn_that_is_seen(world: World) -> None:
    """A turn that is shadowed by one of another thread is no neighbor: neither found nor counted."""
    probed = Probed(world)
    low, high = (probed.session(level)[0] for level in (Classification.INTERNAL, Classification.CONFIDENTIAL))
    ids = [str(uuid.uuid4()) for _ in range(3)]
    probed.call(high, "StorePassage", content="elsewhere", thread="u", passage_id=ids[1])
    for second, content in enumerate(("a whale", "hidden", "after")):
        turn = {"thread": "t", "event_time": {"seconds": second}, "passage_id": ids[second]}
        assert probed.call(low, "StorePassage", content=content, **turn).code.name == "OK"
    response = probed.call(high, "SearchPassages", query="whale").response
    answer: Any = GetMessageClass(METHODS["SearchPassages"].output_type).FromString(response)
    assert [result.passage.passage_id for result in answer.results] == [ids[0], ids[2]]


def a_key_is_read_again(world: World) -> None:
    """A key that was revoked after its look-up opens, renews, raises and resets no session, whatever was looked up."""
    probed = Probed(world)
    _, session_id = probed.session(Classification.PUBLIC)
    tenant = int(probed.host.split("_")[2])
    [key] = world.owner.execute(
        "UPDATE vault.host_key SET revoke_time = now() WHERE tenant = %s RETURNING host_key_id", [tenant]
    ).fetchall()
    given = {
        "tenant": tenant,
        "host_key_id": key.host_key_id,
        "ceiling": 4,
        "taint": 2,
        "trusted": False,
        "key_trusted": True,
        "read_only": False,
        "method": "probe",
        "reason": None,
    }
    given |= {"agent_id": "alice", "conversation_id": "c", "ttl": timedelta(hours=1), "token_hash": b"probe"}
    with psycopg.connect(world.database.conninfo(roles.CONTROL)) as control:
        for query, session in (
            ("open_session", uuid.uuid4()),
            ("renew_session", uuid.UUID(session_id)),
            ("raise_taint", uuid.UUID(session_id)),
            ("reset_session", uuid.UUID(session_id)),
        ):
            ids = {name: uuid.uuid4() for name in ("change_id", "open_change_id", "new_session_id")}
            parameters = {**given, **ids, "session_id": session}
            assert control.execute(HOST_QUERIES[query].encode(), parameters).fetchall() == []


def an_untrusted_key_reaches_nothing_trusted(world: World) -> None:
    """It opens nothing that is trusted, and neither taints nor ends what another key has opened or reset."""
    probed = Probed(world)
    host = Called(probed, probed.host)
    tenant = int(probed.host.split("_")[2])

    def is_bound(bound: bool) -> None:
        key = "UPDATE vault.host_key SET trusted = %s, only_service = %s WHERE tenant = %s"
        world.owner.execute(key, [not bound, "SessionService" if bound else None, tenant])

    def opened(name: str, integrity: int = 0) -> dict[str, str]:
        session = host.open_session(agent_id="alice", conversation_id=name, integrity=integrity).session
        return {"session_id": session.session_id}

    plan, theirs = opened("plan", 1), opened("theirs")
    is_bound(True)
    own, reset = opened("own"), opened("reset")
    is_bound(False)
    reset = {"session_id": host.reset_session(**reset, integrity=1).session.session_id}
    before = [host.get_session(**each).session for each in (plan, theirs, own, reset)]
    is_bound(True)
    named = {"agent_id": "alice", "conversation_id": "reset"}
    refused: tuple[tuple[str, dict[str, Any]], ...] = (
        ("OpenSession", {"agent_id": "alice", "integrity": 1}),
        ("OpenSession", {**named, "integrity": 1}),
        ("OpenSession", named),
        ("RaiseTaint", {**own, "taint": 2, "integrity": 1}),
        ("ResetSession", {**own, "integrity": 1}),
        *(
            (rpc, {**each, **fields})
            for each in (plan, theirs, reset)
            for rpc, fields in (
                ("GetSession", {}),
                ("RaiseTaint", {"taint": 2}),
                ("ResetSession", {}),
                ("CloseSession", {}),
                ("RenewSession", {}),
            )
        ),
    )
    for rpc, fields in refused:
        assert reason_of(probed.call(probed.host, rpc, **fields)) in {"INTEGRITY_EXCEEDED", "SESSION_NOT_FOUND"}, rpc
    assert [each.session_id for each in host.list_sessions(agent_id="alice").sessions] == [own["session_id"]]
    is_bound(False)
    assert [host.get_session(**each).session for each in (plan, theirs, own, reset)] == before


def _search(probed: Probed, token: str) -> tuple[bool, list[str]]:
    """Whether embeddings were compared, and the keys of the items close to "running"."""
    response = probed.call(token, "SearchMemories", query="name").response
    answer: Any = GetMessageClass(METHODS["SearchMemories"].output_type).FromString(response)
    return answer.semantic, [result.memory.key for result in answer.results]


def scores_depend_on_the_own_agent_only(world: World) -> None:
    """What another agent of the tenant stores changes no score."""
    probed = Probed(world)
    alice, bob = probed.session(Classification.INTERNAL)[0], probed.session(Classification.INTERNAL, "bob")[0]
    probed.call(alice, "SaveMemory", key="plan", content="the whale and the budget")
    probed.call(alice, "SaveMemory", key="other", content="the budget")
    before = probed.call(alice, "SearchMemories", query="whale budget").response
    for number in range(9):
        probed.call(bob, "SaveMemory", key=f"b{number}", content="a whale, and nothing about money")
    assert probed.call(alice, "SearchMemories", query="whale budget").response == before


def equal_scores_are_in_the_order_of_names(world: World) -> None:
    """In whichever order they were stored."""
    probed = Probed(world)
    token, _ = probed.session(Classification.INTERNAL)
    ids = sorted(str(uuid.uuid4()) for _ in range(4))
    for passage_id in reversed(ids):
        probed.call(token, "StorePassage", passage_id=passage_id, content="the whale")
    response = probed.call(token, "SearchPassages", query="whale").response
    found: Any = GetMessageClass(METHODS["SearchPassages"].output_type).FromString(response)
    assert [result.passage.passage_id for result in found.results] == ids


class _Thread:
    """Turns of a thread at INTERNAL."""

    def __init__(self, world: World) -> None:
        world.embed(Label.INTERNAL.value)
        self._probed = Probed(world)
        self._token, _ = self._probed.session(Classification.INTERNAL)
        self._turns = itertools.count(1)

    def say(self, content: str, **fields: Any) -> str:
        """Store the next turn; return its id."""
        turn = {"thread": "t", "event_time": {"seconds": next(self._turns)}, "passage_id": str(uuid.uuid4())} | fields
        assert self._probed.call(self._token, "StorePassage", content=content, **turn).code.name == "OK"
        return str(turn["passage_id"])

    def delete(self, passage_id: str) -> None:
        assert self._probed.call(self._token, "DeletePassage", passage_id=passage_id).code.name == "OK"

    def erase(self, **target: Any) -> None:
        """Erase passages."""
        self._probed.call(self._probed.host, "EraseItems", agent_id="alice", kind=4, **target)

    def chunks(self) -> tuple[int, int]:
        """How many there are, and how many the statistics count."""
        tenant = int(self._probed.host.split("_")[2])
        [counts] = self._probed.world.owner.execute(
            "SELECT (SELECT count(*) FROM muniment_internal.chunk WHERE tenant = %(tenant)s),"
            "       (SELECT sum(chunks)::bigint FROM muniment_internal.stat WHERE tenant = %(tenant)s)",
            {"tenant": tenant},
        ).fetchall()
        return counts[0], counts[1]

    def vectors(self) -> list[tuple[bool, bool]]:
        """Of each turn, whether it has a vector, and whether that is one with the turn before it."""
        tenant = int(self._probed.host.split("_")[2])
        rows = self._probed.world.owner.execute(
            "SELECT embedder, prior FROM muniment_internal.meaning WHERE tenant = %s", [tenant]
        )
        return sorted((row.embedder is not None, row.prior is not None) for row in rows)


def a_vector_parts_with_what_is_deleted(world: World) -> None:
    """Whoever deletes a turn leaves the next one without a vector, which then is made without it."""
    thread = _Thread(world)
    first = thread.say("the first")
    thread.say("the second")
    world.embed(Label.INTERNAL.value)
    assert thread.vectors() == [(True, False), (True, True)]
    thread.delete(first)
    assert thread.vectors() == [(False, False)]


def nothing_of_what_is_erased_is_left(world: World) -> None:
    """Neither in the ledger, nor in the search index and its statistics, nor in the embedding of the next turn."""
    thread = _Thread(world)
    thread.say("the first", tags=["pii"])
    thread.say("the second")
    world.embed(Label.INTERNAL.value)
    thread.erase(tag="pii")
    assert thread.vectors() == [(False, False)]
    assert thread.chunks() == (1, 1)


def a_vector_parts_with_what_is_deleted_meanwhile(world: World) -> None:
    """A vector in the making that was to hold a turn that is deleted is not kept."""
    thread = _Thread(world)
    first = thread.say("the first")
    thread.say("the second")

    def delete_and_answer(text: str) -> Any:
        if text == "the first\nthe second":
            thread.delete(first)
        return embedding_of(text)

    embed_batch(world.embedders[Label.INTERNAL.value - 1], delete_and_answer, START)
    assert thread.vectors() == [(False, False)]


def a_vector_holds_the_turn_before_it_only(world: World) -> None:
    """Nothing of another thread, and nothing that is to expire."""
    thread = _Thread(world)
    thread.say("elsewhere", thread="other")
    thread.say("for a while", expire_time=BEGINNING + timedelta(hours=1))
    thread.say("for ever")
    assert thread.vectors() == [(False, False)] * 3


def revoked_is_revoked(world: World) -> None:
    """The first call after a host key is revoked is refused."""
    probed = Probed(world)
    assert probed.call(probed.host, "GetAgent", agent_id="alice").code.name == "OK"
    tenant = int(probed.host.split("_")[2])
    world.owner.execute("UPDATE vault.host_key SET revoke_time = now() WHERE tenant = %s", [tenant])
    assert probed.call(probed.host, "GetAgent", agent_id="alice").code.name == "UNAUTHENTICATED"


def closed_is_closed(world: World) -> None:
    """A session that has ended is UNAUTHENTICATED, whatever else is wrong with its call and whatever is remembered."""
    probed = Probed(world)
    _, other_id = probed.session(Classification.PUBLIC)
    for rpc in ("GetSession", "CloseSession"):
        token, session_id = probed.session(Classification.PUBLIC)
        probed.call(token, "GetSession")
        probed.call(probed.host, "CloseSession", session_id=session_id)
        assert probed.call(token, rpc, session_id=other_id).code.name == "UNAUTHENTICATED"


def expired_is_not_closed(world: World) -> None:
    """A bearer learns that a session has expired, also after a reset of its conversation; not that one was closed."""
    probed = Probed(world)
    host = Called(probed, probed.host)
    expired, closed = (host.session(host.open_session(agent_id="alice", conversation_id=each)) for each in "ab")
    host.close_session(session_id=closed.session_id)
    probed.now += timedelta(days=2)
    for _ in range(2):
        outcomes = [probed.call(each.token, "GetMemory", key="plan") for each in (expired, closed)]
        assert list(map(reason_of, outcomes)) == ["CREDENTIAL_EXPIRED", "CREDENTIAL_INVALID"]
        again = host.open_session(agent_id="alice", conversation_id="a")
        host.reset_session(session_id=again.session.session_id)
    assert reason_of(probed.call(probed.host, "RenewSession", session_id=expired.session_id)) == "SESSION_NOT_FOUND"
    shown = host.get_session(session_id=expired.session_id).session
    assert shown.close_time.ToDatetime() > shown.expire_time.ToDatetime()


def a_quota_is_of_one_agent(world: World) -> None:
    """One agent stores as much as it may; another may still store. For servers whose agents may store six items."""
    probed = Probed(world)
    full, other = (probed.session(Classification.INTERNAL, name)[0] for name in ("alice", "bob"))
    codes = [probed.call(full, "UpdateBlock", label=f"k{n}", content="x").code.name for n in range(7)]
    assert codes == ["OK"] * 6 + ["RESOURCE_EXHAUSTED"]
    assert probed.call(other, "SaveMemory", key="k", content="x").code.name == "OK"


def what_is_newer_above_hides_nothing(world: World) -> None:
    """At INTERNAL, the same is newer below before and after CONFIDENTIAL has the newest version."""
    probed = Probed(world)
    public, internal, confidential = (probed.session(level)[0] for level in tuple(Classification)[:3])
    reads: tuple[tuple[str, dict[str, str]], ...] = (
        ("GetMemory", {"key": "plan"}),
        ("ListMemories", {}),
        ("SearchMemories", {"query": "whale"}),
    )

    def write(token: str) -> None:
        probed.call(token, "SaveMemory", key="plan", content="whale")
        probed.now += timedelta(seconds=1)

    def read() -> list[bytes]:
        return [probed.call(internal, rpc, **fields).response for rpc, fields in reads]

    write(internal)
    older = read()
    write(public)
    newer = read()
    write(confidential)
    assert [one == other for one, other in zip(older, newer, strict=True)] == [False] * len(reads)
    assert read() == newer


def an_overtaken_server_is_not_used(world: World) -> None:
    """Once another process has seen a higher timeline, neither an idle connection nor a new one is used."""
    with tempfile.TemporaryDirectory() as folder:
        here, elsewhere = EpochGuard(Path(folder)), EpochGuard(Path(folder))
        with closing(RoleDatabase(world.database.conninfo, pool_sizes=SINGLE, epochs=here)) as database:
            with database.connection(roles.CONTROL, Deadline()) as connection:
                epoch = epoch_of(connection)
            elsewhere.admit(replace(epoch, timeline=epoch.timeline + 1))
            with pytest.raises(Unavailable), database.connection(roles.CONTROL, Deadline(0.5)):
                pass


def no_policy_no_start(_: World) -> None:
    """A service whose methods declare no policy stops the server from starting."""
    health: Any = health_pb2.DESCRIPTOR.services_by_name["Health"]
    with pytest.raises(policy.PolicyError):
        policy.policies([health])


def ids_are_random(_: World) -> None:
    """Ids are of version 4: other versions have a time or a place in them."""
    assert RandomIds().new_uuid().version == 4


PROBES = (
    a_session_is_in_one_conversation,
    a_raise_waits_for_the_writer,
    a_raise_waits_for_the_deleter,
    a_raise_waits_for_the_renamer,
    a_raise_waits_for_the_deleter_of_many,
    no_level_lowers_a_taint,
    every_effect_is_audited,
    search_knows_what_there_is,
    scores_depend_on_the_own_agent_only,
    equal_scores_are_in_the_order_of_names,
    what_is_shown_was_compared,
    what_has_expired_is_not_compared,
    what_expires_now_is_gone,
    a_neighbor_is_a_turn_that_is_seen,
    a_key_is_read_again,
    an_untrusted_key_reaches_nothing_trusted,
    a_vector_parts_with_what_is_deleted,
    a_vector_parts_with_what_is_deleted_meanwhile,
    nothing_of_what_is_erased_is_left,
    a_vector_holds_the_turn_before_it_only,
    revoked_is_revoked,
    closed_is_closed,
    expired_is_not_closed,
    what_is_newer_above_hides_nothing,
    an_overtaken_server_is_not_used,
    no_policy_no_start,
    ids_are_random,
)
