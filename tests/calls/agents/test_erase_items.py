"""EraseItems: the right to be forgotten, up to the ceiling of the host's key, and no further."""

from __future__ import annotations

import threading
import unicodedata
import uuid

import psycopg
import pytest

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_index, broken_ledgers
from muniment_server.agents import erasing
from muniment_server.domain.classification import Label
from muniment_server.monitor.host_scope import HostScope
from muniment_server.postgres import roles
from muniment_server.transport.admission.shares import RUNNING
from tests.calls.agents.test_both_orders import EMBED_AT_AN_ADDRESS
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, RESTRICTED, invalid, keys, refusal
from tests.support.commands import wait_until
from tests.support.concurrency import in_background, lock_rows, wait_until_blocked
from tests.support.invariants import broken_invariants
from tests.support.labels import untrusted
from tests.support.services import Service, failure_of, shares_of

_MEMORY, _NOTE, _BLOCK, _PASSAGE = 1, 2, 3, 4


def at(service: Service, level):
    return service.session(level, conversation_id=f"c{level}")


def versions(service: Service, level, name: str = "plan") -> list[int]:
    """The revisions of a name that the ledger of a level still has."""
    with service.database.as_owner() as owner:
        query = f"SELECT revision FROM muniment_{level.name.lower()}.revision WHERE name = %s ORDER BY update_time"
        return [revision for (revision,) in owner.execute(query.encode(), [name]).fetchall()]


def rows(service: Service, level, table: str, name: str = "plan") -> int:
    """How many rows of a name a table of a level has."""
    with service.database.as_owner() as owner:
        query = f"SELECT count(*) FROM muniment_{level.name.lower()}.{table} WHERE name = %s"
        [(count,)] = owner.execute(query.encode(), [name]).fetchall()
        return int(count)


def item_of(service: Service, level, name: str = "plan") -> str:
    with service.database.as_owner() as owner:
        query = f"SELECT item_id FROM muniment_{level.name.lower()}.item WHERE name = %s"
        [(item_id,)] = owner.execute(query.encode(), [name]).fetchall()
        return str(item_id)


def largest_batch(service: Service, monkeypatch, **target) -> int:
    """Erase, and return how many items were erased together at most."""
    sizes: list[int] = []
    original = HostScope._run

    def record(scope, name, parameters, row=None):
        if name == "log_erased":
            sizes.append(len(parameters["item_ids"]))
        return original(scope, name, parameters, row)

    monkeypatch.setattr(HostScope, "_run", record)
    service.host().erase_items(agent_id="alice", kind=_MEMORY, **target)
    return max(sizes)


def erasures(service: Service) -> int:
    with service.database.as_owner() as owner:
        [(count,)] = owner.execute("SELECT count(*) FROM vault.erasure").fetchall()
        return int(count)


def broken(service: Service) -> tuple[int, int, int]:
    """How much is broken: ledgers and index, as the doctor counts it, and the counts of what is stored."""
    with connect_operator(service.database.admin) as operator:
        ledgers, index = broken_ledgers(operator), broken_index(operator)
    miscounted = [what for what in broken_invariants(service.database) if "miscounted" in what]
    return sum(ledgers.values()), sum(index.values()), len(miscounted)


def one_agent_at_every_label(service) -> tuple[int, int]:
    """The tenant and the number of an agent with items at every label."""
    for label in Label:
        at(service, label).save_memory(key="plan", content="text")
    at(service, PUBLIC).add_note(content="text")
    with service.database.as_owner() as owner:
        [(tenant, agent)] = owner.execute("SELECT tenant, agent FROM vault.agent").fetchall()
    return tenant, agent


def test_a_name_is_erased_with_all_its_revisions_at_every_label(service):
    for label in Label:
        session = at(service, label)
        session.save_memory(key="plan", content="whale one")
        session.delete_memory(key="plan")
        session.save_memory(key="plan", content="whale two")
        session.save_memory(key="plan", content="whale three")
        session.save_memory(key="other", content="whale")
    service.host().erase_items(agent_id="alice", kind=_MEMORY, name="plan")

    top = at(service, RESTRICTED)
    assert keys(top.list_memories()) == ["other"]
    assert [result.memory.key for result in top.search_memories(query="whale").results] == ["other"]
    tables = ("item", "revision", "chunk", "meaning")
    assert [rows(service, label, table) for label in Label for table in tables] == [0] * 32
    assert broken(service) == (0, 0, 0)


