"""Integrity, the second half of a label: what a trusted conversation is, what ends it, and what never reaches it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
import pytest
from google.protobuf.message_factory import GetMessageClass

from muniment.v1 import classification_pb2
from muniment.v1.session_pb2 import ConversationTainted
from muniment_server.background.sealer import BEGINNING, seal_tenant, tenants
from muniment_server.domain.classification import Integrity, Label
from muniment_server.postgres import roles
from muniment_server.transport.server import SERVICES
from tests.rpcs import RPCS, World, call
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, RESTRICTED, detail, events, invalid, keys, refusal
from tests.support.canaries import new_canary
from tests.support.labels import FLOWS, trusted, untrusted
from tests.support.methods import FOR_BOTH, FOR_HOSTS, POLICIES
from tests.support.services import Caller, failure_of, new_host_key, reason_of

UNTRUSTED, TRUSTED = Integrity
TAINTED = "FAILED_PRECONDITION CONVERSATION_TAINTED"
CONVERSATION = "talk"
NOTE = str(uuid.UUID(int=1))
PASSAGE = str(uuid.UUID(int=2))
LABELS = [pytest.param(label, id=label.name) for label in Label]
OF_TRUSTED = [pytest.param(label, id=label.name) for label in Label if label.name.endswith("_TRUSTED")]
BELOW: Mapping[Label, Label | None] = {
    Label.PUBLIC_TRUSTED: None,
    Label.PUBLIC: Label.PUBLIC_TRUSTED,
    Label.INTERNAL_TRUSTED: Label.PUBLIC_TRUSTED,
    Label.INTERNAL: Label.INTERNAL_TRUSTED,
    Label.CONFIDENTIAL_TRUSTED: Label.INTERNAL_TRUSTED,
    Label.CONFIDENTIAL: Label.CONFIDENTIAL_TRUSTED,
    Label.RESTRICTED_TRUSTED: Label.CONFIDENTIAL_TRUSTED,
    Label.RESTRICTED: Label.RESTRICTED_TRUSTED,
}
"""Whose version a session is shown if every label has one but its own."""
_METHODS = {method.name: method for service in SERVICES for method in service.methods}
_OF_SESSIONS = sorted(
    rpc
    for rpc, method in _METHODS.items()
    if not POLICIES[rpc].for_hosts and "integrity" in method.output_type.fields_by_name
)


@pytest.fixture
def alice(shared, tenant) -> str:
    agent: str = shared.agent("alice", tenant)
    return agent


def label_of(message: Any, level: str = "taint") -> Label:
    """The label in a message of the contract."""
    name = classification_pb2.Classification.Name(getattr(message, level)).removeprefix("CLASSIFICATION_")
    return Label[f"{name}_TRUSTED" if message.integrity == TRUSTED else name]


def of_item(message: Any) -> Label:
    return label_of(message, "classification")


def fields_of(label: Label) -> dict[str, int]:
    """What a request says to ask for *label*."""
    return {"taint": int(label.level), "integrity": int(label.integrity)}


def open_session(host: Caller, **fields: Any) -> Any:
    return host.open_session(**{"agent_id": "alice", "conversation_id": CONVERSATION, **fields})


def now(host: Caller, opened: Any) -> Label:
    """The label of a session's conversation, as its host sees it."""
    return label_of(host.get_session(session_id=opened.session.session_id).session)


def saved(host: Caller, opened: Any) -> Label:
    """The label of what a session writes."""
    return of_item(host.session(opened).save_memory(key=new_canary(), content="text").memory)


# OpenSession


@pytest.mark.parametrize("fields", [{}, {"integrity": UNTRUSTED}, {"taint": INTERNAL}])
def test_who_does_not_ask_is_untrusted(host, alice, fields):
    opened = open_session(host, **fields)

    assert opened.session.integrity == UNTRUSTED
    assert now(host, opened) == saved(host, opened) == label_of(opened.session)


@pytest.mark.parametrize("label", OF_TRUSTED)
def test_a_host_opens_a_trusted_conversation(host, alice, label):
    opened = open_session(host, **fields_of(label))

    assert label_of(opened.session) is label
    assert label_of(host.session(opened).get_session().session) is label
    assert [label_of(each) for each in host.list_sessions(agent_id="alice").sessions] == [label]
    assert saved(host, opened) is label


