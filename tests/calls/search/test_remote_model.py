"""The client of a model at an address: what it sends, and what hostile answers cost."""

from __future__ import annotations

import json
import logging
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from muniment_server.domain.classification import Classification, Label
from muniment_server.embedder.remote import client as remote_client
from muniment_server.embedder.remote import model as remote_model
from muniment_server.embedder.remote.client import AboveCeilingError, ProbeFailedError, RemoteModelError
from muniment_server.embedder.remote.configuration import (
    MAX_DIMENSIONS,
    RemoteConfig,
    RemoteConfigError,
    RerankerConfig,
    parse_url,
)
from muniment_server.embedder.remote.everyday_sentences import SENTENCES
from muniment_server.embedder.remote.model import RemoteModel
from muniment_server.search.embeddings import model_number
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, RESTRICTED
from tests.support.embedding_server import answer_well, answer_with, embedding, embedding_server
from tests.support.labels import untrusted
from tests.support.model_server import answer_body

_SECRET = "the launch code"


@pytest.fixture
def server():
    with embedding_server() as server:
        yield server


def failure(act):
    with pytest.raises(RemoteModelError) as caught:
        act()
    return str(caught.value)


def similarity(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


# What is sent.


def test_texts_are_sent_in_the_form_of_the_interface(server):
    model = server.model()
    model.embed_chunks(["one", "two"], level=Label.PUBLIC)
    path, headers, body = server.requests[-1]

    assert path == "/v1/embeddings"
    assert headers["Content-Type"] == "application/json"
    assert headers["Accept-Encoding"] == "identity"
    assert "Authorization" not in headers
    assert json.loads(body) == {"model": "stub", "input": ["one", "two"], "encoding_format": "float"}


def test_the_key_is_sent_as_a_bearer_token(server, tmp_path):
    (tmp_path / "key").write_text("sk-abc\n")
    server.new_model(key_file=tmp_path / "key").calibrate()

    assert server.requests[-1][1]["Authorization"] == "Bearer sk-abc"


def test_a_model_at_a_unix_socket_is_asked(tmp_path):
    with embedding_server(tmp_path / "s") as server:
        assert len(server.model().embed_query("text", untrusted(RESTRICTED), 5)) == 384
    assert server.texts == ["text"]


@pytest.mark.parametrize(("ceiling", "above"), [(PUBLIC, INTERNAL), (INTERNAL, RESTRICTED), (CONFIDENTIAL, RESTRICTED)])
def test_a_text_above_the_ceiling_is_not_sent(server, ceiling, above):
    model = server.model(ceiling)
    with pytest.raises(AboveCeilingError):
        model.embed_chunks([_SECRET], level=untrusted(above))
    with pytest.raises(AboveCeilingError):
        model.embed_query(_SECRET, untrusted(above), 5)
    model.embed_chunks(["low"], level=untrusted(ceiling))

    assert server.texts == ["low"]


def test_the_first_that_is_sent_are_sentences_of_no_level(server):
    server.new_model().calibrate()

    assert [text for _, _, body in server.requests for text in json.loads(body)["input"]] == list(SENTENCES)


def test_a_model_that_takes_long_for_each_sentence_is_asked_for_a_few_at_a_time(server, monkeypatch):
    monkeypatch.setattr(remote_model, "_CHUNKS_SECONDS", 0.5)

    def answer(handler, texts):
        time.sleep(len(texts) / 20)
        answer_well(handler, texts)

    server.answer = answer
    server.new_model().calibrate()


def test_nothing_is_embedded_before_the_model_is_known(server):
    model = server.new_model()

    assert model.number is None
    assert "not answered yet" in failure(lambda: model.embed_query("text", Label.PUBLIC, 5))
    assert server.requests == []


def test_a_connection_is_used_again(server):
    ports = set()

    def answer(handler, texts):
        ports.add(handler.client_address)
        answer_well(handler, texts)

    server.answer = answer
    model = server.model()
    for _ in range(3):
        model.embed_query("text", Label.PUBLIC, 5)

    assert len(ports) == 1


def test_a_connection_that_was_closed_meanwhile_is_replaced(server):
    def answer(handler, texts):
        answer_well(handler, texts)
        handler.close_connection = texts == ["text"]  # without saying so

    server.answer = answer
    model = server.model()
    first = model.embed_query("text", Label.PUBLIC, 5)
    time.sleep(0.3)  # until the connection is closed

    assert first == model.embed_query("text", Label.PUBLIC, 5)


@pytest.mark.parametrize("what", ["another level", "after a while"])
def test_a_connection_is_not_used_by_another_level_or_after_a_while(server, monkeypatch, what):
    """A firewall may have forgotten it, which shows only in the time that is waited for an answer."""
    ports = []

    def answer(handler, texts):
        ports.append(handler.client_address[1])
        answer_well(handler, texts)

    model = server.model()
    server.answer = answer
    model.embed_query("text", Label.PUBLIC, 5)
    if what == "after a while":
        monkeypatch.setattr(remote_client, "_MAX_IDLE_SECONDS", 0.0)
    model.embed_query("text", Label.RESTRICTED if what == "another level" else Label.PUBLIC, 5)

    assert len(set(ports)) == 2


@pytest.mark.parametrize("ends", ["before its answer", "during its answer"])
def test_no_text_is_sent_again_because_the_server_closed_the_connection(server, ends):
    """It may have been deleted meanwhile: whoever sends it again must ask first."""
    model = server.model()

    def answer(handler, _):
        if ends == "during its answer":
            handler.send_response(200)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()  # a reset
        handler.close_connection = True

    server.answer = answer
    text = failure(lambda: model.embed_query(_SECRET, Label.PUBLIC, 5))

    assert "closed the connection" in text
    assert server.texts == [_SECRET]


# What becomes of the answer.


def test_vectors_are_integers_of_one_length_and_say_what_is_alike(server):
    model = server.model()
    cat, feline, ship = model.embed_chunks(["a cat", "a feline", "a ship"], level=Label.PUBLIC)

    assert all(type(one) is int for one in cat)
    assert 990_000 < similarity(cat, cat) < 1_010_000
    assert similarity(cat, feline) == similarity(cat, cat)
    assert similarity(cat, ship) < 800_000


@pytest.mark.parametrize("dimensions", [1, 64, 1536, MAX_DIMENSIONS])
def test_the_dimensions_are_those_of_the_answer(server, dimensions):
    server.answer = lambda handler, texts: answer_with(
        handler, [[float(len(text) % (2 + n % 7)) for n in range(dimensions)] for text in texts]
    )
    model = server.model()

    assert len(model.embed_query("text", Label.PUBLIC, 5)) == dimensions
    assert model.number == model_number("stub", dimensions)


def test_the_first_dimensions_are_kept_if_so_many_are_wanted(server):
    """They are scaled to the length of all vectors, and the model has another number than with all its dimensions."""
    model = RemoteModel(RemoteConfig(server.url, "stub", PUBLIC, dimensions=64))
    model.calibrate()
    short, whole = model.embed_query("a cat", Label.PUBLIC, 5), server.model().embed_query("a cat", Label.PUBLIC, 5)
    model.close()

    assert len(short) == 64
    assert 990_000 < similarity(short, short) < 1_010_000
    assert similarity(short, whole[:64]) ** 2 > 0.99 * similarity(short, short) * similarity(whole[:64], whole[:64])
    assert model.number == model_number("stub", 64)


def test_more_dimensions_than_there_are_cannot_be_kept(server):
    model = RemoteModel(RemoteConfig(server.url, "stub", PUBLIC, dimensions=385))

    assert "384 dimensions" in failure(model.calibrate)
    model.close()


def test_the_options_reach_the_embedder_as_they_are(tmp_path):
    config = RemoteConfig("https://api.example/v1", "m", INTERNAL, tmp_path / "key", 64)

    assert RemoteConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_models_with_other_names_or_dimensions_have_other_numbers():
    numbers = {model_number(name, dimensions) for name in ("a", "b", "1 a") for dimensions in (1, 384, 1024)}

    assert len(numbers) == 9
    assert all(0 <= number < 2**31 for number in numbers)


def test_what_all_texts_have_in_common_is_subtracted(server):
    """Else the vectors of a model whose embeddings all lie close together would all look alike."""
    server.answer = lambda handler, texts: answer_with(
        handler, [[5000.0 + one for one in embedding(text)] for text in texts]
    )
    cat, ship = server.model().embed_chunks(["a cat", "some ship"], level=Label.PUBLIC)

    assert similarity(cat, ship) < 500_000


@pytest.mark.parametrize("status", [400, 403, 413, 422, 451, 500])
def test_a_server_that_answers_for_others_refuses_a_text_by_its_status(server, status):
    model = server.model()
    server.answer = lambda handler, texts: (
        answer_well(handler, texts) if set(texts) & set(SENTENCES) else answer_body(handler, b"", status)
    )
    with pytest.raises(RemoteModelError) as failed:
        model.embed_chunks(["a cat"], level=Label.PUBLIC)

    assert failed.value.may_be_the_text
    assert not isinstance(failed.value, ProbeFailedError)


def test_an_empty_text_is_not_sent_and_gets_zeros(server):
    model = server.model()
    before = len(server.requests)
    assert [any(vector) for vector in model.embed_chunks(["", ""], level=Label.PUBLIC)] == [False, False]
    assert len(server.requests) == before
    assert [any(vector) for vector in model.embed_chunks(["", "a cat", ""], level=Label.PUBLIC)] == [
        False,
        True,
        False,
    ]

    assert server.texts == ["a cat"]


def test_a_refused_chunk_is_not_to_blame_if_the_probe_fails_and_there_is_one_probe(server):
    """A second one could be answered, and the chunk be blamed for what the first one showed."""
    model = server.model()
    probes: list[None] = []

    def answer(handler, texts):
        if not set(texts) & set(SENTENCES):
            return answer_body(handler, b"", 400)
        probes.append(None)
        return answer_body(handler, b"", 503) if len(probes) == 1 else answer_well(handler, texts)

    server.answer = answer
    with pytest.raises(ProbeFailedError) as failed:
        model.embed_chunks(["a cat"], level=Label.PUBLIC)

    assert not failed.value.may_be_the_text
    assert len(probes) == 1


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_a_busy_server_refuses_no_text_by_its_status(server, status):
    """A higher level may keep it busy, and must decide nothing for a lower chunk."""
    model = server.model()
    server.answer = lambda handler, texts: (
        answer_well(handler, texts) if set(texts) & set(SENTENCES) else answer_body(handler, b"", status)
    )

    with pytest.raises(RemoteModelError, match=f"HTTP {status}") as failed:
        model.embed_chunks(["a cat"], level=Label.PUBLIC)

    assert not failed.value.may_be_the_text


# Hostile answers.


def answers(handler: BaseHTTPRequestHandler, texts, kind: str) -> None:
    count = len(texts)
    good = [list(map(float, embedding(text))) for text in texts]
    match kind:
        case "a million dimensions":
            answer_with(handler, [[0.5] * 1_000_000])
        case "too many dimensions":
            answer_with(handler, [[0.5] * (MAX_DIMENSIONS + 1)] * count)
        case "other dimensions":
            answer_with(handler, [one[:100] for one in good])
        case "no dimensions":
            answer_with(handler, [[]] * count)
        case "NaN":
            answer_with(handler, [[float("nan")] * 384] * count)
        case "infinite":
            answer_body(handler, b'{"data": [{"embedding": [1e999, 1]}]}')
        case "a huge integer":
            answer_body(handler, b'{"data": [{"embedding": [' + b"9" * 4000 + b"]}]}")
        case "a longer integer":
            answer_body(handler, b'{"data": [{"embedding": [' + b"9" * 40_000 + b"]}]}")
        case "strings":
            answer_with(handler, [["1"] * 384] * count)
        case "booleans":
            answer_with(handler, [[True] * 384] * count)
        case "too few":
            answer_with(handler, good[1:])
        case "wrongly numbered":
            answer_body(handler, json.dumps({"data": [{"index": 7, "embedding": one} for one in good]}).encode())
        case "numbered by text":
            answer_body(handler, json.dumps({"data": [{"index": "0", "embedding": one} for one in good]}).encode())
        case "not JSON":
            answer_body(handler, b"<html>")
        case "not UTF-8":
            answer_body(handler, b"\xff\xfe\x00")
        case "nested":
            answer_body(handler, b"[" * 50_000)
        case "a list":
            answer_body(handler, b"[]")
        case "nothing":
            answer_body(handler, b"")
        case "compressed":
            answer_with(handler, good, Content_Encoding="gzip")
        case "a redirect":
            answer_body(handler, b"", 307, Location="http://127.0.0.1:9/v1/embeddings")
        case "another status":
            answer_body(handler, b"secrets", 503)
        case "a status that is no number":
            handler.wfile.write(b"HTTP/1.1 twohundred OK\r\n\r\n")
            handler.close_connection = True
        case "no HTTP":
            handler.wfile.write(b"\0\1\2" * 100)
            handler.close_connection = True
        case "endless headers":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200)
        case "closed":
            handler.close_connection = True
        case "a negative chunk":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n")
            while True:  # until the connection is closed
                handler.wfile.write(b"1" * 65_536)
                time.sleep(0.01)
        case "cut off":
            handler.send_response(200)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
            handler.wfile.write(b'{"data": [')
            handler.close_connection = True


