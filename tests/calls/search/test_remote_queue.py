"""A queue for a model at an address: a chunk for which the model fails keeps no other waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from muniment_server.embedder.main import EmbeddingSchedule, embed_queued_chunks
from muniment_server.embedder.queue import NothingStored
from muniment_server.embedder.remote.client import ProbeFailedError, RemoteModelError
from muniment_server.embedder.remote.queue import RemoteQueue
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.process.stop_signal import StopSignal
from muniment_server.search.embeddings import DIMENSIONS
from tests.support.answers import PUBLIC, in_future
from tests.support.clock import Clock, StoppedClock
from tests.support.concurrency import lock_rows
from tests.support.embedders import quick
from tests.support.labels import untrusted
from tests.support.searches import passages
from tests.support.services import serving

MODEL = 7


class Queue:
    """A queue of a database, with the texts that were sent."""

    def __init__(self, database, service) -> None:
        self.clock = StoppedClock()
        self.sent: list[list[str]] = []
        self.fails_for_all = False
        self.works_for_all = False
        self.retry_after = 0.0
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens when texts have been sent."""
        self.refused: Callable[[str], bool] = lambda _: False
        """Which texts the model refuses."""
        self._database = database
        self._service = service
        self.may_send: Callable[[int, int], bool] = lambda *_: True
        self._queue = RemoteQueue(lambda *agent: self.may_send(*agent), is_missing=False, clock=self.clock)

    @property
    def backoff(self):
        return self._queue.backoff

    def save(self, agent: str, *, expire_time: Any = None, **contents: str) -> None:
        for key, content in contents.items():
            self._service.session(PUBLIC, agent_id=agent).save_memory(key=key, content=content, expire_time=expire_time)
        self.embed_built_in()

    def embed_built_in(self) -> None:
        """Embed with the built-in model, which queues what it has embedded."""
        roles = RoleDatabase(self._database.conninfo, pool_sizes=SINGLE)
        schedule = EmbeddingSchedule(Databases.of_one(roles), quick, next_model=lambda _: MODEL)
        embed_queued_chunks(schedule, Disk(None), StopSignal())
        roles.close()

    def agents(self) -> list[str]:
        """Whose turn is first."""
        query = """
            SELECT agent.agent_id
              FROM vault.agent
                   JOIN muniment_public.remote_embedding AS queued USING (tenant, agent)
             GROUP BY agent.tenant, agent.agent, agent.agent_id
             ORDER BY agent.tenant, agent.agent
        """
        with self._database.as_owner() as owner:
            return [str(name) for (name,) in owner.execute(query).fetchall()]

    def waiting(self) -> list[str]:
        with self._database.as_owner() as owner:
            query = "SELECT name FROM muniment_public.remote_embedding WHERE signs IS NULL ORDER BY name"
            return [str(name) for (name,) in owner.execute(query).fetchall()]

    def vectors(self) -> list[list[int]]:
        with self._database.as_owner() as owner:
            return [vector for (vector,) in owner.execute("SELECT vector FROM muniment_public.remote_embedding")]

    def embed(self) -> int | None:
        with self._database.connect(untrusted(PUBLIC).role) as connection:
            return self._queue.embed_batch(connection, self._answer, MODEL)

    def embed_all(self) -> None:
        """Embed until there is nothing to do for now."""
        while self.embed() is not None:
            pass

    def _answer(self, texts: Sequence[str]):
        self.sent.append(list(texts))
        self.meanwhile()
        if self.retry_after:
            raise RemoteModelError("failed", retry_after=self.retry_after)
        if any(self.refused(text) for text in texts if text):
            raise RemoteModelError("failed", may_be_the_text=True)
        if any("launch" in text for text in texts) and not self.works_for_all:
            raise ProbeFailedError("failed") if self.fails_for_all else RemoteModelError("failed")
        return [quick(text) if text else [0] * DIMENSIONS for text in texts]


@pytest.fixture
def queue(database):
    with serving(database, embed=quick) as service:
        yield Queue(database, service)


def test_a_chunk_that_fails_alone_is_left_out_for_a_while_and_then_for_longer(queue):
    queue.save("alice", **{f"key{number:02}": "launch" if number == 5 else "a cat" for number in range(40)})
    attempts = []
    for seconds in (0, 0, 11, 19, 2):
        queue.clock.seconds += seconds
        queue.embed_all()
        attempts.append(sum("key05: launch" in texts for texts in queue.sent))

    first = attempts[0]
    assert queue.waiting() == ["key05"]
    assert first <= 11  # halved from 16, twice if there is a success in between
    assert [count - first for count in attempts] == [0, 0, 1, 1, 2]


