"""A model at an address beside the built-in one, through the service: what is sent, and which model finds what.

The built-in model takes "hound" for "dog", the one at the address "feline" for "cat": what is found shows who looked.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import psycopg
import pytest

from muniment_server.admin.checks import _check_ledgers
from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import remote_chunks
from muniment_server.domain.classification import Classification, Label
from muniment_server.embedder import queue as embedding_queue
from muniment_server.embedder import socket as embedder_socket
from muniment_server.embedder.main import EmbeddingSchedule, embed_queued_chunks
from muniment_server.embedder.queue import (
    FIRST,
    START,
    embed_batch,
    queue_missing,
    read_remote_batch,
    store_remote_batch,
)
from muniment_server.embedder.remote import embedding_service as remote_embedding
from muniment_server.embedder.remote import model as remote_model
from muniment_server.embedder.remote.circuit_breaker import CircuitBreaker
from muniment_server.embedder.remote.client import RemoteModelError
from muniment_server.embedder.remote.configuration import RemoteConfig
from muniment_server.embedder.remote.embedding_service import RemoteEmbedding
from muniment_server.embedder.remote.queue import RemoteQueue
from muniment_server.embedder.remote.reindexing import embed_stored
from muniment_server.embedder.socket import remote_query_embedder
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.process.backoff import Backoff
from muniment_server.process.stop_signal import StopSignal
from muniment_server.search.embeddings import model_number
from muniment_server.search.reindex import _QUERIES as REINDEXING
from muniment_server.search.reindex import reindex
from muniment_server.telemetry.metrics import REGISTRY
from tests.proof.noninterference.mutants.damage import as_restricted
from tests.proof.noninterference.mutants.scheme import HOSTS, ITEMS, Mutant, Patch, applied, edit, setting
from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED, in_future, keys
from tests.support.clock import Clock, StoppedClock
from tests.support.concurrency import lock_rows
from tests.support.embedders import quick
from tests.support.embedding_server import EmbeddingServer, answer_well, answer_with, embedding_server
from tests.support.erasing import erase_all
from tests.support.labels import untrusted
from tests.support.model_server import answer_body
from tests.support.model_worlds import ModelWorld
from tests.support.searches import passages
from tests.support.services import Service, serving

MODEL = model_number("stub", 384)
pytestmark = pytest.mark.usefixtures("more_time")


class World(ModelWorld[EmbeddingServer]):
    """A server with both models."""

    def __init__(self, service: Service, server: EmbeddingServer, schedule: EmbeddingSchedule) -> None:
        super().__init__(service, server)
        self.schedule = schedule

    def embed(self, *, waits: bool = True) -> None:
        """Embed all that is queued, with the built-in model and, if it *waits* for it, with the one at the address."""
        embed_queued_chunks(self.schedule, Disk(None), StopSignal())
        if waits:
            wait_until(lambda: not self.rows("WHERE signs IS NULL"))

    def rows(self, condition: str = "", columns: str = "name") -> list[tuple[Any, ...]]:
        """The rows of the embeddings by models at addresses, of all levels."""
        with self.service.database.as_owner() as owner:
            return [
                tuple(row)
                for level in LEVELS
                for row in owner.execute(
                    f"SELECT {columns} FROM {untrusted(level).role}.remote_embedding {condition}".encode()
                ).fetchall()
            ]

    def found(self, level: Classification, query: str, agent: str = "alice") -> list[str]:
        return sorted(keys(self.at(level, agent).search_memories(query=query)))


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@contextmanager
def world_of(database, folder, server, ceiling, *, ready: bool = True) -> Iterator[World]:
    config, path, ready_socket = server.config(ceiling), str(folder / "e"), folder / f"e.{ceiling:d}"
    model = server.new_model(ceiling)
    with ExitStack() as stack:
        roles, remote_roles = (RoleDatabase(database.conninfo, pool_sizes=SINGLE) for _ in range(2))
        stack.callback(roles.close)
        stack.callback(remote_roles.close)
        schedule = EmbeddingSchedule(
            Databases.of_one(roles),
            quick,
            next_model=lambda label: model.number if label.level.can_flow_to(ceiling) else None,
        )
        stack.enter_context(RemoteEmbedding(config, model, Databases.of_one(remote_roles), Disk(None)).running(path))
        embed_remotely = remote_query_embedder(path, config.model, ceiling)
        service = stack.enter_context(serving(database, embed=quick, embed_remotely=embed_remotely))
        if ready:
            wait_until(ready_socket.exists)
        yield World(service, server, schedule)


@pytest.fixture
def server():
    with embedding_server() as server:
        yield server


@pytest.fixture
def world(database, tmp_path, server):
    """A world whose ceiling is INTERNAL."""
    with world_of(database, tmp_path, server, INTERNAL) as world:
        yield world


@pytest.fixture
def short_pauses(monkeypatch):
    """Request it before `world`, which starts the threads that pause."""
    monkeypatch.setattr(Backoff, "first", 0.02)


def fill(world):
    for level in LEVELS:
        world.at(level).save_memory(key=f"cat-{level.name}", content=f"a cat {level.name}")
        world.at(level).save_memory(key=f"dog-{level.name}", content=f"a dog {level.name}")
    world.embed()


# What is sent.


def test_no_text_above_the_ceiling_is_ever_sent(world):
    """Neither what is stored there, nor a query of a session there, not even for what lies below."""
    fill(world)
    for level in LEVELS:
        passages(world.at(level), "t", f"first {level.name}", f"second {level.name}")
        world.at(level).add_note(content=f"note {level.name}")
        world.at(level).search_memories(query=f"query at {level.name}")
        world.at(level).search_passages(query=f"where at {level.name}")
    world.embed()

    assert world.received_levels() == [PUBLIC, INTERNAL]
    for text in ("a cat PUBLIC", "first INTERNAL\\nsecond INTERNAL", "query at PUBLIC", "query at INTERNAL"):
        assert text in world.received()


def test_the_query_of_a_session_that_another_server_raised_above_the_ceiling_is_not_sent(world):
    """This server still knows the session as it was."""
    fill(world)
    session = world.at(INTERNAL)
    session.search_memories(query="query while INTERNAL")
    with serving(world.service.database) as other:
        other.host().raise_taint(session_id=session.session_id, taint=CONFIDENTIAL)
    answer = session.search_memories(query="query while CONFIDENTIAL")

    assert answer.semantic
    assert "query while INTERNAL" in world.received()
    assert "query while CONFIDENTIAL" not in world.received()


def test_nothing_above_the_ceiling_is_queued(world):
    fill(world)

    assert set(world.rows(columns="level")) == {(PUBLIC,), (INTERNAL,)}


def test_a_query_counts_as_sent_by_a_session_of_its_own_level(world):
    """As one of PUBLIC, it would be compared with the ceiling as such, too."""
    fill(world)
    place = str(world.server.config().address)

    def sent():
        name, labels = "muniment_remote_embedder_texts_total", {"address": place, "what": "query"}
        return {level: REGISTRY.get_sample_value(name, {**labels, "level": level.name}) or 0 for level in LEVELS}

    before = sent()
    world.found(INTERNAL, "feline")

    assert sent() == {**before, INTERNAL: before[INTERNAL] + 1}


def test_a_query_without_a_word_is_sent_too(world):
    fill(world)
    before = len(world.server.texts)
    world.at(PUBLIC).search_memories(query="?!")

    assert len(world.server.texts) == before + 1


# Which model finds what.


def test_up_to_the_ceiling_the_model_at_the_address_searches_and_above_it_the_built_in_one(world):
    fill(world)

    assert {level: world.found(level, "feline") for level in LEVELS} == {
        PUBLIC: ["cat-PUBLIC"], INTERNAL: ["cat-INTERNAL", "cat-PUBLIC"], CONFIDENTIAL: [], RESTRICTED: [],
    }  # fmt: skip
    assert {level: world.found(level, "hound") for level in LEVELS} == {
        PUBLIC: [], INTERNAL: [], CONFIDENTIAL: ["dog-CONFIDENTIAL", "dog-INTERNAL", "dog-PUBLIC"],
        RESTRICTED: ["dog-CONFIDENTIAL", "dog-INTERNAL", "dog-PUBLIC", "dog-RESTRICTED"],
    }  # fmt: skip


def test_a_search_up_to_the_ceiling_is_the_same_whatever_is_above(world):
    for level in (PUBLIC, INTERNAL):
        world.at(level).save_memory(key=f"cat-{level.name}", content=f"a cat {level.name}")
    world.embed()

    def answers():
        return [
            world.at(level).search_memories(query=query).SerializeToString(deterministic=True)
            for level in (PUBLIC, INTERNAL)
            for query in ("feline", "a cat", "dog")
        ]

    before = answers()
    fill_above = [world.at(level) for level in (CONFIDENTIAL, RESTRICTED)]
    for session in fill_above:
        for number in range(30):
            session.save_memory(key=f"k{number}", content=f"feline cat dog {number}")
    waiting = answers()
    world.embed()

    assert waiting == before
    assert answers() == before


def test_a_model_that_does_not_answer_is_replaced_by_the_built_in_one(world):
    fill(world)
    world.server.answer = lambda handler, _: answer_body(handler, b"", 503)
    answer = world.at(PUBLIC).search_memories(query="hound")

    assert (keys(answer), answer.semantic) == (["dog-PUBLIC"], True)


def test_a_slow_model_delays_a_search_by_a_second_at_most(world, monkeypatch):
    monkeypatch.setattr(embedder_socket, "_REMOTE_SECONDS", 1.0)
    fill(world)
    ended = threading.Event()
    world.server.answer = lambda *_: ended.wait(20)
    before = time.monotonic()
    found = world.found(PUBLIC, "hound")
    took = time.monotonic() - before
    ended.set()

    assert found == ["dog-PUBLIC"]
    assert took < 10


def test_queries_of_one_level_do_not_wait_for_those_of_another(world):
    fill(world)
    ended = threading.Event()

    def answer(handler, texts):
        if any("slow" in text for text in texts):
            ended.wait(20)
        answer_well(handler, texts)

    world.server.answer = answer
    high = [threading.Thread(target=world.found, args=(INTERNAL, f"slow {number}")) for number in range(20)]
    for thread in high:
        thread.start()
    wait_until(lambda: any("slow" in text for text in world.server.texts))
    found = world.found(PUBLIC, "feline")
    ended.set()
    for thread in high:
        thread.join()

    assert found == ["cat-PUBLIC"]


def test_a_level_waits_neither_for_the_chunks_of_another_nor_for_its_failures(world):
    ended = threading.Event()

    def answer(handler, texts):
        if any("slow" in text for text in texts):
            ended.wait(20)
            answer_body(handler, b"", 503)
        answer_well(handler, texts)

    world.server.answer = answer
    world.at(INTERNAL).save_memory(key="slow", content="slow")
    world.embed(waits=False)
    wait_until(lambda: "slow: slow" in world.server.texts)
    world.at(PUBLIC).save_memory(key="quick", content="a cat")
    world.embed(waits=False)
    wait_until(lambda: ("quick",) in world.rows("WHERE signs IS NOT NULL"))
    ended.set()


def test_a_model_that_is_too_slow_for_many_chunks_at_once_gets_fewer(world, monkeypatch):
    """It answers for two at a time, and for more than two too late. Each chunk is embedded all the same."""
    monkeypatch.setattr(remote_model, "_CHUNKS_SECONDS", 1.0)
    ended = threading.Event()

    def answer(handler, texts):
        if len(texts) > 2:
            ended.wait(20)
        else:
            time.sleep(0.15)  # not quick, or larger batches would be tried again
        answer_well(handler, texts)

    for number in range(16):
        world.at(PUBLIC).save_memory(key=f"key-{number}", content="a cat")
    world.server.answer = answer
    world.embed(waits=False)
    wait_until(lambda: len(world.rows("WHERE signs IS NOT NULL")) == 16)
    ended.set()


# Growing.


def test_what_is_missing_is_embedded_while_more_and_more_is_written(database, server, monkeypatch):
    """One tenant's import must not keep the agents of others with the built-in model."""
    roles = RoleDatabase(database.conninfo, pool_sizes=SINGLE)
    embedding = RemoteEmbedding(server.config(PUBLIC), server.new_model(), Databases.of_one(roles), Disk(None))
    stop, parts = StopSignal(), []

    def embed_batch(_, __, queue):
        parts.append(queue)
        if len(parts) == 4:
            stop.set()
        return True

    queues = [RemoteQueue(lambda *_: True, is_missing=is_missing) for is_missing in (False, True)]
    monkeypatch.setattr(embedding, "_embed_batch", embed_batch)
    embedding._embed_queued(roles, Label.PUBLIC, queues, stop, until=math.inf)
    roles.close()

    assert parts == [*queues, *queues]