def test_a_trusted_conversation_begins_at_public(host, alice):
    assert label_of(open_session(host, integrity=TRUSTED).session) is Label.PUBLIC_TRUSTED


@pytest.mark.parametrize("integrity", [2, -1, 2**31 - 1])
def test_an_unknown_integrity_is_refused(host, alice, integrity):
    opened = open_session(host, integrity=TRUSTED)
    own = {"session_id": opened.session.session_id}

    assert invalid(open_session, host=host, integrity=integrity) == ["integrity"]
    assert invalid(host.raise_taint, **own, taint=PUBLIC, integrity=integrity) == ["integrity"]
    assert invalid(host.reset_session, **own, integrity=integrity) == ["integrity"]
    assert now(host, opened) is Label.PUBLIC_TRUSTED


@pytest.mark.parametrize("asked", LABELS)
@pytest.mark.parametrize("mark", LABELS)
def test_a_conversation_is_opened_at_its_label_or_where_that_may_flow(host, alice, mark, asked):
    """A call that opens nothing raises nothing: neither half."""
    first = open_session(host, **fields_of(mark))
    if mark in FLOWS[asked]:
        opened = open_session(host, **fields_of(asked))
        assert label_of(opened.session) is asked
        assert now(host, first) is asked
        assert saved(host, first) is asked
    else:
        refused = failure_of(open_session, host=host, **fields_of(asked))
        assert reason_of(refused) == "CONVERSATION_TAINTED"
        assert label_of(detail(refused, ConversationTainted)) is mark
        assert now(host, first) is mark
        assert len(host.list_sessions(agent_id="alice").sessions) == 1


@pytest.mark.parametrize("label", OF_TRUSTED)
def test_without_a_taint_the_integrity_counts_alone(host, alice, label):
    first = open_session(host, **fields_of(label))
    assert label_of(open_session(host, integrity=TRUSTED).session) is label

    second = open_session(host)

    assert (label_of(second.session), now(host, first)) == (untrusted(label.level), untrusted(label.level))
    assert refusal(open_session, host=host, integrity=TRUSTED) == TAINTED


def test_a_name_that_is_free_begins_a_new_conversation(host, alice):
    first = open_session(host, integrity=TRUSTED)
    open_session(host, conversation_id="other")

    assert now(host, first) is Label.PUBLIC_TRUSTED


@pytest.mark.parametrize("integrity", [UNTRUSTED, TRUSTED])
def test_what_is_above_a_ceiling_raises_neither_half(shared, tenant, host, integrity):
    """Of the agent, of the conversation, of the key."""
    host.create_agent(agent_id="alice", ceiling=CONFIDENTIAL, known_from=PUBLIC)
    limited = shared.host(tenant, INTERNAL)
    opened = open_session(limited, integrity=TRUSTED)
    own = {"session_id": opened.session.session_id}
    high = {"integrity": integrity}

    assert {
        refusal(open_session, host=host, taint=RESTRICTED, **high),
        refusal(host.raise_taint, **own, taint=RESTRICTED, **high),
    } == {"PERMISSION_DENIED AGENT_CEILING_EXCEEDED"}
    assert {
        refusal(open_session, host=host, taint=CONFIDENTIAL, **high),
        refusal(host.raise_taint, **own, taint=CONFIDENTIAL, **high),
    } == {"PERMISSION_DENIED CONVERSATION_CEILING_EXCEEDED"}
    assert {
        refusal(open_session, host=limited, taint=CONFIDENTIAL, **high),
        refusal(limited.raise_taint, **own, taint=CONFIDENTIAL, **high),
    } == {"PERMISSION_DENIED CEILING_EXCEEDED"}
    assert now(host, opened) is Label.PUBLIC_TRUSTED


# Keys for untrusted sessions only


@pytest.fixture
def bound(shared, tenant) -> Caller:
    """A host whose key was made with `--integrity untrusted`."""
    return Caller(shared.channel, new_host_key(shared.database, tenant, RESTRICTED, integrity=Integrity.UNTRUSTED))


@pytest.mark.parametrize("rpc", sorted(FOR_HOSTS | FOR_BOTH))
def test_an_untrusted_key_manages_sessions_and_nothing_else(host, bound, rpc):
    word = new_canary()
    World(word).fill_agents(host)
    opened = bound.open_session(agent_id=word)
    world = World(word, opened.session.session_id)
    world.fill(bound.session(opened), "text")

    refused = reason_of(bound.observe(rpc, **RPCS[rpc].request(world)))

    assert refused == ("" if POLICIES[rpc].service == "SessionService" else "PRINCIPAL_NOT_ALLOWED")