_HOSTILE = {
    "a million dimensions": "longer than", "too many dimensions": "dimensions", "other dimensions": "100 dimensions",
    "no dimensions": "0 dimensions", "NaN": "no numbers", "infinite": "no numbers", "a huge integer": "no numbers",
    "a longer integer": "not JSON", "strings": "no numbers", "booleans": "no numbers",
    "too few": "no list of 1 embeddings", "wrongly numbered": "wrongly", "numbered by text": "wrongly",
    "not JSON": "not JSON", "not UTF-8": "not JSON", "nested": "not JSON", "a list": "no list",
    "nothing": "not JSON", "compressed": "compressed", "a redirect": "redirects", "another status": "HTTP 503",
    "a status that is no number": "does not speak HTTP", "no HTTP": "does not speak HTTP",
    "endless headers": "does not speak HTTP", "closed": "closed the connection", "cut off": "not JSON",
    "a negative chunk": "longer than",
}  # fmt: skip


@pytest.mark.parametrize("kind", _HOSTILE)
def test_a_hostile_answer_is_an_error_and_nothing_else(server, kind):
    model = server.model()
    server.answer = lambda handler, texts: answers(handler, texts, kind)
    before = time.monotonic()
    text = failure(lambda: model.embed_query(_SECRET, Label.PUBLIC, 5))
    server.answer = answer_well

    assert _HOSTILE[kind] in text
    assert "secret" not in text
    assert time.monotonic() - before < 10
    assert len(model.embed_query("text", Label.PUBLIC, 5)) == 384


