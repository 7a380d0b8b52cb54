"""A real server with a model at an address: what it sends, and what it does when that model is slow, wrong or away."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator

import pytest

import muniment
from muniment import Classification
from muniment_server.admin.status import read, status_of
from tests.proof.faults.processes import ServerProcess, is_running, running, wait_until
from tests.support.embedding_server import EmbeddingServer, answer_well, embedding_server
from tests.support.model_server import answer_body
from tests.support.words import ROOT

_SLOW = 60.0
_LEVELS = (Classification.PUBLIC, Classification.INTERNAL, Classification.CONFIDENTIAL, Classification.RESTRICTED)


@pytest.fixture(scope="module")
def model() -> Iterator[EmbeddingServer]:
    with embedding_server() as model:
        yield model


@pytest.fixture(scope="module")
def remote(model: EmbeddingServer) -> Iterator[ServerProcess]:
    options = ("--embedder", model.url, "--embedder-model", "stub", "--embedder-ceiling", "internal")
    with running(ServerProcess(*options)) as server:
        yield server


@pytest.fixture(autouse=True)
def answers(model: EmbeddingServer) -> None:
    model.answer = answer_well


def session_of(server: ServerProcess, agent: str, level: Classification) -> muniment.SessionClient:
    host = muniment.connect(server.address, host_key=server.host_key, timeout=20)
    return host.open_session(agent, level)


def embedded(server: ServerProcess, level: str = "public") -> bool:
    """Whether every chunk of a level has the vectors of both models."""
    with server.as_owner() as owner:
        waiting = owner.execute(
            f"SELECT FROM muniment_{level}.meaning LEFT JOIN muniment_{level}.remote_embedding AS remote USING (tenant,"
            " agent, kind, name, change_id) WHERE meaning.embedder IS NULL OR remote.signs IS NULL".encode()
        ).rowcount
    return waiting == 0


def found(session: muniment.SessionClient, query: str) -> list[str]:
    return [result.memory.key for result in session.search_memories(query).results]


def received_by(model: EmbeddingServer) -> str:
    return json.dumps([(path, headers, body.decode()) for path, headers, body in model.requests])


def test_nothing_above_the_ceiling_reaches_the_address(remote, model):
    """What arrives there is all that a server sends: it has one address."""
    muniment.connect(remote.address, host_key=remote.host_key).create_agent("ceiling")
    for level in _LEVELS:
        session = session_of(remote, "ceiling", level)
        session.save_memory(f"key-{level.name}", f"content of {level.name}")
        session.store_passage(f"first passage of {level.name}", thread="t")
        session.store_passage(f"second passage of {level.name}", thread="t")
        session.add_note(f"a note of {level.name}")
    wait_until(lambda: embedded(remote) and embedded(remote, "internal"), "all is embedded", seconds=_SLOW)
    for level in _LEVELS:
        session = session_of(remote, "ceiling", level)
        session.search_memories(f"query of {level.name}")
        session.search_passages(f"what is at {level.name}")
    session = session_of(remote, "ceiling", Classification.INTERNAL)

    def asked_again():
        session.search_memories("query of INTERNAL")
        return "query of INTERNAL" in received_by(model)

    wait_until(asked_again, "a query is sent")  # on a busy machine, the one above may have waited for too long

    assert [level.name for level in _LEVELS if level.name in received_by(model)] == ["PUBLIC", "INTERNAL"]


def test_the_model_at_the_address_is_used_up_to_the_ceiling_and_the_built_in_one_above(remote, model):
    muniment.connect(remote.address, host_key=remote.host_key).create_agent("both")
    low, high = (session_of(remote, "both", level) for level in (Classification.PUBLIC, Classification.RESTRICTED))
    low.save_memory("cat", "zxqv cat")
    low.save_memory("postman", "Bruno barks at the postman every morning")
    wait_until(lambda: embedded(remote), "all is embedded", seconds=_SLOW)

    wait_until(lambda: found(low, "feline zxqv")[:1] == ["cat"], "the model at the address is asked", seconds=_SLOW)
    # On a busy machine, a model may be too late for one search or another.
    wait_until(lambda: found(low, "feline") == ["cat"], "the model at the address searches", seconds=_SLOW)
    wait_until(lambda: found(high, "my hound makes noise")[:1] == ["postman"], "the built-in one does", seconds=_SLOW)


def test_searches_go_on_while_the_model_is_away_and_what_was_stored_is_embedded_later(remote, model):
    muniment.connect(remote.address, host_key=remote.host_key).create_agent("away")
    session = session_of(remote, "away", Classification.PUBLIC)
    model.answer = lambda handler, _: answer_body(handler, b"my secret", 503)
    session.save_memory("postman", "Bruno barks at the postman every morning")
    wait_until(
        lambda: found(session, "my hound makes noise") == ["postman"], "the built-in one searches", seconds=_SLOW
    )
    model.answer = answer_well
    wait_until(lambda: embedded(remote), "it is embedded", seconds=_SLOW)

    assert "HTTP 503" in remote.log
    assert "secret" not in remote.log
    assert "postman" not in remote.log


def test_a_killed_embedder_goes_on_where_it_was(remote, model):
    muniment.connect(remote.address, host_key=remote.host_key).create_agent("killed")
    session = session_of(remote, "killed", Classification.PUBLIC)
    (embedder,) = remote.embedders()
    os.kill(embedder, signal.SIGKILL)
    wait_until(lambda: not is_running(embedder), "it is dead")
    session.save_memory("cat", "a cat")
    wait_until(lambda: embedded(remote), "it is embedded", seconds=_SLOW)
    wait_until(lambda: found(session, "feline") == ["cat"], "it is found", seconds=_SLOW)


def test_metrics_and_status_tell_how_the_model_does(remote, model):
    """Also each metric that an alert rule names."""
    host = muniment.connect(remote.address, host_key=remote.host_key)
    host.create_agent("watched")
    session = session_of(remote, "watched", Classification.INTERNAL)

    def levels(metric):
        found = read(remote.data_dir / "metrics.sock").get(metric, ())
        return {sample.labels["level"] for sample in found if sample.value or "queue" in metric}

    def fails_at_internal():
        session.search_memories("anything")
        return "INTERNAL" in levels("muniment_remote_embedder_failures_total")

    queue = "muniment_remote_embedding_queue"
    wait_until(  # a level is measured once the model has answered
        lambda: len(levels(queue)) == 2, "the queues were measured", seconds=_SLOW
    )
    model.answer = lambda handler, _: answer_body(handler, b"", 503)
    wait_until(fails_at_internal, "a query was refused", seconds=_SLOW)
    reading = read(remote.data_dir / "metrics.sock")
    status = status_of(reading)
    rules = "".join((ROOT / "service/deploy" / file).read_text() for file in ("alerts.yml", "dashboard.json"))

    assert status["remote_embedder"] == model.url.removeprefix("http://").removesuffix("/v1")
    assert status["remote_embedder_ceiling"] == "INTERNAL"
    assert levels(queue) == levels(f"{queue}_since_timestamp_seconds") == {"PUBLIC", "INTERNAL"}
    assert set(re.findall(r"muniment_remote_\w+", rules)) <= reading.keys()


def test_a_server_stops_while_its_model_does_not_answer(model):
    model.answer = lambda handler, _: handler.rfile.read(1)
    with running(ServerProcess("--embedder", model.url, "--embedder-model", "stub")) as server:
        requests = len(model.requests)
        wait_until(lambda: len(model.requests) > requests or model.requests, "it is asked", seconds=_SLOW)
        assert server.terminate() == 0