def test_an_untrusted_key_makes_nothing_trusted(host, bound, alice):
    own = open_session(bound)
    named = {"session_id": own.session.session_id}
    refused = [
        refusal(open_session, host=bound, conversation_id="another", integrity=TRUSTED),
        refusal(bound.raise_taint, **named, taint=INTERNAL, integrity=TRUSTED),
        refusal(bound.reset_session, **named, integrity=TRUSTED),
    ]

    assert refused == ["PERMISSION_DENIED INTEGRITY_EXCEEDED"] * 3
    assert now(host, own) is Label.PUBLIC
    rows = [(event.method, event.agent_id, event.session_id) for event in events(host) if event.outcome != "OK"]
    session_id = own.session.session_id
    methods = [("OpenSession", ""), ("RaiseTaint", session_id), ("ResetSession", session_id)]
    assert rows == [(method, "alice", session) for method, session in methods]


def test_an_untrusted_key_neither_sees_nor_taints_nor_ends_what_others_have_opened(host, bound, alice):
    """A tainted planner would go on with what untrusted contexts wrote."""
    plan = open_session(host, integrity=TRUSTED)
    named = {"session_id": plan.session.session_id}

    assert {
        refusal(bound.raise_taint, **named, taint=INTERNAL),
        *(refusal(rpc, **named) for rpc in (bound.reset_session, bound.close_session, bound.get_session)),
    } == {"NOT_FOUND SESSION_NOT_FOUND"}
    assert list(bound.list_sessions(agent_id="alice", include_closed=True).sessions) == []
    assert now(host, plan) is saved(host, plan) is Label.PUBLIC_TRUSTED

    host.raise_taint(**named, taint=PUBLIC)
    assert refusal(bound.get_session, **named) == "NOT_FOUND SESSION_NOT_FOUND"
    assert list(bound.list_sessions(agent_id="alice", include_closed=True).sessions) == []


def test_an_untrusted_key_neither_learns_of_conversations_nor_takes_their_names(host, bound, alice):
    """Names of conversations can be guessed. Whether others have one, and with which label, changes no answer."""
    open_session(host, conversation_id="trusted", integrity=TRUSTED)
    open_session(host, conversation_id="confidential", taint=CONFIDENTIAL)
    names = ("trusted", "confidential", "free")
    opened = [open_session(bound, conversation_id=name) for name in names]

    assert [each.session.conversation_id for each in opened] == [*names]
    assert {now(bound, each) for each in opened} == {Label.PUBLIC}
    assert now(host, open_session(host, conversation_id="free", integrity=TRUSTED)) is Label.PUBLIC_TRUSTED
    assert [host.get_session(session_id=each.session.session_id).session.conversation_id for each in opened] == [
        f"~{name}" for name in names
    ]


@pytest.mark.parametrize("name", ["own", ""])
def test_an_untrusted_key_goes_on_with_its_own_conversations(bound, alice, name):
    begun = open_session(bound, conversation_id=name, taint=INTERNAL).session
    assert not begun.conversation_id.startswith("~")

    again = open_session(bound, conversation_id=begun.conversation_id, taint=0)
    assert (again.session.conversation_id, again.session.taint) == (begun.conversation_id, INTERNAL)
    assert bound.session(again).get_session().session.conversation_id == begun.conversation_id


def test_an_untrusted_key_does_not_taint_its_own_conversation_once_that_is_trusted(host, bound, alice):
    own = open_session(bound)
    trusted = host.reset_session(session_id=own.session.session_id, integrity=TRUSTED)

    assert refusal(open_session, host=bound) == "PERMISSION_DENIED INTEGRITY_EXCEEDED"
    assert now(host, trusted) is Label.PUBLIC_TRUSTED


def test_the_database_has_no_untrusted_key_that_manages_agents(shared, tenant, host):
    with shared.database.as_owner() as owner, pytest.raises(psycopg.errors.CheckViolation):
        owner.execute("UPDATE vault.host_key SET trusted = FALSE")


# RaiseTaint


