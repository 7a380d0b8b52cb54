"""A real server with a reranker at an address: what it sends, and what it does when that is away."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

import muniment
from muniment import Classification
from muniment_server.admin.status import read, status_of
from tests.proof.faults.processes import ServerProcess, running, wait_until
from tests.support.model_server import answer_body
from tests.support.reranking_server import RerankingServer, rerank_well, reranking_server
from tests.support.words import ROOT

_SLOW = 60.0
_LEVELS = (Classification.PUBLIC, Classification.INTERNAL, Classification.CONFIDENTIAL, Classification.RESTRICTED)


@pytest.fixture(scope="module")
def model() -> Iterator[RerankingServer]:
    with reranking_server() as model:
        yield model


@pytest.fixture(scope="module")
def server(model: RerankingServer) -> Iterator[ServerProcess]:
    options = ("--reranker", model.url, "--reranker-model", "stub", "--reranker-ceiling", "internal")
    with running(ServerProcess(*options)) as server:
        yield server


@pytest.fixture(autouse=True)
def answers(model: RerankingServer) -> None:
    model.answer = rerank_well


def sessions_of(server: ServerProcess, agent: str) -> dict[Classification, muniment.SessionClient]:
    """A session of each level, with two memories, of which the reranker prefers the one that search does not."""
    host = muniment.connect(server.address, host_key=server.host_key, timeout=20)
    host.create_agent(agent)
    found = {level: host.open_session(agent, level) for level in _LEVELS}
    for level, session in found.items():
        session.save_memory(f"a-{level.name}", f"cat cat cat {level.name}")
        session.save_memory(f"b-{level.name}", f"cat in a text about other things {level.name}!")
    return found


def reranks(session: muniment.SessionClient) -> bool:
    """Whether a search is reranked: soon after the start, or after a failure, it is not yet."""
    return session.search_memories("cat").reranked


def test_up_to_the_ceiling_searches_are_reranked_and_nothing_above_reaches_the_address(server, model):
    """What arrives there is all that a server sends: it has one address."""
    sessions = sessions_of(server, "ceiling")
    wait_until(lambda: reranks(sessions[Classification.PUBLIC]), "the embedder has started", seconds=_SLOW)
    wait_until(lambda: reranks(sessions[Classification.INTERNAL]), "the level is served", seconds=_SLOW)
    for level, session in sessions.items():
        session.search_memories(f"cat of {level.name}")
    found = {level: sessions[level].search_memories("cat") for level in _LEVELS[2:]}
    wait_until(  # on a busy machine, the reranker may be too late for one search or another
        lambda: sessions[Classification.PUBLIC].search_memories("cat").results[0].memory.key == "b-PUBLIC",
        "the better match comes first",
        seconds=_SLOW,
    )
    received = json.dumps([(path, headers, body.decode()) for path, headers, body in model.requests])

    assert [level.name for level in _LEVELS if level.name in received] == ["PUBLIC", "INTERNAL"]
    assert {path for path, _, _ in model.requests} == {"/rerank"}
    assert [answer.reranked for answer in found.values()] == [False] * 2
    assert found[Classification.RESTRICTED].results[0].memory.key.startswith("a-")


def test_searches_go_on_while_the_reranker_is_away(server, model):
    session = sessions_of(server, "away")[Classification.PUBLIC]
    wait_until(lambda: reranks(session), "it is reranked", seconds=_SLOW)
    model.answer = lambda handler, *_: answer_body(handler, b"my secret", 503)
    found = [session.search_memories("cat").results[0].memory.key for _ in range(3)]
    model.answer = rerank_well
    wait_until(lambda: reranks(session), "it is reranked again", seconds=_SLOW)

    assert found == ["a-PUBLIC"] * 3
    assert "HTTP 503" in server.log
    assert "secret" not in server.log
    assert "cat in a text" not in server.log


def test_metrics_and_status_tell_how_the_reranker_does(server, model):
    """Also each metric that an alert rule names."""
    session = sessions_of(server, "watched")[Classification.INTERNAL]

    def metrics():
        return read(server.data_dir / "metrics.sock")

    wait_until(lambda: reranks(session), "it is reranked", seconds=_SLOW)
    model.answer = lambda handler, *_: answer_body(handler, b"", 503)

    def has_failed():
        assert not reranks(session)
        return "failed" in labels(metrics()["muniment_reranker_requests_total"], "outcome")

    wait_until(has_failed, "a search is sent in vain", seconds=_SLOW)
    reading, rules = metrics(), (ROOT / "service/deploy/alerts.yml").read_text()
    status = status_of(reading)

    assert status["reranker"] == model.url.removeprefix("http://")
    assert status["reranker_ceiling"] == "INTERNAL"
    assert labels(reading["muniment_reranker_requests_total"], "outcome") == {"reranked", "failed"}
    assert {"PUBLIC", "INTERNAL"} >= labels(reading["muniment_reranker_bytes_total"], "level") >= {"INTERNAL"}
    assert set(re.findall(r"muniment_reranker\w*", rules)) <= reading.keys()


def labels(samples, label):
    return {sample.labels[label] for sample in samples}