def test_what_the_built_in_model_had_begun_before_the_other_was_known_is_embedded(
    database, tmp_path, server, monkeypatch
):
    """The other model looked for missing chunks before this chunk was stored, so the chunk was not queued for it."""
    monkeypatch.setattr(remote_embedding, "_FIRST_MISSING_SECONDS", 1.0)
    searches, stored = itertools.count(), threading.Event()
    queue_missing = remote_embedding.RemoteEmbedding._queue_missing

    def wait_and_search(*arguments):
        if next(searches):
            stored.wait(60)  # however long the machine takes
        return queue_missing(*arguments)

    monkeypatch.setattr(remote_embedding.RemoteEmbedding, "_queue_missing", wait_and_search)
    with world_of(database, tmp_path, server, PUBLIC) as world:
        world.schedule._next_model = lambda _: None
        world.at(PUBLIC).save_memory(key="cat", content="a cat")
        world.embed(waits=False)
        stored.set()
        wait_until(lambda: world.rows("WHERE signs IS NOT NULL"))


def test_what_was_stored_before_is_embedded_and_the_built_in_model_searches_until_all_of_it_is(
    database, tmp_path, server
):
    go_on = threading.Event()
    with serving(database, embed=quick) as service:
        session = service.session(PUBLIC)
        for number in range(40):
            session.save_memory(key=f"cat-{number}", content=f"a cat {number}")
        session.save_memory(key="dog", content="a dog")
        schedule = RoleDatabase(database.conninfo, pool_sizes=SINGLE)
        embed_queued_chunks(EmbeddingSchedule(Databases.of_one(schedule), quick), Disk(None), StopSignal())
        schedule.close()

    def answer(handler, texts):
        if any("cat 39" in text for text in texts):
            go_on.wait(20)
        answer_well(handler, texts)

    server.answer = answer
    with world_of(database, tmp_path, server, PUBLIC) as world:
        wait_until(lambda: len(world.rows("WHERE signs IS NOT NULL")) >= 16)
        while_growing = world.found(PUBLIC, "hound"), world.found(PUBLIC, "feline")
        go_on.set()
        world.embed()
        afterwards = world.found(PUBLIC, "hound"), len(world.found(PUBLIC, "feline"))

    assert while_growing == (["dog"], [])
    assert afterwards == ([], 10)