@pytest.mark.parametrize("asked", LABELS)
@pytest.mark.parametrize("mark", LABELS)
def test_a_raise_raises_either_half_or_both_and_never_back(host, alice, mark, asked):
    opened = open_session(host, **fields_of(mark))
    other = open_session(host, **fields_of(mark))
    both_are_trusted = {mark, asked} <= FLOWS[Label.RESTRICTED_TRUSTED]
    expected = (trusted if both_are_trusted else untrusted)(max(mark.level, asked.level))

    raised = host.raise_taint(session_id=opened.session.session_id, **fields_of(asked)).session

    assert label_of(raised) is expected
    assert [now(host, each) for each in (opened, other)] == [expected] * 2
    assert [saved(host, each) for each in (opened, other)] == [expected] * 2


def test_a_raise_that_names_no_integrity_taints(host, alice):
    opened = open_session(host, **fields_of(Label.CONFIDENTIAL_TRUSTED))

    host.raise_taint(session_id=opened.session.session_id, taint=PUBLIC)

    assert now(host, opened) is Label.CONFIDENTIAL


def test_once_tainted_a_conversation_is_trusted_by_a_reset_only(host, alice):
    opened = open_session(host, integrity=TRUSTED)
    own = {"session_id": opened.session.session_id}
    host.raise_taint(**own, taint=PUBLIC)
    host.raise_taint(**own, taint=RESTRICTED, integrity=TRUSTED)

    assert now(host, opened) is Label.RESTRICTED
    assert refusal(open_session, host=host, taint=RESTRICTED, integrity=TRUSTED) == TAINTED
    host.close_session(**own)
    assert refusal(open_session, host=host, taint=RESTRICTED, integrity=TRUSTED) == TAINTED


def test_after_a_raise_a_session_sees_what_is_untrusted_and_writes_beside_what_is_trusted(host, alice, at):
    """The token stays. What it wrote before stays trusted."""
    at(Label.PUBLIC).save_memory(key="mail", content="buy now")
    opened = open_session(host, integrity=TRUSTED)
    session = host.session(opened)
    session.save_memory(key="plan", content="trusted plan")
    assert refusal(session.get_memory, key="mail") == "NOT_FOUND MEMORY_NOT_FOUND"

    host.raise_taint(session_id=opened.session.session_id, taint=PUBLIC)

    assert session.get_memory(key="mail").memory.content == "buy now"
    assert of_item(session.save_memory(key="plan", content="spoiled plan").memory) is Label.PUBLIC
    assert at(Label.PUBLIC_TRUSTED).get_memory(key="plan").memory.content == "trusted plan"


def test_a_page_token_of_before_the_raise_is_stale(host, alice):
    """Half of the list would be that of another label."""
    opened = open_session(host, integrity=TRUSTED)
    session = host.session(opened)
    for key in "abc":
        session.save_memory(key=key, content="text")
    token = session.list_memories(page_size=1).next_page_token
    assert keys(session.list_memories(page_size=1, page_token=token)) == ["b"]

    host.raise_taint(session_id=opened.session.session_id, taint=PUBLIC)

    assert reason_of(failure_of(session.list_memories, page_size=1, page_token=token)) == "TAINT_CHANGED"


# ResetSession


@pytest.mark.parametrize("integrity", [UNTRUSTED, TRUSTED])
@pytest.mark.parametrize("mark", LABELS)
def test_a_reset_begins_at_public_with_the_integrity_that_is_asked_for(host, alice, mark, integrity):
    old = open_session(host, **fields_of(mark))

    new = host.reset_session(session_id=old.session.session_id, integrity=integrity)

    expected = Label.PUBLIC_TRUSTED if integrity is TRUSTED else Label.PUBLIC
    assert label_of(new.session) is expected
    assert (now(host, new), saved(host, new)) == (expected, expected)
    assert refusal(host.session(old).get_session) == "UNAUTHENTICATED CREDENTIAL_INVALID"


def test_a_reset_that_names_no_integrity_is_untrusted(host, alice):
    old = open_session(host, integrity=TRUSTED)

    assert label_of(host.reset_session(session_id=old.session.session_id).session) is Label.PUBLIC


# What sessions see


def write(session: Caller, content: str) -> None:
    """An item of each kind, each of the same name in all sessions."""
    session.save_memory(key="plan", content=content, tags=["tag"])
    session.add_note(note_id=NOTE, content=content)
    session.update_block(label="plan", content=content)
    session.store_passage(passage_id=PASSAGE, content=content, thread="t", tags=["tag"])


