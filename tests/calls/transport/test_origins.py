"""The defects of the systems that Muniment comes from, as far as one call shows them.

Those of budgets, tiers and prompts are in the tests of notes and prompts.
"""

from __future__ import annotations

import uuid

import grpc
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.transport.server import SERVICES
from tests.support.answers import (
    CONFIDENTIAL,
    INTERNAL,
    LEVELS,
    PUBLIC,
    RESTRICTED,
    UP,
    events,
    in_future,
    invalid,
    keys,
    refusal,
)
from tests.support.concurrency import together
from tests.support.invariants import broken_invariants
from tests.support.labels import untrusted
from tests.support.methods import FOR_HOSTS, FOR_SESSIONS
from tests.support.services import Caller, failure_of, reason_of, serving

GONE = "NOT_FOUND MEMORY_NOT_FOUND"


@pytest.mark.parametrize("level", [0, 5, -1, 2**31 - 1, -(2**31)])
def test_an_unknown_level_is_refused_before_any_comparison(host, session, level):
    own = session(CONFIDENTIAL)

    assert not level or invalid(host.open_session, agent_id="alice", taint=level) == ["taint"]
    assert invalid(host.raise_taint, session_id=own.session_id, taint=level) == ["taint"]
    assert own.get_session().session.taint == CONFIDENTIAL


@pytest.mark.parametrize(("low", "high"), UP)
def test_what_is_saved_after_a_raise_is_in_the_table_of_the_new_level(service, low, high):
    """C40: also through a server that remembers the session as it was."""
    session = service.session(low)
    session.save_memory(key="before", content="text")
    service.host().raise_taint(session_id=session.session_id, taint=high)
    session.save_memory(key="after", content="text")

    with service.database.as_owner() as owner:
        found = {
            level: [
                name
                for (name,) in owner.execute(f"SELECT name FROM {untrusted(level).role}.item WHERE kind = 1".encode())
            ]
            for level in (low, high)
        }
    assert found == {low: ["before"], high: ["after"]}


@pytest.mark.parametrize("level", LEVELS)
def test_taint_and_sessions_survive_a_restart(database, level):
    with serving(database) as first:
        opened = first.session(PUBLIC)
        first.host().raise_taint(session_id=opened.session_id, taint=level)
        opened.save_memory(key="plan", content="text")
    with serving(database) as second:
        again = Caller(second.channel, opened.token)
        taint = again.get_session().session.taint
        saved = again.get_memory(key="plan").memory.classification

    assert (taint, saved) == (level, level)


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_lower_version_does_not_resurface_by_its_tag_or_word(at, low, high):
    at(low).save_memory(key="plan", content="whale", tags=["urgent"])
    at(high).save_memory(key="plan", content="zebra", tags=["done"])

    found = [
        keys(at(high).list_memories(tag="urgent")),
        keys(at(high).search_memories(query="whale")),
        keys(at(high).search_memories(query="whale zebra", tags=["urgent"])),
    ]

    assert found == [[], [], []]


def test_hidden_matches_take_no_place_in_the_limit(at):
    for number in range(50):
        at(RESTRICTED).save_memory(key=f"high{number}", content="whale")
    at(PUBLIC).save_memory(key="low", content="one whale in a long text")

    assert keys(at(PUBLIC).search_memories(query="whale", max_results=40)) == ["low"]


def test_the_order_of_low_results_does_not_depend_on_high_documents(at):
    for key, content in {"a": "whale zebra zebra", "b": "whale whale zebra", "c": "whale"}.items():
        at(PUBLIC).save_memory(key=key, content=content)
    before = at(PUBLIC).search_memories(query="whale zebra")
    at(RESTRICTED).save_memory(key="high", content="whale " * 5000)

    assert at(PUBLIC).search_memories(query="whale zebra") == before


@pytest.mark.parametrize(
    "query", ["user-name", "what is my name?", "it's", "C++", '""', "a AND", "bo*", "NOT", "col:t"]
)
def test_nothing_in_a_query_is_syntax(at, query):
    at(PUBLIC).save_memory(key="plan", content="books")

    assert keys(at(PUBLIC).search_memories(query=query)) == []


def test_a_second_delete_does_not_touch_the_tombstone(service, clock):
    session = service.session(PUBLIC)
    session.save_memory(key="plan", content="text")
    session.delete_memory(key="plan")
    with service.database.as_owner() as owner:
        before = owner.execute("SELECT * FROM muniment_public.item").fetchall()
        clock.advance(hours=1)
        answer = refusal(session.delete_memory, key="plan")
        after = owner.execute("SELECT * FROM muniment_public.item").fetchall()

    assert (answer, after) == (GONE, before)