def test_what_has_expired_is_sent_neither_later_nor_to_another_model(database, tmp_path, server):
    """And keeps its agent from no model: there is no vector that it could wait for."""
    with serving(database, embed=quick) as service:
        service.session(PUBLIC).save_memory(key="old", content="an old cat", expire_time=in_future(hours=1))
        service.session(PUBLIC).save_memory(key="cat", content="a cat")
        Clock(database).advance(hours=2)
        schedule = RoleDatabase(database.conninfo, pool_sizes=SINGLE)
        embed_queued_chunks(EmbeddingSchedule(Databases.of_one(schedule), quick), Disk(None), StopSignal())
        schedule.close()
    with world_of(database, tmp_path, server, PUBLIC) as world:
        world.embed()
        found = world.found(PUBLIC, "feline")

    assert found == ["cat"]
    assert server.texts == ["cat: a cat", "feline"]


def what_is_missing_above_changes_nothing_below(world):
    fill(world)

    def answer(handler, texts):
        if any(": " in text for text in texts):
            return answer_body(handler, b"", 503)  # for chunks, which begin with their key
        return answer_well(handler, texts)

    world.server.answer = answer
    with world.service.database.as_owner() as owner:
        owner.execute("UPDATE muniment_internal.remote_embedding SET signs = NULL, vector = NULL, is_missing = true")

    assert world.found(PUBLIC, "feline") == ["cat-PUBLIC"]
    assert world.found(INTERNAL, "feline") == []
    assert world.found(INTERNAL, "hound") == ["dog-INTERNAL", "dog-PUBLIC"]