@pytest.mark.parametrize("kind", ["NaN", "other dimensions", "a redirect", "another status"])
def test_no_chunk_is_skipped_by_a_server_that_answers_for_no_text(server, kind):
    model = server.model()
    server.answer = lambda handler, texts: answers(handler, texts, kind)

    assert _HOSTILE[kind] in failure(lambda: model.embed_chunks(["one", "two", "three"], level=Label.PUBLIC))
    assert len(server.texts) < 10


@pytest.mark.parametrize(
    "kind", sorted(_HOSTILE.keys() - {"other dimensions", "too few", "infinite", "a huge integer"})
)
def test_a_hostile_answer_to_the_first_request_is_an_error(server, kind):
    server.answer = lambda handler, texts: answers(handler, texts, kind)
    model = server.new_model()
    failure(model.calibrate)

    assert model.number is None


def test_a_redirect_is_not_followed(server):
    with embedding_server() as other:
        model = server.model()
        server.answer = lambda handler, _: answer_body(handler, b"", 307, Location=f"{other.url}/embeddings")
        failure(lambda: model.embed_query(_SECRET, Label.PUBLIC, 5))

        assert other.requests == []


def test_an_endless_body_is_read_to_a_limit_only(server):
    sent = 0

    def endless(handler, _):
        nonlocal sent
        handler.send_response(200)
        handler.end_headers()
        while True:
            sent += handler.wfile.write(b"[" * 65536)

    model = server.model()
    server.answer = endless
    text = failure(lambda: model.embed_query("text", Label.PUBLIC, 5))

    assert "longer than" in text
    assert sent < 16 * 1024 * 1024  # what fits into the buffers of the connection