def test_a_save_over_a_deleted_key_keeps_the_tombstone_and_has_its_own_create_time(service, clock):
    session = service.session(PUBLIC)
    first = session.save_memory(key="plan", content="one").memory
    session.delete_memory(key="plan")
    clock.advance(hours=1)
    second = session.save_memory(key="plan", content="two").memory
    with service.database.as_owner() as owner:
        rows = owner.execute(
            "SELECT content, delete_time IS NULL FROM muniment_public.item WHERE kind = 1 ORDER BY content"
        ).fetchall()

    assert rows == [("one", False), ("two", True)]
    assert second.create_time.ToDatetime() > first.create_time.ToDatetime()


def test_an_overwritten_content_is_in_the_ledger(service):
    session = service.session(PUBLIC)
    for content in ("one", "two", "three"):
        session.save_memory(key="plan", content=content)
    with service.database.as_owner() as owner:
        ledger = owner.execute(
            "SELECT revision, content FROM muniment_public.revision WHERE kind = 1 ORDER BY revision"
        ).fetchall()

    assert ledger == [(1, "one"), (2, "two"), (3, "three")]


def test_c88_no_content_is_lost_under_concurrent_writers(service):
    """Eight sessions overwrite one key: every content that was acknowledged is in the ledger."""
    sessions = [service.session(PUBLIC) for _ in range(8)]

    def write(session, writer):
        for number in range(12):
            session.save_memory(key=f"plan{number % 2}", content=f"{writer} {number}")

    together(*(lambda s=session, w=writer: write(s, w) for writer, session in enumerate(sessions)))
    with service.database.as_owner() as owner:
        ledger = owner.execute("SELECT content FROM muniment_public.revision WHERE kind = 1").fetchall()

    assert sorted(content for (content,) in ledger) == sorted(f"{w} {n}" for w in range(8) for n in range(12))
    assert broken_invariants(service.database) == []


@pytest.mark.parametrize(
    ("one", "other"), [("a_b", "aXb"), ("a.b", "aXb"), ("a:b", "a:b:c"), ("a", "a-1"), ("a_", "ab"), ("A", "a")]
)
def test_agents_with_odd_names_see_only_their_own(session, one, other):
    session(PUBLIC, agent_id=other).save_memory(key="plan", content="whale")
    own = session(RESTRICTED, agent_id=one)

    assert keys(own.list_memories()) == keys(own.search_memories(query="whale")) == []
    assert refusal(own.get_memory, key="plan") == GONE


@pytest.mark.parametrize("agent_id", ["a%b", "a\\b", "%", "_"])
def test_wildcards_and_escapes_are_ordinary_in_ids(host, agent_id):
    host.create_agent(agent_id="axb")

    assert refusal(host.get_agent, agent_id=agent_id) == "NOT_FOUND AGENT_NOT_FOUND"
    assert host.create_agent(agent_id=agent_id).agent.agent_id == agent_id


def test_nothing_of_the_old_session_is_seen_after_a_reset(host, session):
    """Also through a server that remembers the old one."""
    old = session(CONFIDENTIAL)
    old.save_memory(key="plan", content="whale")
    old.add_note(content="whale")
    old.update_block(label="plan", content="whale")
    old.store_passage(content="whale")
    for read in ("list_memories", "list_notes", "list_blocks", "list_passages", "render_prompt"):
        assert b"whale" in getattr(old, read)().SerializeToString()
    new = Caller(host.channel, host.reset_session(session_id=old.session_id).token)

    assert keys(new.list_memories()) == keys(new.search_memories(query="whale")) == []
    for read in ("list_memories", "list_notes", "list_blocks", "list_passages", "render_prompt"):
        assert b"whale" not in getattr(new, read)().SerializeToString()
    for search in ("search_memories", "search_notes", "search_passages"):
        assert list(getattr(new, search)(query="whale").results) == []
    assert refusal(new.get_memory, key="plan") == GONE
    assert refusal(old.list_memories) == "UNAUTHENTICATED CREDENTIAL_INVALID"


def test_what_was_deleted_by_another_session_is_not_found(session):
    one, other = session(PUBLIC), session(PUBLIC)
    one.save_memory(key="plan", content="whale")
    other.delete_memory(key="plan")

    assert keys(one.search_memories(query="whale plan")) == []


def test_an_expiry_is_enforced(service, clock):
    session = service.session(PUBLIC)
    session.save_memory(key="plan", content="whale", expire_time=in_future(hours=1))
    clock.advance(minutes=59)
    before = session.get_memory(key="plan").memory.content
    clock.advance(minutes=2)

    assert (before, refusal(session.get_memory, key="plan")) == ("whale", GONE)