def _one(rpc: str, **fields: Any) -> Callable[[Caller], list[Any]]:
    """What a Get returns, or nothing."""

    def get(session: Caller) -> list[Any]:
        outcome = session.observe(rpc, **fields)
        if outcome.code.name == "NOT_FOUND":
            return []
        response = GetMessageClass(_METHODS[rpc].output_type).FromString(outcome.response)
        return [getattr(response, rpc.removeprefix("Get").lower())]

    return get


READS: dict[str, Callable[[Caller], list[Any]]] = {
    "GetMemory": _one("GetMemory", key="plan"),
    "ListMemories": lambda session: list(session.list_memories().memories),
    "ListMemories by tag": lambda session: list(session.list_memories(tag="tag").memories),
    "SearchMemories": lambda session: [each.memory for each in session.search_memories(query="whale").results],
    "ListNotes": lambda session: list(session.list_notes(tier=1).notes),
    "SearchNotes": lambda session: [each.note for each in session.search_notes(query="whale").results],
    "GetBlock": _one("GetBlock", label="plan"),
    "ListBlocks": lambda session: [each for each in session.list_blocks().blocks if each.label == "plan"],
    "GetPassage": _one("GetPassage", passage_id=PASSAGE),
    "ListPassages": lambda session: list(session.list_passages().passages),
    "ListPassages by thread": lambda session: list(session.list_passages(thread="t").passages),
    "SearchPassages": lambda session: [each.passage for each in session.search_passages(query="whale").results],
}
"""Each way in which a session reads what `write` wrote."""


def seen(session: Caller) -> dict[str, list[tuple[str, Label]]]:
    return {rpc: [(item.content, of_item(item)) for item in read(session)] for rpc, read in READS.items()}


def all_are(*items: tuple[str, Label]) -> dict[str, list[tuple[str, Label]]]:
    return {rpc: list(items) for rpc in READS}


def rendered(session: Caller) -> set[str]:
    """The texts of `write` in the prompt."""
    return {word.strip(".") for word in session.render_prompt().text.split() if word.startswith("whale-")}


def versions(session: Caller, kind: int, name: str) -> list[str]:
    return [each.content for each in session.list_versions(kind=kind, name=name).versions]


@pytest.mark.parametrize("label", OF_TRUSTED)
def test_a_trusted_session_finds_its_own_plan_or_none(at, label):
    """Whatever an untrusted context has written under its name, at its level or below."""
    for level in [each for each in (PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED) if each <= label.level]:
        write(at(level), "whale-poison.")

    assert seen(at(label)) == all_are()
    assert rendered(at(label)) == set()
    assert refusal(at(label).list_versions, kind=1, name="plan") == "NOT_FOUND MEMORY_NOT_FOUND"

    write(at(label), "whale-own.")

    assert seen(at(label)) == all_are(("whale-own.", label))
    assert rendered(at(label)) == {"whale-own"}
    for kind, name in ((1, "plan"), (2, NOTE), (3, "plan")):
        assert versions(at(label), kind, name) == ["whale-own."]


@pytest.mark.parametrize("reader", LABELS)
def test_a_session_is_shown_the_highest_version_below_and_before_all_others_its_own(at, reader):
    """The level counts first; of one level, untrusted is above trusted."""
    for label in reversed(Label):  # from above, since who sees a passage cannot store another with its id
        if label is not reader:
            write(at(label), f"whale-{label.name}.")
    below = BELOW[reader]

    assert seen(at(reader)) == (all_are((f"whale-{below.name}.", below)) if below else all_are())
    assert rendered(at(reader)) == ({f"whale-{below.name}"} if below else set())

    at(reader).save_memory(key="plan", content="whale-own.", tags=["tag"])
    at(reader).update_block(label="plan", content="whale-own.")
    (at(reader).update_note if below else at(reader).add_note)(note_id=NOTE, content="whale-own.")

    assert {rpc: items for rpc, items in seen(at(reader)).items() if "Passage" not in rpc} == {
        rpc: [("whale-own.", reader)] for rpc in READS if "Passage" not in rpc
    }
    assert "whale-own" in rendered(at(reader))
    others = {f"whale-{label.name}." for label in FLOWS[reader] - {reader}}
    for kind in (1, 3):
        own, *lower = versions(at(reader), kind, "plan")
        assert (own, set(lower)) == ("whale-own.", others)


