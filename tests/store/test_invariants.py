"""Nothing is lost: after any mixture of calls the ledgers are complete. And a loss would be found."""

from __future__ import annotations

import random
from typing import Any

import pytest

from muniment.v1.memory_service_pb2 import SaveMemoryResponse
from muniment_server.domain.classification import Classification
from tests.rpc.answers import in_future
from tests.rpc.clock import Clock
from tests.support.invariants import broken_invariants

LEVELS = tuple(Classification)

LOSSES = {
    "DELETE FROM muniment_public.revision WHERE revision = 1": "a ledger with a gap",
    "DELETE FROM muniment_public.revision": "an item without a ledger",
    "DELETE FROM muniment_public.revision WHERE revision = 2": "an item whose revision is not the count",
    "UPDATE muniment_public.item SET content = 'forged'": "an item unlike the newest of its ledger",
    "UPDATE muniment_public.item SET change_id = gen_random_uuid() WHERE delete_time IS NULL":
        "an item unlike the newest of its ledger",
    "UPDATE muniment_public.item SET delete_time = now() WHERE delete_time IS NULL": "a deletion without its audit row",
    "DELETE FROM muniment_public.audit WHERE method = 'SaveMemory'": "a version without its audit row",
    "DELETE FROM muniment_public.audit WHERE method = 'DeleteMemory'": "a deletion without its audit row",
    "UPDATE muniment_public.revision SET change_id = gen_random_uuid()": "an audited save without its version",
    "DROP INDEX muniment_public.item_live; INSERT INTO muniment_public.item (tenant, agent, kind, name, item_id,"
    " change_id, content) SELECT tenant, agent, kind, name, gen_random_uuid(), change_id, content"
    " FROM muniment_public.item WHERE delete_time IS NULL": "two live items of one name",
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_after_any_mixture_of_calls_nothing_is_lost(service, seed):
    chance = random.Random(seed)
    clock = Clock(service.database)
    sessions = [service.session(level) for level in LEVELS for _ in range(2)]
    etags: list[str] = [""]
    for step in range(150):
        session = chance.choice(sessions)
        key = chance.choice(["a", "b", "c"])
        fields: dict[str, Any] = {"etag": chance.choice(etags)} if chance.random() < 0.3 else {}
        if chance.random() < 0.25:
            session.observe("DeleteMemory", key=key, **fields)
            continue
        if chance.random() < 0.3:
            fields["expire_time"] = in_future(hours=step + chance.choice([1, 5]))
        saved = session.observe("SaveMemory", key=key, content=chance.choice(["x", "y"]), **fields)
        etags.append(SaveMemoryResponse.FromString(saved.response).memory.etag)
        if step % 30 == 0:
            clock.advance(hours=30)

    assert broken_invariants(service.database) == []


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_is_found(service, loss):
    session = service.session(LEVELS[0])
    for content in ("one", "two", "three"):
        session.save_memory(key="plan", content=content)
    session.save_memory(key="gone", content="text")
    session.delete_memory(key="gone")
    before = broken_invariants(service.database)
    with service.database.as_admin() as admin:
        admin.execute(loss.encode())

    assert before == []
    assert [each for each in broken_invariants(service.database) if LOSSES[loss] in each] != []


def test_the_ledger_holds_every_version_the_live_one_included(service):
    session = service.session(LEVELS[1])
    for content in ("one", "two", "two", "three"):
        session.save_memory(key="plan", content=content)
    with service.database.as_owner() as owner:
        ledger = owner.execute("SELECT revision, content FROM muniment_internal.revision ORDER BY revision").fetchall()

    assert ledger == [(1, "one"), (2, "two"), (3, "three")]