def test_misses_and_denials_above_internal_are_recorded(at, host):
    failure_of(at(CONFIDENTIAL).get_memory, key="never")
    failure_of(at(CONFIDENTIAL).list_agents)
    at(CONFIDENTIAL).list_memories()

    assert [(event.method, event.outcome) for event in events(host)][-3:] == [
        ("GetMemory", "OK"),
        ("ListAgents", "PRINCIPAL_NOT_ALLOWED"),
        ("ListMemories", "OK"),
    ]


def test_neither_key_nor_agent_nor_level_is_logged_on_a_save(at, caplog):
    caplog.set_level("DEBUG")
    at(RESTRICTED).save_memory(key="canary-key", content="canary-content", tags=["canary-tag"])

    assert [word for word in ("canary", "alice", "RESTRICTED", "restricted") if word in caplog.text] == []


@pytest.mark.parametrize("method", [method.name for service in SERVICES for method in service.methods])
def test_every_policy_that_is_declared_is_enforced(at, host, method):
    """Whoever a method is not for is refused; no one else is."""
    answers = {who: reason_of(caller.observe(method)) for who, caller in {"host": host, "session": at(PUBLIC)}.items()}
    refused = {who for who, reason in answers.items() if reason == "PRINCIPAL_NOT_ALLOWED"}

    assert refused == ({"host"} if method in FOR_SESSIONS else {"session"} if method in FOR_HOSTS else set())


@pytest.mark.parametrize("word", ["நினைவு", "தமிழ்", "கோவில்", "மழையில்"])
def test_a_tamil_word_is_found_and_its_consonants_alone_are_not(at, word):
    at(PUBLIC).save_memory(key="k", content=f"இது {word} ஆகும்")
    consonants = " ".join(letter for letter in word if "\u0b95" <= letter <= "\u0bb9")

    assert keys(at(PUBLIC).search_memories(query=word)) == ["k"]
    assert keys(at(PUBLIC).search_memories(query=consonants)) == []


@pytest.mark.parametrize(
    ("tags", "field"), [([""], "tags[0]"), (["a", " \t"], "tags[1]"), (["t"] * 33, "tags"), (["x" * 65], "tags[0]")]
)
def test_a_tag_that_cannot_be_kept_is_refused_not_dropped(at, tags, field):
    assert invalid(at(PUBLIC).save_memory, key="k", content="x", tags=tags) == [field]
    assert refusal(at(PUBLIC).get_memory, key="k") == GONE


def test_only_the_token_decides_whose_memories_are_read(session):
    """No request names an agent, and metadata that does says nothing."""
    session(PUBLIC, agent_id="owner").save_memory(key="plan", content="whale")
    guest = session(PUBLIC, agent_id="guest")
    guest.metadata += (("x-agent-id", "owner"), ("agent_id", "owner"))

    assert refusal(guest.get_memory, key="plan") == GONE
    assert keys(guest.list_memories()) == []


def test_nothing_but_a_reset_lowers_a_conversation(host, session):
    own = session(RESTRICTED, conversation_id="c")
    for taint in (PUBLIC, INTERNAL, CONFIDENTIAL):
        failure_of(host.open_session, agent_id="alice", taint=taint, conversation_id="c")
        host.raise_taint(session_id=own.session_id, taint=taint)
        failure_of(own.raise_taint, session_id=own.session_id, taint=taint)
        failure_of(own.reset_session, session_id=own.session_id)
    session(PUBLIC, conversation_id="other")

    assert own.get_session().session.taint == RESTRICTED
    assert host.reset_session(session_id=own.session_id).session.taint == PUBLIC


def test_a_method_that_no_one_declared_is_denied(at):
    teleport = at(PUBLIC).channel.unary_unary("/muniment.v1.MemoryService/Teleport")

    outcome = failure_of(lambda: teleport(b"", metadata=at(PUBLIC).metadata, timeout=20))

    assert outcome.code is grpc.StatusCode.UNIMPLEMENTED


def test_concurrent_increments_with_etags_all_count(service):
    sessions = [service.session(PUBLIC) for _ in range(6)]
    sessions[0].save_memory(key="counter", content="0")

    def increment(session):
        counted = 0
        while counted < 5:
            seen = session.get_memory(key="counter").memory
            answer = session.observe("SaveMemory", key="counter", content=str(int(seen.content) + 1), etag=seen.etag)
            assert answer.code in (grpc.StatusCode.OK, grpc.StatusCode.ABORTED)
            counted += answer.code is grpc.StatusCode.OK

    together(*(lambda s=session: increment(s) for session in sessions))

    assert sessions[0].get_memory(key="counter").memory.content == "30"
    assert broken_invariants(service.database) == []