def test_a_confidential_version_is_shown_before_a_public_one_that_is_untrusted(at):
    at(Label.PUBLIC).save_memory(key="plan", content="public", tags=["a"])
    at(Label.CONFIDENTIAL_TRUSTED).save_memory(key="plan", content="confidential", tags=["b"])

    shown = at(Label.RESTRICTED).get_memory(key="plan").memory
    assert (shown.content, of_item(shown)) == ("confidential", Label.CONFIDENTIAL_TRUSTED)
    assert keys(at(Label.RESTRICTED).list_memories(tag="a")) == []


def test_a_newer_version_that_is_shadowed_says_what_it_is(at):
    at(Label.CONFIDENTIAL).save_memory(key="plan", content="old")
    at(Label.PUBLIC_TRUSTED).save_memory(key="plan", content="corrected")

    newer = at(Label.CONFIDENTIAL).get_memory(key="plan").memory.newer_below
    assert of_item(newer) is Label.PUBLIC_TRUSTED
    at(Label.CONFIDENTIAL_TRUSTED).save_memory(key="plan", content="corrected again")
    assert of_item(at(Label.CONFIDENTIAL).get_memory(key="plan").memory.newer_below) is Label.CONFIDENTIAL_TRUSTED
    at(Label.PUBLIC).save_memory(key="plan", content="spoiled")
    assert not at(Label.CONFIDENTIAL_TRUSTED).get_memory(key="plan").memory.HasField("newer_below")


@pytest.mark.parametrize("level", [PUBLIC, RESTRICTED])
def test_who_deletes_an_untrusted_version_learns_what_it_reveals(at, level):
    write(at(trusted(level)), "whale-trusted.")
    at(level).save_memory(key="plan", content="untrusted")
    at(level).update_note(note_id=NOTE, content="untrusted")
    at(level).update_block(label="plan", content="untrusted")

    answers = [
        at(level).delete_memory(key="plan"),
        at(level).delete_note(note_id=NOTE),
        at(level).delete_block(label="plan"),
    ]

    assert [(each.revealed, each.revealed_integrity) for each in answers] == [(level, TRUSTED)] * 3
    assert [each.integrity for each in answers] == [UNTRUSTED] * 3
    assert seen(at(level)) == all_are(("whale-trusted.", trusted(level)))


def test_an_untrusted_session_deletes_nothing_that_is_trusted(at):
    write(at(Label.PUBLIC_TRUSTED), "whale-trusted.")
    session = at(Label.PUBLIC)
    for delete, fields in (
        (session.delete_memory, {"key": "plan"}),
        (session.delete_note, {"note_id": NOTE}),
        (session.delete_block, {"label": "plan"}),
        (session.delete_passage, {"passage_id": PASSAGE}),
    ):
        assert failure_of(delete, **fields).code.name in {"FAILED_PRECONDITION", "NOT_FOUND"}
    assert session.delete_memories(tag="tag").deleted_count == 0
    assert session.delete_passages(tag="tag").deleted_count == 0

    assert seen(at(Label.PUBLIC_TRUSTED)) == all_are(("whale-trusted.", Label.PUBLIC_TRUSTED))


@pytest.mark.parametrize("level", [PUBLIC, CONFIDENTIAL])
def test_nothing_that_a_trusted_session_reads_changes_by_what_is_untrusted(at, level):
    """Counts, budgets, scores and etags too."""
    session = at(trusted(level))
    write(session, "whale-own.")

    def answers() -> list[bytes]:
        return [
            session.list_memories().SerializeToString(),
            session.list_notes(tier=1).SerializeToString(),
            session.list_blocks().SerializeToString(),
            session.list_passages().SerializeToString(),
            session.render_prompt().SerializeToString(),
            session.search_memories(query="whale own").SerializeToString(),
            session.search_notes(query="whale own").SerializeToString(),
            session.search_passages(query="whale own").SerializeToString(),
            session.list_versions(kind=1, name="plan", with_revisions=True).SerializeToString(),
        ]

    before = answers()
    for number in range(8):
        for low in {PUBLIC, level}:
            at(low).save_memory(key=f"plan{number}", content="whale own whale", tags=["tag"])
            at(low).add_note(content=f"whale own {number}")
            at(low).update_block(label=f"plan{number}", content="whale own")
            at(low).store_passage(content=f"whale own {number}", thread="t")
    for low in {PUBLIC, level}:
        at(low).save_memory(key="plan", content="whale poison")
        at(low).update_block(label="plan", content="whale poison")

    assert answers() == before