def test_a_chunk_that_fails_when_an_outage_ends_waits_for_a_few_seconds_only(queue):
    """The chunk was not answered any more, but the sentence was; or neither was, for hours."""
    queue.save("alice", key="launch")
    assert queue.embed() == 0
    queue.fails_for_all = True
    for _ in range(5):
        queue.clock.seconds += 11
        with pytest.raises(RemoteModelError):
            queue.embed_all()
    queue.works_for_all = True
    queue.clock.seconds += 11
    queue.embed_all()

    assert queue.waiting() == []


def test_a_chunk_that_is_too_long_is_embedded_by_its_end_and_alone(queue):
    """A turn stands there after the one before it."""
    queue.refused = lambda text: len(text) > 40
    queue.save("alice", key="x" * 100 + " the cat", other="a ship")
    queue.embed_all()
    long = "key: " + "x" * 100 + " the cat"

    assert queue.waiting() == []
    assert quick(long[-28:]) in queue.vectors()
    assert quick("other: a ship") in queue.vectors()
    assert queue.sent[1:-1] == [[long], [long], [long], [long[-56:]], [long[-28:]]]


def test_a_failure_that_passes_neither_shortens_a_chunk_nor_leaves_it_without_an_embedding(queue):
    """One of two programs behind an address may be broken, and the other one answer for the sentence."""
    queue.save("alice", cat="a cat", ship="a ship")
    refusals = iter([True] * 3)
    queue.refused = lambda _: next(refusals, False)
    queue.embed_all()

    assert sorted(queue.vectors()) == sorted([list(quick("cat: a cat")), list(quick("ship: a ship"))])


def test_a_chunk_that_is_always_refused_gets_zeros_and_keeps_no_other_waiting(queue, caplog):
    queue.refused = lambda text: "c" in text
    queue.save("alice", a="ship", k="cccccccccccccccccccccccccccccccc", z="ship")
    queue.embed_all()

    assert queue.waiting() == []
    assert sorted(any(vector) for vector in queue.vectors()) == [False, True, True]
    assert len(queue.sent) < 12
    assert "skipping a chunk" in caplog.text
    assert "ccc" not in caplog.text


def test_a_chunk_at_which_the_server_crashes_stops_no_other(queue):
    """While the server restarts, it does not answer the probe either, so the chunk is not blamed."""
    for agent in ("alice", "bob", "carol"):
        queue.save(agent, **{f"{agent}{number}": "launch" if number == 0 else "a cat" for number in range(4)})
    queue.fails_for_all = True
    failed = 0
    while len(queue.waiting()) > 3:
        try:
            queue.embed()
        except RemoteModelError:
            failed += 1
        assert failed < 20

    assert queue.waiting() == ["alice0", "bob0", "carol0"]


def test_a_server_that_wants_to_be_left_alone_for_a_while_gets_the_same_batch_again(queue):
    queue.save("alice", **{f"key{number}": "a cat" for number in range(4)})
    queue.retry_after = 5.0
    for _ in range(2):
        with pytest.raises(RemoteModelError):
            queue.embed()
    queue.retry_after = 0.0
    queue.embed()

    assert queue.waiting() == []
    assert [len(texts) for texts in queue.sent] == [4, 4, 4]


def test_pauses_grow_until_something_is_stored(queue):
    queue.save("alice", key="launch")
    queue.fails_for_all = True
    pauses = []
    for _ in range(3):
        with pytest.raises(RemoteModelError):
            queue.embed()
        pauses.append(queue.backoff.begin())
        queue.embed_all()
        queue.clock.seconds += 61
    queue.save("alice", key="a cat")
    queue.embed_all()

    assert pauses == [1, 2, 4]
    assert queue.backoff.begin() == 1


def test_chunks_that_are_locked_stop_no_other_agent(queue):
    for agent in ("alice", "bob"):
        queue.save(agent, **{f"{agent}{number:02}": "a cat" for number in range(16)})
    first, other = queue.agents()
    with queue._database.as_owner() as locking, locking.transaction():
        lock_rows(locking, "muniment_public.remote_embedding", "starts_with(name, %s)", first)
        with pytest.raises(NothingStored):
            queue.embed()
        queue.embed()

        assert not [name for name in queue.waiting() if name.startswith(other)]
    queue.embed_all()

    assert queue.waiting() == []


def test_of_what_has_expired_no_text_is_given_and_no_agent_waits_for_it(queue, database):
    """More of it than a batch, before and after a chunk that is sent."""
    for agent in ("alice", "bob"):
        queue.save(agent, **{f"{agent}{number:02}": "a cat" for number in range(40)}, expire_time=in_future(hours=1))
        queue.save(agent, **{f"{agent}20x": "a dog"})
    Clock(database).advance(hours=2)
    queue.embed_all()

    assert sorted(text for texts in queue.sent for text in texts if text) == ["alice20x: a dog", "bob20x: a dog"]
    assert queue.waiting() == []