def test_what_is_missing_above_changes_nothing_below(world):
    """Law 2: the model is chosen by what the session sees."""
    what_is_missing_above_changes_nothing_below(world)


@pytest.mark.proof
def test_a_model_that_is_chosen_by_what_is_missing_above_is_noticed(world):
    with world.service.database.as_admin() as admin:
        for statement in as_restricted("visible_remote_embedding"):
            admin.execute(statement)
    with pytest.raises(AssertionError):
        what_is_missing_above_changes_nothing_below(world)


def test_another_model_is_not_compared_with_the_vectors_of_the_one_before(database, tmp_path, server):
    """Nor one of the same name with other dimensions."""
    with world_of(database, tmp_path, server, PUBLIC) as world:
        world.at(PUBLIC).save_memory(key="cat", content="a cat")
        world.embed()
    server.answer = lambda handler, texts: answer_with(handler, [[1.0, float(len(text))] for text in texts])
    with world_of(database, tmp_path, server, PUBLIC) as world:
        wait_until(lambda: len(world.rows("WHERE signs IS NOT NULL")) == 2)
        models = set(world.rows(columns="model, cardinality(vector)"))
        found = world.found(PUBLIC, "whale")

    assert models == {(MODEL, 384), (model_number("stub", 2), 2)}
    assert found in ([], ["cat"])  # two dimensions say little


def test_vectors_of_another_model_are_not_compared(world):
    fill(world)
    with world.service.database.as_owner() as owner:
        owner.execute("UPDATE muniment_public.remote_embedding SET model = 7")

    assert world.found(PUBLIC, "feline") == []


def test_when_the_ceiling_is_raised_what_lies_there_is_sent(database, tmp_path, server):
    with world_of(database, tmp_path, server, PUBLIC) as world:
        fill(world)
        before = set(world.rows(columns="level"))
    with world_of(database, tmp_path, server, INTERNAL) as world:
        world.embed()
        after = set(world.rows("WHERE signs IS NOT NULL", "level"))
        found = world.found(INTERNAL, "feline")

    assert before == {(PUBLIC,)}
    assert after == {(PUBLIC,), (INTERNAL,)}
    assert found == ["cat-INTERNAL", "cat-PUBLIC"]


def test_when_the_ceiling_is_lowered_sessions_above_it_send_nothing(database, tmp_path, server):
    with world_of(database, tmp_path, server, INTERNAL) as world:
        fill(world)
    server.requests.clear()
    with world_of(database, tmp_path, server, PUBLIC) as world:
        found = world.found(INTERNAL, "feline"), world.found(INTERNAL, "hound"), world.found(PUBLIC, "feline")

    assert found == ([], ["dog-INTERNAL", "dog-PUBLIC"], ["cat-PUBLIC"])
    assert server.texts == ["feline"]


def test_missing_chunks_are_queued_once_and_those_that_wait_are_not(world):
    fill(world)
    with world.service.database.connect(untrusted(PUBLIC).role) as connection:
        for model in (MODEL, 7, 7):
            last = queue_missing(connection, FIRST, model=model)
            assert last is not None
            assert queue_missing(connection, last, model=model) is None
    assert len(world.rows("WHERE model = 7 AND is_missing AND signs IS NULL")) == 2
    assert len(world.rows("WHERE is_missing")) == 2


def test_a_chunk_that_the_built_in_model_has_yet_to_embed_is_not_missing(world):
    """It is queued once that model has. As a missing one, it would keep its agent from the model at the address."""
    world.at(PUBLIC).save_memory(key="cat", content="a cat")
    with world.service.database.connect(untrusted(PUBLIC).role) as connection:
        queue_missing(connection, FIRST, model=7)

    assert world.rows() == []


