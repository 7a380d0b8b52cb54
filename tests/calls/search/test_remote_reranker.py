"""The client of a reranker at an address: what it sends, and what hostile answers cost."""

from __future__ import annotations

import json
import logging
import threading
import time
from pathlib import Path

import pytest

from muniment_server.domain.classification import Classification
from muniment_server.embedder.remote.client import AboveCeilingError, RemoteModelError
from muniment_server.embedder.remote.configuration import (
    RemoteConfigError,
    RerankerConfig,
    parse_url,
)
from muniment_server.search.reranking import LabeledText
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, RESTRICTED
from tests.support.labels import untrusted
from tests.support.model_server import answer_body
from tests.support.reranking_server import answer_scores, rerank_well, reranking_server

_SECRET = "the launch code"


@pytest.fixture
def server():
    with reranking_server() as server:
        yield server


def texts(*found, level=PUBLIC):
    return [LabeledText(untrusted(level), text) for text in found]


def order(reranker, *found, query="query", level=PUBLIC, seconds=5.0):
    return list(reranker.order(query, texts(*found), untrusted(level), seconds))


def failure(act):
    with pytest.raises(RemoteModelError) as caught:
        act()
    return str(caught.value)


# What is sent.


def test_without_a_model_texts_are_sent_as_text_embeddings_inference_takes_them(server):
    order(server.reranker(), "one", "two", query="which")
    path, headers, body = server.requests[-1]

    assert path == "/rerank"
    assert headers["Content-Type"] == "application/json"
    assert "Authorization" not in headers
    assert json.loads(body) == {"query": "which", "texts": ["one", "two"], "truncate": True}


def test_with_a_model_documents_are_sent_as_infinity_takes_them(server):
    order(server.reranker(model="bge"), "one", "two", query="which")

    assert json.loads(server.requests[-1][2]) == {"model": "bge", "query": "which", "documents": ["one", "two"]}


def test_the_key_is_sent_as_a_bearer_token(server, tmp_path):
    (tmp_path / "key").write_text("sk-abc\n")
    order(server.reranker(key_file=tmp_path / "key"), "one")

    assert server.requests[-1][1]["Authorization"] == "Bearer sk-abc"


def test_a_reranker_at_a_unix_socket_is_asked(tmp_path):
    with reranking_server(tmp_path / "s") as server:
        assert order(server.reranker(), "one", "two!") == [1, 0]


@pytest.mark.parametrize(("ceiling", "above"), [(PUBLIC, INTERNAL), (INTERNAL, RESTRICTED), (CONFIDENTIAL, RESTRICTED)])
def test_neither_a_query_nor_a_text_above_the_ceiling_is_sent(server, ceiling, above):
    reranker = server.reranker(ceiling)
    with pytest.raises(AboveCeilingError):
        reranker.order(_SECRET, texts("low", "lower"), untrusted(above), 5)
    with pytest.raises(AboveCeilingError):
        reranker.order("low", [*texts("low"), LabeledText(untrusted(above), _SECRET)], untrusted(ceiling), 5)
    reranker.order("low", texts("low"), untrusted(ceiling), 5)

    assert server.asked == [("low", ["low"])]


# What becomes of the answer.


def test_the_best_comes_first_and_equal_ones_stay_as_they_are(server):
    assert order(server.reranker(), "a", "b!", "c", "d!!", "e!") == [3, 1, 4, 0, 2]


@pytest.mark.parametrize("model", [None, "bge"])
def test_both_forms_of_an_answer_are_read(server, model):
    results = [{"index": 1, "relevance_score": 0.9, "document": {"text": "two"}}, {"index": 0, "relevance_score": -2}]
    server.answer = lambda handler, *_: answer_body(handler, json.dumps({"results": results, "usage": {}}).encode())
    infinity = order(server.reranker(model=model), "one", "two")
    server.answer = lambda handler, *_: answer_scores(handler, [0.1, 0.9])
    inference = order(server.reranker(model=model), "one", "two")

    assert infinity == inference == [1, 0]


