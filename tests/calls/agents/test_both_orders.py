"""Statements whose steps touch the same rows or sums: they do the same on plain Postgres and on a cluster.

On plain Postgres, the steps of a statement see the tables as they were before it. On a cluster, they see what the steps
before them have written, so one that compares a sum with a limit could count what it has just added. The statements
whose steps do touch the same are listed in tests/schema/postgres/test_steps.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_index
from muniment_server.domain.classification import Classification, Integrity, Label
from tests.calls.agents.test_quotas import quota_of
from tests.rpcs import RPCS, World, filled, observe
from tests.support.answers import INTERNAL
from tests.support.canaries import new_canary
from tests.support.invariants import broken_invariants
from tests.support.methods import POLICIES
from tests.support.services import Outcome, Service, reason_of

PASSAGE = 4
EMBED_AT_AN_ADDRESS = """
INSERT INTO remote_embedding (tenant, agent, kind, name, change_id, number, model, is_missing, prior_name)
SELECT own.tenant, own.agent, own.kind, own.name, own.change_id, own.piece, 7, FALSE, prior.name
  FROM meaning AS own
       LEFT JOIN chunk AS prior
              ON (prior.tenant, prior.agent, prior.change_id) = (own.tenant, own.agent, own.prior)
"""
CHUNKS = "SELECT name FROM chunk WHERE kind = 4"
EMBEDDINGS = "SELECT name FROM meaning WHERE kind = 4"
REMOTE_EMBEDDINGS = "SELECT name FROM remote_embedding WHERE kind = 4"
WHAT = ("items", "bytes")
COUNTED = """
SELECT coalesce(sum(storage.items), 0)::integer AS items, coalesce(sum(storage.bytes), 0)::integer AS bytes
  FROM {}.storage JOIN vault.agent USING (tenant, agent)
 WHERE agent.agent_id = %s
"""
Request = Callable[[World], dict[str, Any]]
OTHERS: list[tuple[str, Request]] = [
    ("SaveMemory", lambda w: {"key": w.new, "content": w.text}),
    ("EditBlock", lambda w: {"label": w.word, "insert": {"line": 0, "content": w.text}}),
    ("EditNotes", lambda w: {"edits": [{"update": {"note_id": w.note, "content": w.text}}]}),
]
"""Other ways to write than those in tests/rpcs.py."""


class Agent:
    """An agent with items of each kind at INTERNAL, and limits so low that the room is looked up for each write."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._host = service.host()
        _, self.world = filled(self._host, INTERNAL, word=new_canary(), desk=service.host(name="desk"))
        self.limit(max_items=1_000, max_bytes=1_000_000)
        self._session = self._host.session(self._host.open_session(agent_id=self.world.word, taint=INTERNAL))

    def limit(self, **limits: int) -> None:
        self._host.update_agent(agent_id=self.world.word, limits=limits)

    def write(self, rpc: str, request: Request) -> Outcome:
        """Call *rpc* as who may."""
        return observe(self._host if POLICIES[rpc].for_hosts else self._session, rpc, request(self.world))

    def shown(self) -> dict[tuple[Label, str], int]:
        """What the host is shown, by label."""
        storage = self._host.get_agent(agent_id=self.world.word).storage
        return {
            (Label.of(Classification(one.classification), Integrity(one.integrity)), what): getattr(one, what)
            for one in storage
            for what in WHAT
        }

    def counted(self) -> dict[tuple[Label, str], int]:
        """The items and the bytes of their texts, by label."""
        with self._service.database.as_owner() as owner:
            counts = {
                label: owner.execute(COUNTED.format(label.role).encode(), [self.world.word]).fetchone()
                for label in Label
            }
        return {(label, what): getattr(count, what) for label, count in counts.items() for what in WHAT}


def test_what_fits_exactly_is_written_and_what_does_not_changes_nothing(service: Service) -> None:
    written = set()
    for rpc, request in [*((rpc, row.request) for rpc, row in RPCS.items() if row.leaves), *OTHERS]:
        first, agent = Agent(service), Agent(service)  # the first tells how much is written, the other has that room
        before = first.counted()
        first.write(rpc, request)
        after, shown = first.counted(), agent.shown()
        for key, count in after.items():
            if count > before[key]:
                quota, exact = key[1], shown.get(key, 0) + count - before[key]
                agent.limit(**{f"max_{quota}": exact - 1})
                assert quota_of(agent.write(rpc, request)) == quota, rpc
                assert agent.counted() == before, rpc
                agent.limit(**{f"max_{quota}": exact})
                written.add(rpc)
        outcome = agent.write(rpc, request)
        assert (outcome.code, reason_of(outcome)) == (grpc.StatusCode.OK, ""), rpc
        assert agent.counted() == after, rpc

    stores = {rpc for rpc, row in RPCS.items() if row.leaves and row.leaves.effects != ("deletion",)}
    assert written == stores - {"CreateAgent"}  # which stores nothing of an agent that there is


@pytest.mark.parametrize("label", Label)
@pytest.mark.parametrize(
    "remove",
    [
        lambda session, _: session.delete_passages(thread="t"),
        lambda _, host: host.erase_items(agent_id="alice", kind=PASSAGE, tag="pii"),
    ],
    ids=["DeletePassages", "EraseItems"],
)
def test_turns_that_are_embedded_with_each_other_are_removed_together(service, label, remove):
    """One step clears the embeddings that include a removed text, another one removes them with their chunks."""
    session = service.session(label)
    for text in ("one", "two", "three"):
        session.store_passage(content=text, thread="t", tags=["pii"])
    last = session.store_passage(content="of another thread").passage
    with service.database.as_owner() as owner:
        owner.execute("SELECT set_config('search_path', %s, false)", [label.role])
        owner.execute(EMBED_AT_AN_ADDRESS)
        (included,) = owner.execute("SELECT count(prior_name) FROM remote_embedding").fetchone()
        remove(session, service.host())
        left = [owner.execute(query).fetchall() for query in (CHUNKS, EMBEDDINGS, REMOTE_EMBEDDINGS)]

    assert included == 2
    assert left == [[(last.passage_id,)]] * 3
    with connect_operator(service.database.admin) as operator:
        assert set(broken_index(operator).values()) == {0}
    assert [what for what in broken_invariants(service.database) if "miscounted" in what] == []