def test_a_chunk_that_cannot_be_queued_for_the_next_model_stays_queued_for_the_first(world, monkeypatch):
    """Or that model would learn of it ten minutes later."""
    world.at(PUBLIC).save_memory(key="cat", content="a cat")
    failing = {**embedding_queue._QUERIES, "queue_kept": "SELECT 1 / 0"}
    monkeypatch.setattr(embedding_queue, "_QUERIES", failing)
    with (
        world.service.database.connect(untrusted(PUBLIC).role) as connection,
        pytest.raises(psycopg.errors.DivisionByZero),
    ):
        embed_batch(connection, quick, START, next_model=7)
    with world.service.database.as_owner() as owner:
        made = owner.execute("SELECT embedder FROM muniment_public.meaning").fetchall()

    assert made == [(None,)]


def test_a_batch_looks_at_the_chunks_after_the_one_before(world, monkeypatch):
    """So a pass reads each once."""
    fill(world)
    passages(world.at(PUBLIC), "t", "first", "second", "third")
    world.embed()
    monkeypatch.setattr(embedding_queue, "CHUNKS_AT_ONCE", 2)
    queued = []
    with world.service.database.connect(untrusted(PUBLIC).role) as connection:
        last = queue_missing(connection, FIRST, model=7)
        while last is not None:
            queued.append(len(world.rows("WHERE model = 7")))
            last = queue_missing(connection, last, model=7)

    assert queued == [2, 4, 5]


# What is gone.


def test_deleting_an_item_deletes_its_vectors(world):
    fill(world)
    world.at(PUBLIC).delete_memory(key="cat-PUBLIC")
    world.at(INTERNAL).save_memory(key="cat-INTERNAL", content="other")

    assert sorted(world.rows()) == [("dog-INTERNAL",), ("dog-PUBLIC",)]
    world.service.host().delete_agent(agent_id="alice")
    erase_all(world.service.database)
    assert world.rows() == []


def test_a_vector_with_the_text_of_a_deleted_turn_goes_with_it_and_is_made_again_without(world):
    first, second, _ = passages(world.at(PUBLIC), "t", "Where do you live?", "In Kochi", "By the sea")
    world.embed()
    sent = len(world.server.texts)
    world.at(PUBLIC).delete_passage(passage_id=first)
    left = world.rows(f"WHERE name = '{second}'")
    world.embed()

    assert left == []
    assert world.server.texts[sent:] == ["In Kochi"]
    assert world.rows(f"WHERE name = '{second}'", "prior_name") == [(None,)]


def test_a_vector_with_the_text_of_an_erased_turn_goes_with_it(world):
    first, second, _ = passages(world.at(PUBLIC), "t", "Where do you live?", "In Kochi", "By the sea")
    world.embed()
    world.service.host().erase_items(agent_id="alice", kind=4, name=first)

    assert world.rows(f"WHERE name = '{second}'") == []


def test_a_vector_whose_text_is_deleted_while_it_is_made_is_not_stored(world):
    """The passage before is deleted, or just being deleted."""
    first, second = passages(world.at(PUBLIC), "t", "Where do you live?", "In Kochi")
    embed_queued_chunks(world.schedule, Disk(None), StopSignal())
    wait_until(lambda: not world.rows("WHERE signs IS NULL"))
    with world.service.database.as_owner() as owner:
        owner.execute("UPDATE muniment_public.remote_embedding SET signs = NULL, vector = NULL, model = 7")
    with (
        world.service.database.connect(untrusted(PUBLIC).role) as connection,
        world.service.database.as_owner() as owner,
    ):
        batch = read_remote_batch(connection, START, most=16, model=7, is_missing=False)
        with world.service.database.as_owner() as deleting, deleting.transaction():
            deleting.execute("UPDATE muniment_public.item SET delete_time = now() WHERE name = %s", [first])
            store_remote_batch(connection, batch, [quick(chunk.text) for chunk in batch], model=7)
        made = owner.execute(
            "SELECT name, signs IS NOT NULL FROM muniment_public.remote_embedding ORDER BY name"
        ).fetchall()

    assert dict(made) == {first: True, second: False}


def test_a_text_that_is_deleted_while_it_is_refused_is_not_sent_again(world):
    sent = []

    def answer(handler, texts):
        if not any("launch" in text for text in texts):
            return answer_well(handler, texts)
        sent.append(texts)
        if len(sent) == 1:
            world.at(PUBLIC).delete_memory(key="code")
        return answer_body(handler, b"", 403)

    world.server.answer = answer
    world.at(PUBLIC).save_memory(key="code", content="the launch code")
    world.embed(waits=False)
    wait_until(lambda: sent)
    world.at(PUBLIC).save_memory(key="cat", content="a cat")
    world.embed()  # so the batch before has ended

    assert sent == [["code: the launch code"]]


def test_chunks_that_others_have_locked_are_not_sent_again_at_once(world):
    """They are sent after a pause."""
    sent = []
    with world.service.database.as_owner() as locking, locking.transaction():

        def answer(handler, texts):
            sent.append(texts)
            lock_rows(locking, "muniment_public.remote_embedding")
            answer_well(handler, texts)

        world.server.answer = answer
        world.at(PUBLIC).save_memory(key="cat", content="a cat")
        world.embed(waits=False)
        wait_until(lambda: sent)
        time.sleep(0.8)
        assert sent == [["cat: a cat"]]
    world.server.answer = answer_well
    world.embed()

    assert world.rows("WHERE signs IS NOT NULL") == [("cat",)]