@pytest.mark.parametrize("ceiling", [PUBLIC, CONFIDENTIAL])
def test_nothing_above_the_ceiling_of_the_key_is_touched_and_the_answer_says_nothing_of_it(service, ceiling):
    for label in Label:
        at(service, label).save_memory(key="plan", content="text", tags=["pii"])
    service.lower("alice", ceiling)
    host = service.host(ceiling=ceiling)
    answers = [
        host.observe("EraseItems", agent_id="alice", kind=_MEMORY, **target)
        for target in ({"tag": "pii"}, {"name": "plan"}, {"name": "plan"}, {"name": "never"})
    ]

    above = [label for label in Label if label.level > ceiling]
    assert [versions(service, label) for label in Label] == [[1] if label in above else [] for label in Label]
    assert [rows(service, label, "chunk") for label in Label] == [int(label in above) for label in Label]
    assert [answer == answers[0] for answer in answers] == [True] * 4
    assert (answers[0].code.name, answers[0].response) == ("OK", b"")


def test_a_low_key_runs_the_same_statements_whether_or_not_there_is_something_above(service, monkeypatch):
    """So its time says nothing of that."""
    run: list[str] = []
    original = HostScope._run

    def record(scope, name, parameters, row=None):
        run.append(f"{name} {parameters.get('schema', '')}")
        return original(scope, name, parameters, row)

    monkeypatch.setattr(HostScope, "_run", record)
    runs = []
    for _ in range(2):
        at(service, PUBLIC).save_memory(key="plan", content="text")
        service.lower("alice", INTERNAL)
        run.clear()
        service.host(ceiling=INTERNAL).erase_items(agent_id="alice", kind=_MEMORY, name="plan")
        runs.append(list(run))
        service.lower("alice", RESTRICTED)
        at(service, RESTRICTED).save_memory(key="plan", content="text")

    assert runs[0] == runs[1]
    assert [one for one in runs[1] if "confidential" in one or "restricted" in one] == []


def test_a_tag_of_any_revision_counts(service):
    session = at(service, INTERNAL)
    session.save_memory(key="plan", content="one", tags=["pii"])
    session.save_memory(key="plan", content="two", tags=["other"])
    session.save_memory(key="untagged", content="text", tags=["other"])
    at(service, PUBLIC).save_memory(key="plan", content="text")
    service.host().erase_items(agent_id="alice", kind=_MEMORY, tag=" pii ")

    assert keys(at(service, INTERNAL).list_memories()) == ["plan", "untagged"]
    assert [versions(service, level) for level in (PUBLIC, INTERNAL)] == [[1], []]


def test_notes_blocks_and_passages_are_erased_by_their_names_and_passages_by_tag(service):
    session = at(service, INTERNAL)
    note = session.add_note(content="whale").note
    block = session.update_block(label="mood", content="whale").block
    first = session.store_passage(content="whale", thread="t", tags=["pii"]).passage
    second = session.store_passage(content="whale again", thread="t").passage
    host = service.host()
    host.erase_items(agent_id="alice", kind=_NOTE, name=note.note_id.upper())
    host.erase_items(agent_id="alice", kind=_BLOCK, name=block.label)
    host.erase_items(agent_id="alice", kind=_PASSAGE, tag="pii")

    assert list(session.list_notes().notes) == []
    assert refusal(session.get_block, label="mood") == "NOT_FOUND BLOCK_NOT_FOUND"
    assert refusal(session.get_passage, passage_id=first.passage_id) == "NOT_FOUND PASSAGE_NOT_FOUND"
    assert [found.passage.passage_id for found in session.search_passages(query="whale").results] == [second.passage_id]
    with service.database.as_owner() as owner:
        assert owner.execute("SELECT prior FROM muniment_internal.meaning").fetchall() == [(None,)]
    assert broken(service) == (0, 0, 0)