def test_chunks_that_are_not_sent_say_nothing_of_the_model(queue, database):
    """A model that has failed for many texts would get as many again, and sooner."""
    many = [f"{number:02}" for number in range(16)]
    queue.save("alice", **{f"a{number}": "launch" for number in many}, expire_time=in_future(hours=1))
    queue.save("alice", **{f"z{number}": "a cat" for number in many})
    queue.fails_for_all = True
    with pytest.raises(RemoteModelError):
        queue.embed()
    pauses = [queue.backoff.begin(), queue.backoff.begin()]
    Clock(database).advance(hours=2)
    while queue.waiting()[0] < "z":
        queue.embed()
    pauses.append(queue.backoff.begin())
    queue.embed()

    assert pauses == [1, 2, 4]
    assert len(queue.sent[-1]) == len(many) // 2


def test_what_expires_while_it_is_left_out_waits_no_longer(queue, database):
    """Otherwise its agent would be searched with the built-in model until its next turn, up to a day later."""
    queue.save("alice", key="launch", expire_time=in_future(hours=1))
    for _ in range(2):
        queue.embed_all()
    before = queue.waiting()
    queue.sent.clear()
    Clock(database).advance(hours=2)
    queue.embed_all()

    assert (before, queue.waiting(), queue.sent) == (["key"], [], [[""]])


def test_what_gets_another_expire_time_is_embedded_again(queue, database):
    """It has new chunks, so that the zeros of the old ones stay behind."""
    queue.save("alice", key="a cat", expire_time=in_future(hours=1))
    Clock(database).advance(hours=2)
    queue.embed_all()
    queue.save("alice", key="a cat", expire_time=in_future(hours=5))
    queue.embed_all()

    assert queue.sent == [[""], ["key: a cat"]]


def number_of(database, agent: str) -> int:
    with database.as_owner() as owner:
        (number,) = owner.execute("SELECT agent FROM vault.agent WHERE agent_id = %s", [agent]).fetchone()
        return int(number)


@pytest.mark.parametrize("kept", ["alice", "bob"])
def test_chunks_of_an_agent_that_may_not_be_sent_stay_queued_and_keep_no_other_waiting(queue, database, kept):
    for agent in ("alice", "bob"):
        queue.save(agent, **{f"{agent}{number:02}": "a cat" for number in range(20)})
    number = number_of(database, kept)
    queue.may_send = lambda _, agent: agent != number
    queue.embed_all()

    assert {key[:-2] for key in queue.waiting()} == {kept}
    assert len(queue.waiting()) == 20
    assert not any(text.startswith(kept) for texts in queue.sent for text in texts)


def test_a_refused_text_of_an_agent_that_is_deleted_meanwhile_is_not_sent_again(queue):
    queue.save("alice", key="a cat")

    def delete() -> None:
        queue.may_send = lambda *_: False

    queue.meanwhile, queue.refused = delete, lambda _: True
    queue.embed_all()

    assert queue.sent == [["key: a cat"]]


@pytest.mark.parametrize(
    ("what", "waiting"),
    [
        ("nothing", ["first", "first\nsecond", "key: a cat"]),
        ("a memory is deleted", ["first", "first\nsecond"]),
        ("a memory expires", ["first", "first\nsecond"]),
        ("the turn before is deleted", ["key: a cat", "second"]),
        ("all is embedded", []),
    ],
)
def test_a_refused_text_is_sent_again_unless_it_was_deleted_expired_or_embedded_meanwhile(
    queue, database, what, waiting
):
    session = queue._service.session(PUBLIC, agent_id="alice")
    first, _ = passages(session, "t", "first", "second")
    queue.save("alice", key="a cat", expire_time=in_future(hours=1))
    end = {
        "nothing": lambda: None,
        "a memory is deleted": lambda: session.delete_memory(key="key"),
        "a memory expires": lambda: Clock(database).advance(minutes=61),
        "the turn before is deleted": lambda: session.delete_passage(passage_id=first),
        "all is embedded": lambda: execute(
            database, "UPDATE muniment_public.remote_embedding SET signs = B'1', vector = '{1}'"
        ),
    }
    queue.meanwhile, queue.refused = end[what], lambda _: True
    queue.embed()
    queue.meanwhile, queue.refused = lambda: None, lambda _: False
    queue.embed_all()

    assert sorted(queue.sent[0]) == ["first", "first\nsecond", "key: a cat"]
    assert sorted(text for texts in queue.sent[1:] for text in texts if text) == waiting


def test_a_vector_that_another_server_stored_meanwhile_stays(queue, database):
    """Least of all is it replaced by the zeros of a text that no longer waits."""
    queue.save("alice", key="a cat")
    queue.meanwhile = lambda: execute(
        database, "UPDATE muniment_public.remote_embedding SET signs = B'1', vector = '{1}'"
    )
    with pytest.raises(NothingStored):
        queue.embed()

    assert queue.vectors() == [[1]]


def execute(database, statement: str) -> None:
    with database.as_owner() as owner:
        owner.execute(statement.encode())