def test_texts_of_a_deleted_agent_are_not_sent(world):
    """Its chunks wait until the eraser comes to them."""
    world.at(PUBLIC, "alice").save_memory(key="code", content="the launch code")
    world.service.host().delete_agent(agent_id="alice")
    world.at(PUBLIC, "bob").save_memory(key="cat", content="a cat")
    world.embed(waits=False)
    wait_until(lambda: world.rows("WHERE signs IS NOT NULL"))
    world.at(PUBLIC, "bob").save_memory(key="dog", content="a dog")
    world.embed(waits=False)
    wait_until(lambda: len(world.rows("WHERE signs IS NOT NULL")) == 2)

    assert sorted(world.server.texts) == ["cat: a cat", "dog: a dog"]
    assert world.rows("WHERE signs IS NULL") == [("code",)]


def test_reindexing_sends_no_text_of_a_deleted_agent(database, server):
    with (
        serving(database, embed=quick) as service,
        closing(RoleDatabase(database.conninfo, pool_sizes=SINGLE)) as roles,
    ):
        for agent in ("alice", "bob"):
            service.session(PUBLIC, agent_id=agent).save_memory(key=agent, content="a cat")
        embed_queued_chunks(EmbeddingSchedule(Databases.of_one(roles), quick), Disk(None), StopSignal())
        service.host().delete_agent(agent_id="alice")
    with connect_operator(database.admin) as operator:
        list(embed_stored(operator.conninfo, server.config(PUBLIC), removes_others=False))

    assert server.texts == ["bob: a cat"]


def test_texts_whose_vectors_cannot_be_stored_are_not_sent_again_at_once(world):
    with world.service.database.as_admin() as admin:
        admin.execute("SET citus.enable_unsafe_triggers = on")  # for a cluster; elsewhere it means nothing
        admin.execute("""
            CREATE FUNCTION muniment_public.refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'a failover' USING ERRCODE = 'read_only_sql_transaction'; END $$
        """)
        admin.execute("""
            CREATE TRIGGER refuses BEFORE UPDATE ON muniment_public.remote_embedding
            FOR EACH ROW EXECUTE FUNCTION muniment_public.refuse()
        """)
    world.at(PUBLIC).save_memory(key="cat", content="a cat")
    world.embed(waits=False)
    wait_until(lambda: world.server.texts)
    time.sleep(2.5)

    assert 1 < world.server.texts.count("cat: a cat") <= 3  # at once, after a second, and two seconds later


def test_what_is_missing_is_looked_for_while_the_queue_is_never_empty(database, server, monkeypatch):
    monkeypatch.setattr(remote_embedding, "_FIRST_MISSING_SECONDS", 0.5)
    roles = RoleDatabase(database.conninfo, pool_sizes=SINGLE)
    databases, stop = Databases.of_one(roles), StopSignal()
    embedding = RemoteEmbedding(server.config(PUBLIC), server.new_model(), databases, Disk(None))

    def embed_batch(*_):
        time.sleep(0.02)
        return True

    def look(*_):
        stop.set()
        return True

    monkeypatch.setattr(embedding, "_embed_batch", embed_batch)
    monkeypatch.setattr(embedding, "_queue_missing", look)
    (placed,) = databases
    thread = threading.Thread(target=embedding._embed_level, args=(placed, PUBLIC, stop, True), daemon=True)
    thread.start()
    thread.join(20)
    stop.set()
    roles.close()

    assert not thread.is_alive()


# Failures.


def test_while_the_model_is_away_chunks_wait_and_are_embedded_when_it_is_back(world, caplog):
    world.server.answer = lambda handler, _: answer_body(handler, b"", 500)
    world.at(PUBLIC).save_memory(key="secret", content="a secret cat")
    world.embed(waits=False)
    wait_until(lambda: "chunks wait for" in caplog.text)
    meanwhile = world.rows("WHERE signs IS NULL")
    world.server.answer = answer_well
    world.embed()

    assert meanwhile == [("secret",)]
    assert world.found(PUBLIC, "feline") == ["secret"]
    assert "HTTP 500" in caplog.text
    assert "secret" not in caplog.text
    assert not any("wait for" in line and "PUBLIC" in line for line in caplog.messages)  # the log names no level


def test_a_chunk_that_a_filter_refuses_keeps_no_other_waiting(world, caplog):
    world.server.answer = lambda handler, texts: (
        answer_body(handler, b"", 403) if any("launch" in text for text in texts) else answer_well(handler, texts)
    )
    for key in ("a", "b", "c"):
        world.at(PUBLIC).save_memory(key=key, content="launch " * 20 if key == "a" else f"cat {key}")
    world.embed()

    assert world.rows("WHERE signs IS NULL") == []
    assert world.found(PUBLIC, "feline") == ["b", "c"]
    assert "skipping a chunk" in caplog.text