def test_another_agent_another_kind_and_another_tenant_keep_theirs(service):
    at(service, PUBLIC).add_note(content="text")
    at(service, PUBLIC).update_block(label="plan", content="text")
    bob = service.session(PUBLIC, agent_id="bob")
    bob.save_memory(key="plan", content="text")
    host = service.host()
    host.erase_items(agent_id="alice", kind=_MEMORY, name="plan")

    assert keys(bob.list_memories()) == ["plan"]
    assert at(service, PUBLIC).get_block(label="plan").block.content == "text"
    stranger = service.host(tenant="globex")
    assert refusal(stranger.erase_items, agent_id="bob", kind=_MEMORY, name="plan") == "NOT_FOUND AGENT_NOT_FOUND"


def test_a_revision_is_erased_and_the_others_keep_their_numbers(service):
    session = at(service, INTERNAL)
    for content in ("one", "two", "three"):
        session.save_memory(key="plan", content=content)
    item = item_of(service, INTERNAL)
    low, host = service.host(ceiling=PUBLIC), service.host()
    service.lower("alice", PUBLIC)
    low.erase_items(agent_id="alice", kind=_MEMORY, item_id=item, revision=2)
    service.lower("alice", RESTRICTED)
    assert versions(service, INTERNAL) == [1, 2, 3]

    for _ in range(2):
        host.erase_items(agent_id="alice", kind=_MEMORY, item_id=item, revision=2)
        assert versions(service, INTERNAL) == [1, 3]
        assert session.get_memory(key="plan").memory.content == "three"
        assert broken(service) == (0, 0, 0)