@pytest.mark.parametrize("part", ["head", "body"])
def test_an_answer_that_drips_is_cut_off(server, part):
    """Each byte begins the timeout of a socket anew."""

    def drip(handler, _):
        if part == "body":
            handler.send_response(200)
            handler.end_headers()
        for _ in range(200):
            handler.wfile.write(b"X")
            time.sleep(0.05)

    model = server.model()
    server.answer = drip
    before = time.monotonic()
    text = failure(lambda: model.embed_query("text", Label.PUBLIC, 0.5))

    assert "did not answer within 0.5 s" in text
    assert time.monotonic() - before < 8


def test_an_answer_that_drips_is_cut_off_however_long_it_took_to_connect(server, monkeypatch):
    """A slow name server uses up the time before there is a connection to cut off."""
    connect = socket.create_connection

    def connect_late(*given):
        time.sleep(0.4)
        return connect(*given)

    model = server.model()
    model.close()
    sent = len(server.requests)
    monkeypatch.setattr(socket, "create_connection", connect_late)
    text = failure(lambda: model.embed_query(_SECRET, Label.PUBLIC, 0.2))

    assert "did not answer within 0.2 s" in text
    assert len(server.requests) == sent


def test_a_vector_too_short_to_have_a_direction_becomes_zeros(server):
    """Its length would be divided by: a number that is nearly zero overflows."""
    server.answer = lambda handler, texts: answer_with(handler, [[0.0, 0.0]] * len(texts))
    model = server.model()
    server.answer = lambda handler, texts: answer_with(handler, [[1e-320, 0.0]] * len(texts))

    assert model.embed_query("text", Label.PUBLIC, 5) == [0, 0]