@pytest.mark.parametrize("is_late", [True, False], ids=["late", "crashes"])
def test_a_chunk_that_always_fails_keeps_no_agent_waiting(short_pauses, world, monkeypatch, is_late):
    """Nor do two."""
    monkeypatch.setattr(remote_model, "_CHUNKS_SECONDS", 1.5)
    ended = threading.Event()
    for agent in ("alice", "bob", "carol"):
        world.at(PUBLIC, agent).save_memory(key=agent, content="a cat")
    world.embed()
    *failing, last = [str(name) for (name,) in world.rows("ORDER BY tenant, agent")]

    def answer(handler, texts):
        if any("launch" in text for text in texts):
            if is_late:
                ended.wait(20)
            handler.close_connection = True  # without an answer, as when the server crashes
        else:
            answer_well(handler, texts)

    world.server.answer = answer
    for agent in (*failing, last):
        world.at(PUBLIC, agent).save_memory(key=agent, content="launch" if agent in failing else "another cat")
    world.embed(waits=False)
    wait_until(lambda: world.rows("WHERE signs IS NOT NULL"))
    ended.set()

    assert world.rows("WHERE signs IS NOT NULL") == [(last,)]


@pytest.mark.parametrize(
    ("error", "fails_for_others", "sent"),
    [
        ({"may_be_the_text": True}, False, 2),
        ({}, False, 2),
        ({"may_be_the_text": True}, True, 1),
        ({}, True, 1),
        ({"retry_after": 3.0}, False, 1),
    ],
)
def test_there_is_a_pause_unless_only_what_was_sent_is_to_blame(error, fails_for_others, sent):
    asked: list[None] = []
    probed = threading.Event()

    def send():
        asked.append(None)
        raise RemoteModelError("failed", **error)

    def probe():
        probed.set()
        if fails_for_others:
            raise RemoteModelError("failed")

    breaker = CircuitBreaker("failed", StoppedClock())
    first = breaker.ask(send, probe)
    if "retry_after" not in error:
        assert probed.wait(10)
        wait_until(lambda: not breaker._probing.locked())
    second = breaker.ask(send, probe)

    assert (first, second, len(asked)) == (None, None, sent)


@pytest.mark.parametrize("fails", [False, True])
def test_a_pause_that_the_server_asked_for_outlasts_a_probe(fails):
    clock = StoppedClock()
    probed, busy = threading.Event(), threading.Event()
    errors = iter([RemoteModelError("failed"), RemoteModelError("failed", retry_after=300)])
    sent: list[None] = []

    def send():
        sent.append(None)
        raise next(errors)

    def probe():
        probed.set()
        assert busy.wait(10)
        if fails:
            raise RemoteModelError("failed")

    breaker = CircuitBreaker("failed", clock)
    breaker.ask(send, probe)
    assert probed.wait(10)
    breaker.ask(send, probe)
    busy.set()
    wait_until(lambda: not breaker._probing.locked())
    clock.seconds += 290
    breaker.ask(send, probe)

    assert len(sent) == 2


def test_a_query_that_is_always_late_stops_no_others(world, monkeypatch):
    fill(world)
    ended = threading.Event()

    def answer(handler, texts):
        if "slow" in texts[0]:
            ended.wait(20)
        answer_well(handler, texts)

    world.server.answer = answer
    with monkeypatch.context() as hurried:
        hurried.setattr(embedder_socket, "_REMOTE_SECONDS", 1.5)
        late = [world.found(PUBLIC, "slow") for _ in range(4)]
    in_time = world.found(PUBLIC, "feline")
    ended.set()

    assert (late, in_time) == ([[]] * 4, ["cat-PUBLIC"])


def test_a_model_that_is_away_at_the_start_is_asked_again(database, tmp_path, server, caplog):
    server.answer = lambda handler, _: answer_body(handler, b"", 404)
    with world_of(database, tmp_path, server, PUBLIC, ready=False) as world:
        world.at(PUBLIC).save_memory(key="cat", content="a cat")
        world.embed()
        meanwhile = world.found(PUBLIC, "cat")
        wait_until(lambda: "HTTP 404" in caplog.text)
        server.answer = answer_well
        wait_until(lambda: world.rows("WHERE signs IS NOT NULL"))

    assert meanwhile == ["cat"]


def test_pauses_become_longer_up_to_a_minute_and_end_with_a_success():
    clock = StoppedClock()
    backoff = Backoff(clock)
    first = [backoff.begin() for _ in range(8)]
    asked = backoff.begin(at_least=300)
    clock.seconds += 300
    over = backoff.remaining
    backoff.reset()

    assert first == [1, 2, 4, 8, 16, 32, 60, 60]
    assert (asked, over) == (300, 0)
    assert backoff.begin() == 1


