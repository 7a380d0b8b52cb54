"""Nothing is lost: after any mixture of calls the ledgers are complete. And a loss would be found."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from muniment.v1.memory_service_pb2 import SaveMemoryResponse
from muniment_server.domain.classification import Classification
from muniment_server.domain.items import ItemKind
from muniment_server.postgres import queries
from tests.support.answers import in_future
from tests.support.clock import Clock
from tests.support.databases import Database, cloned
from tests.support.invariants import broken, broken_invariants
from tests.support.services import Caller, serving

LEVELS = tuple(Classification)

LOSSES = {
    "DELETE FROM muniment_public.revision WHERE revision = 1": "a ledger with a gap",
    "DELETE FROM muniment_public.revision": "an item without a ledger",
    "DELETE FROM muniment_public.revision WHERE revision = 2": "an item whose revision is not the count",
    "UPDATE muniment_public.item SET change_id = gen_random_uuid() WHERE delete_time IS NULL":
        "an item unlike the newest of its ledger",
    "UPDATE muniment_public.revision SET change_id = gen_random_uuid()": "an audited write without its effect",
    "UPDATE muniment_public.audit SET kind = kind % 4 + 1": "a version without its audit row",
    "UPDATE muniment_public.audit SET method = 'SomeOther'": "a version without its audit row",
    "UPDATE muniment_public.audit SET outcome = 'ETAG_STALE'": "a deletion without its audit row",
    "DELETE FROM muniment_control.audit WHERE method = 'CreateAgent'": "a version without its audit row",
    "DELETE FROM muniment_control.audit WHERE method = 'CreateSharedBlock'": "a version without its audit row",
    "UPDATE muniment_control.audit SET item_id = gen_random_uuid() WHERE item_id IS NOT NULL":
        "an audited write without its effect",
    "UPDATE muniment_control.audit SET level = 2 WHERE item_id IS NOT NULL": "a version without its audit row",
    "DELETE FROM muniment_public.item WHERE kind = 4": "an audited write without its effect",
    "UPDATE muniment_public.item SET revision = 2 WHERE kind = 4": "a passage that was written again",
    "INSERT INTO muniment_public.revision SELECT tenant, agent, item_id, revision, change_id, kind, name, content,"
    " tags, update_time, expire_time FROM muniment_public.item WHERE kind = 4": "a passage with a ledger",
    "UPDATE muniment_public.item SET change_id = gen_random_uuid() WHERE kind = 4 AND delete_time IS NULL":
        "a passage without its audit row",
    "UPDATE muniment_public.item SET expire_time = delete_time + interval '1 s' WHERE expire_time < delete_time":
        "a deletion without its audit row",
    **{f"UPDATE muniment_public.item SET content = 'forged' WHERE kind = {kind}":
        "an item unlike the newest of its ledger" for kind in (1, 2, 3)},
    **{f"UPDATE muniment_public.item SET delete_time = now() WHERE delete_time IS NULL AND kind = {kind}":
        "a deletion without its audit row" for kind in (1, 3, 4)},
    "UPDATE muniment_public.item SET delete_time = now() WHERE delete_time IS NULL AND kind = 2":
        "an event with several effects",
    **{f"DELETE FROM muniment_public.audit WHERE method = '{method}'": "a version without its audit row"
        for method in ("SaveMemory", "AddNote", "UpdateNote", "EditNotes", "UpdateBlock", "EditBlock")},
    **{f"DELETE FROM muniment_public.audit WHERE method = '{method}'": "a deletion without its audit row"
        for method in ("DeleteMemory", "DeleteNote", "EditNotes", "DeleteBlock", "DeletePassage")},
    **{f"DELETE FROM muniment_public.audit WHERE method = '{method}'": "a passage without its audit row"
        for method in ("StorePassage", "ImportPassages")},
    **{"DROP INDEX muniment_public.item_live; INSERT INTO muniment_public.item (tenant, agent, kind, name, item_id,"
       " change_id, content, event_time) SELECT tenant, agent, kind, name, gen_random_uuid(), change_id, content,"
       f" event_time FROM muniment_public.item WHERE delete_time IS NULL AND kind = {kind}":
        "two live items of one name" for kind in (1, 2, 3, 4)},
}  # fmt: skip


class Chances:
    """Calls by lot: every write there is, on few names, so that they meet."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._ids = [str(uuid.UUID(int=number, version=4)) for number in range(3)]
        self._etags = [""]
        self._step = 0

    def act(self, session: Caller, host: Caller) -> str:
        """One call; the name of its RPC and what came of it."""
        self._step += 1
        rpc, fields = self._dice.choice(
            [self._memory, self._memory, self._note, self._notes, self._block, self._block, self._passage]
        )()
        if rpc == "ImportPassages":
            outcome = session.observe_import(fields, fields | {"passage_id": ""})
        else:
            outcome = (host if rpc == "CreateSharedBlock" else session).observe(rpc, **fields)
        if rpc == "SaveMemory":
            self._etags.append(SaveMemoryResponse.FromString(outcome.response).memory.etag)
        return f"{rpc} {outcome.code.name}"

    def _memory(self) -> tuple[str, dict[str, Any]]:
        etag = self._dice.choice(self._etags) if self._dice.random() < 0.3 else ""
        key = self._dice.choice("abc")
        if self._dice.random() < 0.25:
            return "DeleteMemory", {"key": key, "etag": etag}
        return "SaveMemory", {"key": key, "content": self._text(), "etag": etag, **self._expiry()}

    def _note(self) -> tuple[str, dict[str, Any]]:
        rpc = self._dice.choice(["AddNote", "UpdateNote", "DeleteNote"])
        return rpc, {"note_id": self._id()} | ({"content": self._text()} if rpc != "DeleteNote" else {})

    def _notes(self) -> tuple[str, dict[str, Any]]:
        edits = [
            {"add": {"note_id": self._id(), "content": self._text()}},
            {"update": {"note_id": self._id(), "content": self._text()}},
            {"delete": {"note_id": self._id()}},
        ]
        return "EditNotes", {"edits": self._dice.choices(edits, k=self._dice.randrange(1, 4))}

    def _block(self) -> tuple[str, dict[str, Any]]:
        label = self._dice.choice(["personality", "plan"])
        acts: list[tuple[str, dict[str, Any]]] = [
            ("UpdateBlock", {"label": label, "content": self._text()}),
            ("EditBlock", {"label": label, "append": {"content": self._text()}}),
            ("EditBlock", {"label": label, "replace": {"old": "x", "new": "y"}}),
            ("DeleteBlock", {"label": label}),
            ("CreateSharedBlock", {"owner_agent_id": "alice", "label": f"{label}{self._step % 4}"}),
        ]
        return self._dice.choice(acts)

    def _passage(self) -> tuple[str, dict[str, Any]]:
        if self._dice.random() < 0.2:
            return "DeletePassage", {"passage_id": self._id()}
        rpc = self._dice.choice(["StorePassage", "ImportPassages"])
        return rpc, {"passage_id": self._id(), "content": self._text(), **self._expiry()}

    def _id(self) -> str:
        return self._dice.choice(self._ids)

    def _text(self) -> str:
        return self._dice.choice("xyz")

    def _expiry(self) -> dict[str, Any]:
        if self._dice.random() < 0.7:
            return {}
        return {"expire_time": in_future(hours=self._step // 100 * 5 + self._dice.choice([1, 7]))}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.proof) for seed in (1, 2))])
def test_after_any_mixture_of_calls_nothing_is_lost(service, seed):
    chances = Chances(seed)
    clock = Clock(service.database)
    sessions = [service.session(level) for level in LEVELS for _ in range(2)]
    answers: Counter[str] = Counter()
    for step in range(400):
        answers[chances.act(sessions[step * 7 % len(sessions)], service.host())] += 1
        if step % 100 == 99:
            clock.advance(hours=5)

    assert broken_invariants(service.database) == []
    assert [answer for answer in answers if answer.split()[1] in ("INTERNAL", "UNAVAILABLE", "UNAUTHENTICATED")] == []
    assert {answer.split()[0] for answer in answers if answer.endswith(" OK")} == {
        "SaveMemory", "DeleteMemory", "AddNote", "UpdateNote", "DeleteNote", "EditNotes", "UpdateBlock", "EditBlock",
        "DeleteBlock", "CreateSharedBlock", "StorePassage", "ImportPassages", "DeletePassage",
    }  # fmt: skip


def one_of_each(service):
    """Every write there is, at PUBLIC, each with an effect."""
    session = service.session(LEVELS[0])
    ids = [str(uuid.UUID(int=number, version=4)) for number in range(4)]
    for content in ("one", "two", "three"):
        session.save_memory(key="plan", content=content)
    session.save_memory(key="gone", content="text")
    session.delete_memory(key="gone")
    for note_id in ids[:2]:
        session.add_note(note_id=note_id, content=f"note {note_id}")
        session.update_note(note_id=note_id, content=f"changed {note_id}")
    session.delete_note(note_id=ids[0])
    session.edit_notes(
        edits=[
            {"add": {"note_id": ids[2], "content": "two"}},
            {"update": {"note_id": ids[2], "content": "three"}},
            {"delete": {"note_id": ids[1]}},
        ]
    )
    session.update_block(label="plan", content="text")
    session.edit_block(label="plan", append={"content": "more"})
    session.update_block(label="gone", content="text")
    session.delete_block(label="gone")
    service.host().create_shared_block(owner_agent_id="alice", label="shared", content="text")
    service.host().create_shared_block(owner_agent_id="alice", label="plan")
    session.store_passage(passage_id=ids[0], content="text", expire_time=in_future(hours=1))
    Clock(service.database).advance(hours=2)
    session.store_passage(passage_id=ids[0], content="another")
    session.import_passages(
        {"passage_id": ids[1], "content": "text"}, {"content": "text"}, {"passage_id": ids[2], "content": "text"}
    )
    session.delete_passage(passage_id=ids[1])


@pytest.fixture(scope="module")
def lived_in(postgres) -> Iterator[Database]:
    """A database in which each of those writes was done once. Losses are undone."""
    with cloned(postgres) as database:
        with serving(database) as service:
            one_of_each(service)
        yield database


def test_no_write_of_any_kind_loses_anything(lived_in):
    assert broken_invariants(lived_in) == []


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_is_found(lived_in, loss):
    with lived_in.as_admin() as admin, admin.transaction(force_rollback=True):
        admin.execute(loss.encode())
        found = broken(admin)

    assert [each for each in found if LOSSES[loss] in each] != []


@pytest.mark.parametrize("kind", ItemKind)
def test_the_doctor_finds_a_loss_of_every_kind_that_has_a_ledger(lived_in, kind):
    """By its own query, which knows nothing of the audit."""
    question = queries.load("muniment_server.admin", "inspection.sql")["broken_ledgers"]
    with lived_in.as_admin() as admin, admin.transaction(force_rollback=True):
        admin.execute("SET search_path = muniment_public")
        before = admin.execute(question.encode()).fetchone()
        admin.execute("DELETE FROM revision WHERE kind = %s", [kind])
        after = admin.execute(question.encode()).fetchone()

    assert before == (0,)
    assert (after > (0,)) == (kind is not ItemKind.PASSAGE)


def test_the_ledger_holds_every_version_the_live_one_included(service):
    session = service.session(LEVELS[1])
    for content in ("one", "two", "two", "three"):
        session.save_memory(key="plan", content=content)
    with service.database.as_owner() as owner:
        ledger = owner.execute("SELECT revision, content FROM muniment_internal.revision ORDER BY revision").fetchall()

    assert ledger == [(1, "one"), (2, "two"), (3, "three")]