def test_a_server_that_is_silent_is_not_waited_for(server):
    model, ended = server.model(), threading.Event()
    server.answer = lambda *_: ended.wait(10)
    before = time.monotonic()
    text = failure(lambda: model.embed_query("text", Label.PUBLIC, 0.3))
    ended.set()

    assert "did not answer within 0.3 s" in text
    assert time.monotonic() - before < 8


def test_nothing_listens_at_the_address():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        model = RemoteModel(RemoteConfig(url, "stub", PUBLIC))

        assert "cannot be reached" in failure(model.calibrate)


def test_a_server_without_tls_is_refused_where_tls_is_wanted():
    def answer() -> None:
        with plain.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(b"no TLS\r\n" * 10)

    with socket.create_server(("127.0.0.1", 0)) as plain:
        threading.Thread(target=answer, daemon=True).start()
        model = RemoteModel(RemoteConfig(f"https://127.0.0.1:{plain.getsockname()[1]}", "stub", PUBLIC))

        assert "TLS failed" in failure(model.calibrate)


def test_a_local_name_that_leads_elsewhere_is_not_used(server, monkeypatch):
    """ "localhost" is a name like others. Under it, all levels may be sent."""
    monkeypatch.setattr(
        "muniment_server.embedder.remote.client._leads_to_this_machine", lambda connected: connected.fileno() < 0
    )

    assert "another machine" in failure(server.new_model().calibrate)
    assert server.requests == []


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {"Retry_After": "7"}, 7),
        (400, {"Retry_After": "7"}, 7),
        (500, {"Retry_After": "7"}, 7),
        (429, {"Retry_After": "9" * 9}, 300),
        (429, {"Retry_After": "0"}, 1),
        (429, {"Retry_After": "Fri, 27 Nov 2026 08:00:00 GMT"}, 1),
        (429, {}, 1),
        (503, {"Retry_After": "0.5"}, 1),
        (503, {}, 0),
    ],
)
def test_the_server_says_when_to_try_again(server, status, headers, seconds):
    model = server.model()
    server.answer = lambda handler, _: answer_body(handler, b"", status, **headers)
    with pytest.raises(RemoteModelError) as caught:
        model.embed_query("text", Label.PUBLIC, 5)

    assert (caught.value.retry_after, caught.value.may_be_the_text) == (seconds, status == 400)


def test_nothing_of_what_is_sent_or_received_is_logged(server, caplog):
    caplog.set_level(logging.DEBUG)
    model = server.model()
    for kind in _HOSTILE:
        server.answer = lambda handler, texts, kind=kind: answers(handler, texts, kind)
        failure(lambda: model.embed_query(_SECRET, Label.PUBLIC, 5))

    assert _SECRET not in caplog.text
    assert "secrets" not in caplog.text