def test_a_reindexed_agent_is_searched_with_the_built_in_model_until_all_is_embedded_again(world):
    fill(world)
    world.at(PUBLIC, "bob").save_memory(key="cat-bob", content="a cat")
    world.embed()
    go_on = threading.Event()

    def answer(handler, texts):
        if any("cat-PUBLIC" in text for text in texts):
            go_on.wait(25)
        answer_well(handler, texts)

    world.server.answer = answer
    with connect_operator(world.service.database.admin) as operator:
        list(reindex(operator.connection, agent_id="alice"))
    world.embed(waits=False)
    wait_until(lambda: len(world.rows("WHERE signs IS NOT NULL")) == 3)  # of bob, and at INTERNAL
    meanwhile = [world.found(level, query) for level in (PUBLIC, INTERNAL) for query in ("hound", "feline")]
    of_bob = world.found(PUBLIC, "feline", "bob")
    above = world.rows("WHERE level > 2")
    go_on.set()
    world.embed()

    assert meanwhile == [["dog-PUBLIC"], [], ["dog-INTERNAL", "dog-PUBLIC"], []]
    assert of_bob == ["cat-bob"]
    assert above == []
    assert world.found(INTERNAL, "feline") == ["cat-INTERNAL", "cat-PUBLIC"]


def test_what_a_reindex_rebuilds_is_queued_for_each_model_that_had_it(world):
    """The model that servers use, and the one that they will use next."""
    fill(world)
    with world.service.database.connect(untrusted(PUBLIC).role) as connection:
        queue_missing(connection, FIRST, model=7)
    with connect_operator(world.service.database.admin) as operator:
        list(reindex(operator.connection))

    assert set(world.rows("WHERE is_missing", "name, model")) == {
        (f"{animal}-{level}", model)
        for animal in ("cat", "dog")
        for level, models in (("PUBLIC", (MODEL, 7)), ("INTERNAL", (MODEL,)))
        for model in models
    }


def test_a_rebuild_queues_only_the_chunks_that_it_has_made(world):
    """Others may be deleted while it runs."""
    fill(world)
    with world.service.database.as_owner() as owner, owner.transaction():
        owner.execute(REINDEXING["use_schema"], {"schema": untrusted(PUBLIC).role})
        tenant, agent, change = owner.execute(
            "SELECT tenant, agent, change_id FROM item WHERE name = 'cat-PUBLIC'"
        ).fetchone()
        rebuilt = {"kind": 1, "names": ["cat-PUBLIC", "dog-PUBLIC"], "changes": [change], "models": [7]}
        owner.execute(REINDEXING["queue_rebuilt"], {"tenant": tenant, "agent": agent, **rebuilt})

    assert world.rows("WHERE model = 7") == [("cat-PUBLIC",)]


def test_doctor_tells_of_what_is_queued(world):
    fill(world)
    with connect_operator(world.service.database.admin) as operator:
        before = remote_chunks(operator)
        with world.service.database.as_owner() as owner:
            owner.execute("UPDATE muniment_public.remote_embedding SET model = 7, signs = NULL, vector = NULL")
        after = remote_chunks(operator)
    texts = [finding.text for finding in _check_ledgers(world.service.database.admin)]

    assert (before, after) == ((0, 4), (2, 2))
    assert any("2 embeddings are by models at addresses, 2 more are queued" in text for text in texts)


# Guards, broken.

_ALL_LEVELS = setting(RemoteConfig, "levels", property(lambda _: tuple(Label)))
_NO_CEILING = setting(Classification, "can_flow_to", lambda *_: True)
_ANY_MODEL = (
    edit(ITEMS, "search_embeddings", "(remote.kind, remote.model) = (%(kind)s, %(model)s)", "remote.kind = %(kind)s"),
    edit(
        ITEMS,
        "search_embeddings",
        "remote.number, remote.model) = (seen.kind, seen.name, seen.change_id, seen.piece, %(model)s)",
        "remote.number) = (seen.kind, seen.name, seen.change_id, seen.piece)",
    ),
)
_BROKEN: Mapping[str, tuple[Callable[[World], None], tuple[Patch, ...]]] = {
    "deleted turns are not forgotten": (
        test_a_vector_with_the_text_of_a_deleted_turn_goes_with_it_and_is_made_again_without,
        (edit(ITEMS, "forget_passages", "forgotten.prior_name = ANY(%(names)s)", "FALSE"),),
    ),
    "erased turns are not forgotten": (
        test_a_vector_with_the_text_of_an_erased_turn_goes_with_it,
        (
            edit(
                HOSTS, "unindex_erased", "AND forgotten.prior_name = ANY(", "AND FALSE AND forgotten.prior_name = ANY("
            ),
        ),
    ),
    "what is deleted meanwhile is stored": (
        test_a_vector_whose_text_is_deleted_while_it_is_made_is_not_stored,
        (edit(embedding_queue._QUERIES, "keep_remote_vectors", " OR prior.change_id IS NOT NULL", " OR TRUE"),),
    ),
    "vectors of an incomplete model are compared": (
        what_is_missing_above_changes_nothing_below,
        (edit(ITEMS, "search_embeddings", "AND waiting.is_missing", "AND FALSE"),),
    ),
    "vectors of all models are compared": (
        test_vectors_of_another_model_are_not_compared,
        _ANY_MODEL,
    ),
    "there is no ceiling": (test_no_text_above_the_ceiling_is_ever_sent, (_ALL_LEVELS, _NO_CEILING)),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", _BROKEN)
def test_a_guard_that_is_missing_is_noticed(request, name):
    noticed_by, patches = _BROKEN[name]
    with applied(Mutant(name, "", patches)):
        world = request.getfixturevalue("world")
        with pytest.raises(AssertionError):
            noticed_by(world)