def test_an_answer_may_repeat_the_texts(server):
    """Some servers do, and escape each character that is not ASCII."""

    def answer(handler, _, found):
        results = [{"index": n, "relevance_score": n, "document": {"text": text}} for n, text in enumerate(found)]
        answer_body(handler, json.dumps({"results": results}).encode())

    server.answer = answer

    assert order(server.reranker(), *["é" * 1000] * 50) == list(range(49, -1, -1))


# Hostile answers.


def answers(handler, kind):
    match kind:
        case "too few":
            answer_scores(handler, [1.0])
        case "too many":
            answer_scores(handler, [1.0, 2.0, 3.0])
        case "doubled":
            answer_body(handler, b'[{"index": 0, "score": 1}, {"index": 0, "score": 2}]')
        case "out of range":
            answer_body(handler, b'[{"index": 0, "score": 1}, {"index": 2, "score": 2}]')
        case "negative":
            answer_body(handler, b'[{"index": 0, "score": 1}, {"index": -1, "score": 2}]')
        case "numbered by text":
            answer_body(handler, b'[{"index": "0", "score": 1}, {"index": "1", "score": 2}]')
        case "numbered by truth":
            answer_body(handler, b'[{"index": false, "score": 1}, {"index": true, "score": 2}]')
        case "unnumbered":
            answer_body(handler, b'[{"score": 1}, {"score": 2}]')
        case "NaN":
            answer_scores(handler, [float("nan"), 1.0])
        case "infinite":
            answer_body(handler, b'[{"index": 0, "score": 1e999}, {"index": 1, "score": 2}]')
        case "a huge integer":
            answer_body(handler, b'[{"index": 1, "score": 1}, {"index": 0, "score": ' + b"9" * 4000 + b"}]")
        case "strings":
            answer_scores(handler, ["1", "2"])
        case "no scores":
            answer_body(handler, b'[{"index": 0}, {"index": 1}]')
        case "not JSON":
            answer_body(handler, b"<html>secrets")
        case "nested":
            answer_body(handler, b"[" * 15_000)
        case "a number":
            answer_body(handler, b"7")
        case "numbers":
            answer_body(handler, b"[1, 2]")
        case "nothing":
            answer_body(handler, b"")
        case "a redirect":
            answer_body(handler, b"", 307, Location="http://127.0.0.1:9/rerank")
        case "another status":
            answer_body(handler, b"secrets", 503)
        case "closed":
            handler.close_connection = True


_HOSTILE = {
    "too few": "no list of 2 scores", "too many": "no list of 2 scores", "doubled": "wrongly",
    "out of range": "wrongly", "negative": "wrongly", "numbered by text": "wrongly",
    "numbered by truth": "wrongly", "unnumbered": "wrongly",
    "NaN": "no numbers", "infinite": "no numbers", "a huge integer": "no numbers", "strings": "no numbers",
    "no scores": "no numbers", "not JSON": "not JSON", "nested": "not JSON", "a number": "no list",
    "numbers": "wrongly", "nothing": "not JSON", "a redirect": "redirects", "another status": "HTTP 503",
    "closed": "closed the connection",
}  # fmt: skip


@pytest.mark.parametrize("kind", _HOSTILE)
def test_a_hostile_answer_is_an_error_and_nothing_else(server, kind, caplog):
    caplog.set_level(logging.DEBUG)
    reranker = server.reranker()
    server.answer = lambda handler, *_: answers(handler, kind)
    text = failure(lambda: order(reranker, _SECRET, "two"))
    server.answer = rerank_well

    assert _HOSTILE[kind] in text
    assert "secret" not in text + caplog.text
    assert _SECRET not in text + caplog.text
    assert order(reranker, "one", "two!") == [1, 0]