def test_an_id_of_another_agent_looks_like_one_that_never_existed(session):
    etag = session(PUBLIC, agent_id="alice").save_memory(key="plan", content="text").memory.etag
    bob = session(PUBLIC, agent_id="bob")
    bob.save_memory(key="plan", content="text")
    made_up = bob.save_memory(key="other", content="text").memory.etag

    for call, fields in ((bob.save_memory, {"content": "x"}), (bob.delete_memory, {})):
        assert failure_of(call, key="plan", etag=etag, **fields) == failure_of(call, key="plan", etag=made_up, **fields)
    assert session(PUBLIC, agent_id="alice").get_memory(key="plan").memory.etag == etag


def named(item_id):
    """Every call that names an item, and an item of its kind."""
    yield "UpdateNote", {"note_id": item_id, "content": "x"}
    yield "DeleteNote", {"note_id": item_id}
    yield "EditNotes", {"edits": [{"update": {"note_id": item_id, "content": "x"}}]}
    yield "EditNotes", {"edits": [{"delete": {"note_id": item_id}}]}
    yield "GetPassage", {"passage_id": item_id}
    yield "DeletePassage", {"passage_id": item_id}
    yield "GetBlock", {"label": item_id}
    yield "GetBlock", {"label": item_id, "owner_agent_id": "alice"}
    yield "EditBlock", {"label": item_id, "append": {"content": "x"}}
    yield "DeleteBlock", {"label": item_id}
    yield "GetMemory", {"key": item_id}
    yield "DeleteMemory", {"key": item_id}


@pytest.mark.parametrize("index", range(len(list(named("")))))
def test_every_call_that_names_an_item_of_another_agent_finds_nothing(session, index):
    """Byte for byte what it finds where there never was one: another agent's, another tenant's, a higher one's."""
    taken, never = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
    for owner in (session(PUBLIC, agent_id="alice"), session(RESTRICTED, agent_id="bob")):
        owner.add_note(content="text", note_id=taken)
        owner.store_passage(content="text", passage_id=taken)
        owner.update_block(label=taken, content="text")
        owner.save_memory(key=taken, content="text")
    rpc, fields = list(named(taken))[index]
    bob = session(PUBLIC, agent_id="bob")

    outcome = bob.observe(rpc, **fields)

    assert outcome.code is grpc.StatusCode.NOT_FOUND
    assert outcome == bob.observe(rpc, **list(named(never))[index][1])


@pytest.mark.parametrize("query", ["%", "_", "%%", "wh_le", "wh%"])
def test_percent_and_underscore_are_ordinary(at, query):
    at(PUBLIC).save_memory(key="k", content="whale")

    assert keys(at(PUBLIC).search_memories(query=query)) == []
    assert keys(at(PUBLIC).list_memories(tag=query)) == []


def test_a_tag_filter_returns_all_it_should_among_many_that_do_not_match(at):
    for number in range(60):
        at(PUBLIC).save_memory(key=f"other{number:02}", content="whale whale", tags=["other"])
    for number in range(5):
        at(PUBLIC).save_memory(key=f"wanted{number}", content="whale", tags=["wanted", "more"])
    wanted = [f"wanted{number}" for number in range(5)]

    assert keys(at(PUBLIC).list_memories(tag="wanted", page_size=5)) == wanted
    for match, tags in ((1, ["more", "wanted"]), (2, ["wanted", "never"])):
        assert keys(at(PUBLIC).search_memories(query="whale", tags=tags, tag_match=match, max_results=5)) == wanted


def test_an_empty_memory_is_refused(at):
    """A block may be empty: it is a place to write in."""
    assert invalid(at(PUBLIC).save_memory, key="k", content="") == ["content"]
    assert invalid(at(PUBLIC).add_note, content="") == ["content"]
    assert invalid(at(PUBLIC).store_passage, content="") == ["content"]


def test_deleting_what_is_not_there_fails(at):
    never = str(uuid.UUID(int=1))

    assert refusal(at(PUBLIC).delete_memory, key="never") == GONE
    assert refusal(at(PUBLIC).delete_note, note_id=never) == "NOT_FOUND NOTE_NOT_FOUND"
    assert refusal(at(PUBLIC).delete_block, label="never") == "NOT_FOUND BLOCK_NOT_FOUND"
    assert refusal(at(PUBLIC).delete_passage, passage_id=never) == "NOT_FOUND PASSAGE_NOT_FOUND"


def test_the_order_of_a_list_is_pinned(at):
    for key in ("c", "a", "b"):
        at(PUBLIC).save_memory(key=key, content="text")
    at(PUBLIC).save_memory(key="c", content="newer")

    assert keys(at(PUBLIC).list_memories()) == ["a", "b", "c"]


def test_a_save_does_not_raise_the_taint(at):
    """Their end-to-end test, kept."""
    at(INTERNAL).save_memory(key="k", content="text")

    assert at(INTERNAL).get_session().session.taint == Classification.INTERNAL