@pytest.mark.parametrize("label", LABELS)
def test_a_shared_block_reaches_sessions_of_labels_that_it_may_flow_to(host, session, alice, label):
    """What hosts write is untrusted, as what the first blocks of an agent have in them."""
    host.create_agent(agent_id="bob")
    host.create_shared_block(owner_agent_id="alice", label="plan", content="of the host")
    host.attach_block(owner_agent_id="alice", label="plan", agent_id="bob")
    reader = session(label, agent_id="bob")

    def shared() -> list[str]:
        return [block.content for block in reader.list_blocks().blocks if block.owner_agent_id == "alice"]

    assert shared() == (["of the host"] if Label.PUBLIC in FLOWS[label] else [])
    session(Label.PUBLIC_TRUSTED).update_block(label="plan", content="of a trusted session")
    assert shared() == (["of the host"] if Label.PUBLIC in FLOWS[label] else ["of a trusted session"])


# What answers say


@pytest.mark.parametrize("label", [Label.INTERNAL_TRUSTED, Label.INTERNAL], ids=lambda label: label.name)
def test_every_response_of_a_session_has_its_integrity(host, label):
    """What a session is shown depends on all that it can see, even if all of that is trusted."""

    def answer(rpc: str) -> Any:
        word = new_canary()
        World(word).fill_agents(host)
        opened = host.open_session(agent_id=word, **fields_of(label))
        world, session = World(word, opened.session.session_id, int(label.level)), host.session(opened)
        world.fill(session, "text")
        return call(session, rpc, RPCS[rpc].request(world), timeout=60)

    answers = {rpc: answer(rpc) for rpc in _OF_SESSIONS}

    assert {rpc: answer.integrity for rpc, answer in answers.items()} == dict.fromkeys(_OF_SESSIONS, label.integrity)
    assert len(answers) > 25


def test_a_trusted_item_is_trusted_in_an_untrusted_answer(at):
    write(at(Label.PUBLIC_TRUSTED), "whale-trusted.")

    assert seen(at(Label.PUBLIC)) == all_are(("whale-trusted.", Label.PUBLIC_TRUSTED))
    answers = [at(Label.PUBLIC).get_memory(key="plan"), at(Label.PUBLIC).list_memories()]
    assert [answer.integrity for answer in answers] == [UNTRUSTED] * 2


def test_a_section_of_the_prompt_is_trusted_if_all_in_it_is(at):
    write(at(Label.PUBLIC_TRUSTED), "whale-trusted.")

    def sections(session: Caller) -> list[tuple[str, int]]:
        found = session.render_prompt().sections
        return [(each.label or "notes", each.integrity) for each in found if each.label in {"", "plan"}]

    assert sections(at(Label.PUBLIC_TRUSTED)) == [("plan", TRUSTED), ("notes", TRUSTED)]
    assert sections(at(Label.INTERNAL)) == [("plan", TRUSTED), ("notes", TRUSTED)]
    at(Label.PUBLIC).add_note(content="untrusted")
    assert sections(at(Label.INTERNAL)) == [("plan", TRUSTED), ("notes", UNTRUSTED)]


# What hosts see and do


def test_audit_events_have_the_integrity_of_the_session(host, alice):
    opened = open_session(host, **fields_of(Label.CONFIDENTIAL_TRUSTED))
    session = host.session(opened)
    session.save_memory(key="plan", content="text")
    session.get_memory(key="plan")
    host.raise_taint(session_id=opened.session.session_id, taint=CONFIDENTIAL)
    session.save_memory(key="plan", content="text")

    found = events(host, agent_id="alice", session_id=opened.session.session_id)
    assert [(event.method, of_item(event)) for event in found] == [
        ("OpenSession", Label.CONFIDENTIAL_TRUSTED),
        ("SaveMemory", Label.CONFIDENTIAL_TRUSTED),
        ("GetMemory", Label.CONFIDENTIAL_TRUSTED),
        ("RaiseTaint", Label.CONFIDENTIAL),
        ("SaveMemory", Label.CONFIDENTIAL),
    ]