def test_a_redirect_is_not_followed(server):
    with reranking_server() as other:
        server.answer = lambda handler, *_: answer_body(handler, b"", 307, Location=f"{other.url}/rerank")
        failure(lambda: order(server.reranker(), _SECRET))

        assert other.requests == []


def test_an_endless_body_is_read_to_a_limit_only(server):
    sent = 0

    def endless(handler, *_):
        nonlocal sent
        handler.send_response(200)
        handler.end_headers()
        while True:
            sent += handler.wfile.write(b"[" * 65536)

    server.answer = endless

    assert "longer than" in failure(lambda: order(server.reranker(), "one"))
    assert sent < 16 * 1024 * 1024  # what fits into the buffers of the connection


@pytest.mark.parametrize("part", ["head", "body"])
def test_an_answer_that_drips_is_cut_off(server, part):
    ended = threading.Event()

    def drip(handler, *_):
        if part == "body":
            handler.send_response(200)
            handler.end_headers()
        while not ended.wait(0.05):
            handler.wfile.write(b" ")

    server.answer = drip
    before = time.monotonic()
    text = failure(lambda: order(server.reranker(), "one", seconds=0.25))
    took = time.monotonic() - before
    ended.set()

    assert "did not answer within 0.25 s" in text
    assert took < 5


# Options.


@pytest.mark.parametrize(
    ("url", "place", "path"),
    [
        ("https://api.example/v1", "api.example:443", "/v1/rerank"),
        ("https://api.example/v2/rerank", "api.example:443", "/v2/rerank"),
        ("https://api.example", "api.example:443", "/rerank"),
        ("http://127.0.0.1:8080/", "127.0.0.1:8080", "/rerank"),
        ("unix:/run/tei.sock", "unix:/run/tei.sock", "/rerank"),
    ],
)
def test_a_url_is_that_of_the_interface(url, place, path):
    address = parse_url(url, RerankerConfig.endpoint)

    assert (str(address), address.path) == (place, path)


@pytest.mark.parametrize(
    ("url", "ceiling"),
    [
        ("https://api.example", PUBLIC), ("https://127.0.0.1.example", PUBLIC), ("https://10.0.0.1", PUBLIC),
        ("https://127.0.0.1", RESTRICTED), ("http://localhost:8080", RESTRICTED), ("http://[::1]", RESTRICTED),
        ("unix:/s", RESTRICTED),
    ],
)  # fmt: skip
def test_the_ceiling_is_public_unless_only_this_machine_is_reached(url, ceiling):
    def of(level):
        config = RerankerConfig.of_options(url, None, None, level)
        assert config is not None
        return config.ceiling

    assert of(None) == ceiling
    assert [of(level) for level in Classification] == list(Classification)


def test_options_that_do_not_fit_are_refused(tmp_path: Path):
    (tmp_path / "empty").write_text("\n")
    local = "http://127.0.0.1"
    refused = [
        (None, "m", None, None), (None, None, tmp_path, None), (None, None, None, PUBLIC), (local, "", None, None),
        (local, "a\nb", None, None), (local, "m" * 257, None, None), ("http://api.example", None, None, None),
        ("https://user:password@api.example", None, None, None), (local, None, tmp_path / "empty", None),
    ]  # fmt: skip

    for options in refused:
        with pytest.raises(RemoteConfigError) as caught:
            RerankerConfig.of_options(*options)
        assert "--embedder" not in str(caught.value)
        assert "password@" not in str(caught.value)
    with pytest.raises(FileNotFoundError):
        RerankerConfig.of_options(local, None, tmp_path / "absent", None)
    assert RerankerConfig.of_options(None, None, None, None) is None


def test_the_options_reach_the_embedder_as_they_are(tmp_path):
    for config in (
        RerankerConfig("https://api.example/v1", "m", INTERNAL, tmp_path / "key"),
        RerankerConfig("unix:/s", "", PUBLIC),
    ):
        assert RerankerConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