def test_with_its_newest_revision_an_item_is_deleted(service):
    session = at(service, INTERNAL)
    for content in ("one", "two"):
        session.save_memory(key="plan", content=content)
    service.host().erase_items(agent_id="alice", kind=_MEMORY, item_id=item_of(service, INTERNAL), revision=2)

    assert refusal(session.get_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"
    assert versions(service, INTERNAL) == [1]
    assert broken(service) == (0, 0, 0)
    assert session.save_memory(key="plan", content="new").memory.content == "new"
    assert broken(service) == (0, 0, 0)


def test_the_doctor_still_notices_a_gap_that_no_audit_row_accounts_for(service):
    session = at(service, INTERNAL)
    for content in ("one", "two", "three", "four"):
        session.save_memory(key="plan", content=content)
    service.host().erase_items(agent_id="alice", kind=_MEMORY, item_id=item_of(service, INTERNAL), revision=2)
    with service.database.as_owner() as owner:
        owner.execute("DELETE FROM muniment_internal.revision WHERE revision = 3")

    assert broken(service) == (1, 0, 1)


def test_audit_rows_say_which_items_at_their_levels_and_who_erased_them(service):
    for level in (PUBLIC, RESTRICTED):
        at(service, level).save_memory(key="plan", content="text")
    items = {level: item_of(service, level) for level in (PUBLIC, RESTRICTED)}
    service.lower("alice", INTERNAL)
    service.host(ceiling=CONFIDENTIAL).erase_items(agent_id="alice", kind=_MEMORY, name="plan")
    service.lower("alice", RESTRICTED)
    service.host().erase_items(agent_id="alice", kind=_MEMORY, name="plan")

    events = [event for event in service.host().list_audit_events().audit_events if event.method == "EraseItems"]
    found = [(event.classification, event.item_id) for event in events]
    assert sorted(found) == sorted(
        [(INTERNAL, ""), (PUBLIC, items[PUBLIC]), (RESTRICTED, ""), (RESTRICTED, items[RESTRICTED])]
    )
    assert {(event.agent_id, event.kind, event.outcome, event.reason) for event in events} == {("alice", 1, "OK", "")}
    assert len({event.host_key_id for event in events}) == 2
    seen_below = service.host(ceiling=INTERNAL).list_audit_events().audit_events
    assert [event.item_id for event in seen_below if event.method == "EraseItems"] == []


def test_without_its_audit_row_nothing_is_erased(service):
    at(service, PUBLIC).save_memory(key="plan", content="text")
    with service.database.as_owner() as owner:
        owner.execute("ALTER TABLE muniment_control.audit ADD CHECK (item_id IS NULL) NOT VALID")

    assert refusal(service.host().erase_items, agent_id="alice", kind=_MEMORY, name="plan").startswith("INTERNAL")
    assert versions(service, PUBLIC) == [1]


def test_many_items_are_erased_in_batches(service, monkeypatch):
    monkeypatch.setattr(erasing, "_BATCH_ITEMS", 3)
    session = at(service, PUBLIC)
    for number in range(10):
        session.save_memory(key=f"k{number}", content="text", tags=["pii"])
    session.save_memory(key="plan", content="text")
    service.host().erase_items(agent_id="alice", kind=_MEMORY, tag="pii")

    assert keys(session.list_memories()) == ["plan"]
    assert broken(service) == (0, 0, 0)


def test_large_items_are_erased_in_smaller_batches(service, monkeypatch):
    """A writer waits for the batch that has its item, and the raise of its taint for the writer."""
    monkeypatch.setattr(erasing, "_BATCH_BYTES", 100)
    session = at(service, PUBLIC)
    for number in range(8):
        session.save_memory(key=f"k{number}", content="x" * 50, tags=["pii"])
    assert largest_batch(service, monkeypatch, tag="pii") == 2
    assert keys(session.list_memories()) == []


def test_many_revisions_of_one_item_are_erased_in_batches(service, monkeypatch):
    monkeypatch.setattr(erasing, "_BATCH_REVISIONS", 3)
    session = at(service, PUBLIC)
    for number in range(10):
        session.save_memory(key="plan", content=f"text {number}")
    erased: list[int] = []
    original = erasing._Level._erase_revisions

    def record(self, scope, items):
        erased.append(original(self, scope, items))
        return erased[-1]

    monkeypatch.setattr(erasing._Level, "_erase_revisions", record)
    service.host().erase_items(agent_id="alice", kind=_MEMORY, name="plan")

    assert erased == [3, 3, 3, 1]
    assert (rows(service, PUBLIC, "item"), versions(service, PUBLIC)) == (0, [])
    assert broken(service) == (0, 0, 0)


def test_nothing_is_counted_if_nothing_is_erased(service):
    at(service, PUBLIC).save_memory(key="plan", content="text")
    with service.database.as_owner() as owner:
        query = b"SELECT count(*) FROM muniment_public.storage"
        before = owner.execute(query).fetchone()
        service.host().erase_items(agent_id="alice", kind=_MEMORY, item_id=str(uuid.uuid4()), revision=1)

        assert owner.execute(query).fetchone() == before


def test_an_item_that_a_writer_has_locked_is_erased_after_the_write(service):
    session = at(service, PUBLIC)
    for key in ("plan", "other"):
        session.save_memory(key=key, content="text", tags=["pii"])
    erase = threading.Thread(
        target=lambda: service.host().erase_items(agent_id="alice", kind=_MEMORY, tag="pii"), daemon=True
    )
    with service.database.connect(untrusted(PUBLIC).role) as writer, writer.transaction():
        writer.execute("UPDATE item SET content = 'new', revision = 2 WHERE name = 'plan'")
        writer.execute(
            "INSERT INTO revision SELECT tenant, agent, item_id, 2, change_id, kind, name, 'new', '{}', update_time"
            "  FROM item WHERE name = 'plan'"
        )
        erase.start()
        wait_until(lambda: keys(at(service, PUBLIC).list_memories()) == ["plan"], "the other one is erased")
    erase.join(10)

    assert not erase.is_alive()
    assert (rows(service, PUBLIC, "item"), versions(service, PUBLIC)) == (0, [])


def test_embeddings_are_locked_in_the_order_in_which_a_deletion_locks_them(service):
    """Those of the built-in model first. Otherwise an erasure and a deletion could deadlock."""
    session = service.session(PUBLIC)
    first, _ = (session.store_passage(content=text, thread="t").passage.passage_id for text in ("one", "two"))
    with service.database.as_owner() as owner:
        owner.execute("SET search_path = muniment_public")
        owner.execute(EMBED_AT_AN_ADDRESS)
        with owner.transaction():
            lock_rows(owner, "muniment_public.meaning", "prior IS NOT NULL")
            thread, outcomes = in_background(
                service.host().observe, rpc="EraseItems", agent_id="alice", kind=_PASSAGE, name=first
            )
            wait_until_blocked(service)

            assert lock_rows(owner, "remote_embedding", "prior_name IS NOT NULL", strength="UPDATE SKIP LOCKED") == 1
    thread.join(20)

    assert [outcome.code.name for outcome in outcomes] == ["OK"]


def test_an_item_that_is_being_renamed_is_locked_before_it_is_erased(service, monkeypatch):
    """A rename moves it to another row, which the statement that waited for the first one does not see."""
    at(service, PUBLIC).save_memory(key="plan", content="text", tags=["pii"])
    locked: list[bool] = []
    erase_unlocked = erasing._Level._erase_unlocked

    def erase_locked(self, scope, items):
        if items:
            with service.database.as_owner() as other:
                locked.append(not lock_rows(other, "muniment_public.item", "kind = 1", strength="UPDATE SKIP LOCKED"))
        return erase_unlocked(self, scope, items)

    monkeypatch.setattr(erasing._Level, "_erase_unlocked", erase_locked)
    erase = threading.Thread(
        target=lambda: service.host().erase_items(agent_id="alice", kind=_MEMORY, tag="pii"), daemon=True
    )
    with service.database.as_owner() as writer, writer.transaction():
        writer.execute(
            "WITH moved AS (DELETE FROM muniment_public.item WHERE kind = 1 RETURNING *)"
            " INSERT INTO muniment_public.item SELECT * FROM moved"
        )
        erase.start()
        wait_until_blocked(service)
    erase.join(10)

    assert not erase.is_alive()
    assert locked == [True]
    assert (rows(service, PUBLIC, "item"), versions(service, PUBLIC)) == (0, [])


def test_the_eraser_sees_a_live_agent_by_an_erasure_only_and_only_up_to_its_ceiling(service):
    """The database's own guard, whatever the server asks for."""
    tenant, agent = one_agent_at_every_label(service)
    views = [f"{level}.erasing_{name}" for level in roles.LABELS for name in ("item", "revision", "chunk")]

    def seen() -> list[int]:
        with service.database.connect(roles.ERASER) as eraser:
            return [eraser.execute(f"SELECT count(*) FROM {view}".encode()).fetchone()[0] for view in views]

    assert seen() == [0] * 24
    with service.database.as_owner() as owner:
        owner.execute("INSERT INTO vault.erasure VALUES (%s, %s, %s, 1, 2)", [tenant, agent, uuid.uuid4()])
    assert seen() == [1] * 12 + [0] * 12


@pytest.mark.plain_postgres(
    "ADR 14: on a cluster, the eraser changes tables, since Citus changes no rows through views"
)
def test_the_eraser_changes_what_its_views_show_and_nothing_else(service):
    tenant, agent = one_agent_at_every_label(service)

    def refused() -> list[str]:
        found = []
        with service.database.connect(roles.ERASER) as eraser:
            for level in roles.LABELS:
                stat = f"INSERT INTO {level}.erasing_stat VALUES (%s, %s, 1, 'english', %s, -1, -1, -1)"
                try:
                    eraser.execute(stat.encode(), [tenant, agent, uuid.uuid4()])
                except psycopg.errors.WithCheckOptionViolation:
                    found.append(level)
        return found

    assert refused() == list(roles.LABELS)
    with service.database.as_owner() as owner:
        owner.execute("INSERT INTO vault.erasure VALUES (%s, %s, %s, 1, 2)", [tenant, agent, uuid.uuid4()])
    assert refused() == list(roles.LABELS[4:])
    with service.database.connect(roles.ERASER) as eraser:
        for statement in (
            "SELECT FROM vault.erasure",
            "INSERT INTO vault.erasure SELECT",
            "SELECT vector FROM muniment_public.erasing_embedding",
            "DELETE FROM muniment_public.item",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                eraser.execute(statement.encode())


def test_an_erasure_ends_with_its_call(service):
    at(service, PUBLIC).save_memory(key="plan", content="text")
    service.host().erase_items(agent_id="alice", kind=_MEMORY, name="plan")

    assert erasures(service) == 0


def test_an_erasure_ends_with_a_call_that_is_canceled(service):
    at(service, PUBLIC).save_memory(key="plan", content="text")
    with service.database.connect(untrusted(PUBLIC).role) as writer, writer.transaction():
        lock_rows(writer, "item", "name = 'plan'")
        canceled = failure_of(service.host().erase_items, agent_id="alice", kind=_MEMORY, name="plan", timeout=1)

        assert canceled.code.name == "DEADLINE_EXCEEDED"
        wait_until(lambda: erasures(service) == 0, "the erasure has ended")
    assert versions(service, PUBLIC) == [1]


@pytest.mark.parametrize("cut_off", ["freeze_time", "revoke_time", "expire_time"])
def test_a_host_key_that_is_cut_off_erases_no_further_batch(service, cut_off):
    """Whoever freezes a tenant stops what is under way."""
    for level in (PUBLIC, INTERNAL):
        at(service, level).save_memory(key="plan", content="text")
    host, refusals = service.host(), []
    erase = threading.Thread(
        target=lambda: refusals.append(refusal(host.erase_items, agent_id="alice", kind=_MEMORY, name="plan")),
        daemon=True,
    )
    with service.database.connect(untrusted(PUBLIC).role) as writer, writer.transaction():
        lock_rows(writer, "item", "name = 'plan'")
        erase.start()
        wait_until_blocked(service)
        with service.database.as_owner() as owner:
            owner.execute(f"UPDATE vault.host_key SET {cut_off} = vault.clock()".encode())
    erase.join(10)

    assert refusals == ["UNAUTHENTICATED CREDENTIAL_INVALID"]
    assert [versions(service, level) for level in (PUBLIC, INTERNAL)] == [[], [1]]
    assert erasures(service) == 0


def test_one_tenant_erases_while_another_has_much_to_erase(service, monkeypatch):
    """An erasure has its turn and its connection only for a batch."""
    monkeypatch.setattr(erasing, "_BATCH_ITEMS", 1)
    session = at(service, PUBLIC)
    for number in range(8):
        session.save_memory(key=f"k{number}", content="text", tags=["pii"])
    service.session(PUBLIC, tenant="globex", agent_id="bob").save_memory(key="plan", content="text")
    turns: list[int] = []

    def erase(tenant: str, **fields) -> None:
        service.host(tenant).erase_items(kind=_MEMORY, **fields)

    other = threading.Thread(target=erase, args=("globex",), kwargs={"agent_id": "bob", "name": "plan"}, daemon=True)
    original = HostScope._run

    def beside_another(scope, name, parameters, row=None):
        if name == "log_erased":
            turns.append(scope.tenant)
            if other.ident is None:
                other.start()
            if scope.tenant == turns[0]:  # each of its steps takes a turn
                waiting = shares_of(service, "erasing")._root.waiting
                wait_until(lambda: waiting[RUNNING] == 1 or not other.is_alive(), "the other waits")
        return original(scope, name, parameters, row)

    monkeypatch.setattr(HostScope, "_run", beside_another)
    erase("acme", agent_id="alice", tag="pii")
    other.join(10)

    acme, globex = dict.fromkeys(turns)
    assert turns.count(acme) == 8
    assert turns.index(globex) < 8


def test_names_and_tags_are_as_long_as_those_that_sessions_may_give_and_spelled_alike(service):
    """A name in decomposed letters is longer than what is stored."""
    key, tag = unicodedata.normalize("NFD", "각" * 200), unicodedata.normalize("NFD", "각" * 60)
    session, host = at(service, PUBLIC), service.host()
    for target in ({"name": key}, {"tag": tag}):
        session.save_memory(key=key, content="text", tags=[tag])
        host.erase_items(agent_id="alice", kind=_MEMORY, **target)
        assert keys(session.list_memories()) == []


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ({}, "name"),
        ({"name": "plan", "tag": "pii"}, "name"),
        ({"name": " plan"}, "name"),
        ({"item_id": str(uuid.uuid4())}, "revision"),
        ({"name": "plan", "revision": 1}, "revision"),
        ({"tag": " "}, "tag"),
        ({"kind": _NOTE, "name": "plan"}, "name"),
        ({"kind": 0, "name": "plan"}, "kind"),
    ],
)
def test_a_target_is_exactly_one_name_tag_or_revision(host, target, field):
    assert invalid(host.erase_items, **{"agent_id": "alice", "kind": _MEMORY, **target}) == [field]