def test_what_a_host_does_to_a_trusted_session_says_so(host, alice):
    old = open_session(host, **fields_of(Label.INTERNAL_TRUSTED))
    host.raise_taint(session_id=old.session.session_id, **fields_of(Label.CONFIDENTIAL_TRUSTED))
    new = host.reset_session(session_id=old.session.session_id, integrity=TRUSTED)
    host.close_session(session_id=new.session.session_id)
    host.session(open_session(host, conversation_id="other", integrity=TRUSTED)).close_session()
    host.reset_session(session_id=open_session(host).session.session_id)

    done = [event for event in events(host, agent_id="alice") if event.method != "CreateAgent"]
    assert sorted(((event.method, event.outcome, of_item(event)) for event in done), key=str) == sorted(
        [
            ("OpenSession", "OK", Label.INTERNAL_TRUSTED),
            ("RaiseTaint", "OK", Label.CONFIDENTIAL_TRUSTED),
            ("ResetSession", "CLOSED", Label.CONFIDENTIAL_TRUSTED),
            ("ResetSession", "OK", Label.PUBLIC_TRUSTED),
            ("CloseSession", "OK", Label.PUBLIC_TRUSTED),
            ("OpenSession", "OK", Label.PUBLIC_TRUSTED),
            ("CloseSession", "OK", Label.PUBLIC_TRUSTED),
            ("OpenSession", "OK", Label.PUBLIC),
            ("ResetSession", "CLOSED", Label.PUBLIC),
            ("ResetSession", "OK", Label.PUBLIC),
        ],
        key=str,
    )


def test_a_raise_is_recorded_if_it_raises_either_half_and_only_then(host, alice):
    opened = open_session(host, **fields_of(Label.INTERNAL_TRUSTED))
    own = {"session_id": opened.session.session_id}

    def raises() -> int:
        return sum(event.method == "RaiseTaint" for event in events(host, **own))

    counts = []
    for asked in (Label.PUBLIC_TRUSTED, Label.INTERNAL_TRUSTED, Label.PUBLIC, Label.INTERNAL, Label.RESTRICTED_TRUSTED):
        host.raise_taint(**own, **fields_of(asked))
        counts.append(raises())
    assert counts == [0, 0, 1, 1, 2]


def test_each_label_has_a_chain_of_seals(service):
    """Of one level, what trusted sessions did is sealed apart."""
    for label in (Label.PUBLIC, Label.CONFIDENTIAL_TRUSTED):
        for number in range(label.value):
            service.session(label, conversation_id=label.name).save_memory(key=f"{number}", content="text")
    with service.database.connect(roles.AUDITOR) as auditor:
        for tenant in tenants(auditor):
            list(seal_tenant(auditor, tenant, BEGINNING))
    host = service.host()
    checkpoints = {
        label: host.get_audit_checkpoint(classification=label.level, integrity=label.integrity).checkpoint
        for label in Label
    }

    written = Label.CONFIDENTIAL_TRUSTED.value
    assert [of_item(checkpoint) for checkpoint in checkpoints.values()] == list(Label)
    assert checkpoints[Label.CONFIDENTIAL_TRUSTED].event_count == 2 * written  # each session was opened, and wrote once
    assert checkpoints[Label.CONFIDENTIAL].event_count == 0
    assert [checkpoints[label].event_count for label in (Label.PUBLIC_TRUSTED, Label.RESTRICTED)] == [0, 0]
    assert host.get_audit_checkpoint(classification=CONFIDENTIAL).checkpoint == checkpoints[Label.CONFIDENTIAL]


def test_an_item_that_was_deleted_trusted_comes_back_trusted_only(host, at):
    session = at(Label.INTERNAL_TRUSTED)
    session.save_memory(key="plan", content="text")
    session.delete_memory(key="plan")
    plan = {"agent_id": "alice", "kind": 1, "name": "plan", "classification": INTERNAL}

    assert refusal(host.undelete_item, **plan) == "NOT_FOUND MEMORY_NOT_FOUND"
    host.undelete_item(**plan, integrity=TRUSTED)
    assert of_item(session.get_memory(key="plan").memory) is Label.INTERNAL_TRUSTED
    assert invalid(host.undelete_item, **plan, integrity=2) == ["integrity"]


def test_an_erasure_erases_what_is_trusted_too(host, at):
    for label in Label:
        at(label).save_memory(key="plan", content="whale-pii.")
    host.erase_items(agent_id="alice", kind=1, name="plan")

    for label in Label:
        assert refusal(at(label).get_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"
        assert keys(at(label).search_memories(query="whale")) == []