# Options.


@pytest.mark.parametrize(
    ("url", "place", "path"),
    [
        ("https://api.example/v1", "api.example:443", "/v1/embeddings"),
        ("https://api.example:8443/v1/", "api.example:8443", "/v1/embeddings"),
        ("https://api.example", "api.example:443", "/v1/embeddings"),
        ("https://api.example/openai/v1/embeddings", "api.example:443", "/openai/v1/embeddings"),
        ("http://127.0.0.1:11434", "127.0.0.1:11434", "/v1/embeddings"),
        ("http://[::1]:80/v1", "[::1]:80", "/v1/embeddings"),
        ("unix:/run/tei.sock", "unix:/run/tei.sock", "/v1/embeddings"),
    ],
)
def test_a_url_is_that_of_the_interface(url, place, path):
    address = parse_url(url)

    assert (str(address), address.path) == (place, path)


@pytest.mark.parametrize(
    "url",
    [
        "", "api.example", "ftp://api.example", "https://", "https://a b/v1", "https://api.example/?key=x",
        "https://api.example/#x", "https://user:password@api.example/v1", "https://api.example:99999", "unix:tei.sock",
        "https://api.example/\nv1", "https://ex\u00e4mple.example",
    ],
)  # fmt: skip
def test_other_urls_are_refused(url):
    with pytest.raises(RemoteConfigError):
        parse_url(url)


@pytest.mark.parametrize("kind", [RemoteConfig, RerankerConfig])
@pytest.mark.parametrize(
    "url",
    [
        "https://api.example/v1?api-key=hunter2", "https://api.example/v1#hunter2", "https://me:hunter2@api.example/v1",
        "https://me:hunter2@api.example:99999", "me:hunter2@api.example/v1", "ftp://hunter2.example", "hunter2",
        "unix:hunter2", "https://api.example/hunter2 /v1",
    ],
)  # fmt: skip
def test_a_url_that_is_refused_is_not_repeated_with_the_password_in_it(kind, url):
    """The error is printed, and ends up in logs. It names the option instead."""
    with pytest.raises(RemoteConfigError) as caught:
        parse_url(url, kind.endpoint)

    assert str(caught.value).startswith(f"{kind.endpoint.option} ")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "ceiling"),
    [
        ("https://api.example/v1", PUBLIC), ("https://127.0.0.1.example/v1", PUBLIC), ("https://10.0.0.1/v1", PUBLIC),
        ("https://127.0.0.1/v1", RESTRICTED), ("http://127.9.9.9:1/v1", RESTRICTED),
        ("http://localhost/v1", RESTRICTED), ("http://[::1]/v1", RESTRICTED), ("unix:/s", RESTRICTED),
    ],
)  # fmt: skip
def test_the_ceiling_is_public_unless_only_this_machine_is_reached(url, ceiling):
    def of(level):
        config = RemoteConfig.of_options(url, "m", None, level)
        assert config is not None
        return config.ceiling

    assert of(None) == ceiling
    assert [of(level) for level in Classification] == list(Classification)


def test_options_that_do_not_fit_are_refused(tmp_path: Path):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "lines").write_text("one\ntwo\n")
    local = "http://127.0.0.1/v1"
    refused = [
        (None, "m", None, None), (None, None, tmp_path, None), (None, None, None, PUBLIC), (local, None, None, None),
        (local, "", None, None), (local, "a\nb", None, None), (local, "m" * 257, None, None),
        ("http://api.example/v1", "m", None, None), (local, "m", tmp_path / "empty", None),
        (local, "m", tmp_path / "lines", None),
    ]  # fmt: skip

    for options in refused:
        with pytest.raises(RemoteConfigError):
            RemoteConfig.of_options(*options)
    with pytest.raises(RemoteConfigError):
        RemoteConfig.of_options(None, None, None, None, 64)
    with pytest.raises(FileNotFoundError):
        RemoteConfig.of_options(local, "m", tmp_path / "absent", None)
    assert RemoteConfig.of_options(None, None, None, None) is None
