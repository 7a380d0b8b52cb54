"""A real server with a real program beside it that serves a model: llama.cpp with all-MiniLM-L6-v2."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import muniment
from muniment import Classification
from tests.proof.faults.processes import ServerProcess, wait_until
from tests.support.ports import free_port
from tests.support.words import ROOT

_PYTHON = ROOT / ".venv-llama/bin/python"
_SLOW = 120.0

pytestmark = [
    pytest.mark.proof,
    pytest.mark.deep,
    pytest.mark.skipif(not (ROOT / ".venv-llama/.stamp").exists(), reason="needs `make .venv-llama/.stamp`"),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where llama.cpp serves the model."""
    file = tmp_path_factory.mktemp("llama") / "minilm.gguf"
    subprocess.run([_PYTHON, Path(__file__).with_name("model.py"), file], check=True, timeout=_SLOW)
    command: list[str | Path] = [_PYTHON, Path(__file__).with_name("server.py"), file, str(free_port())]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate(timeout=_SLOW)


@pytest.fixture(scope="module")
def server(url: str) -> Iterator[ServerProcess]:
    server = ServerProcess("--embedder", url, "--embedder-model", "minilm", "--embedder-ceiling", "internal")
    try:
        server.start()
        muniment.connect(server.address, host_key=server.host_key, timeout=20).create_agent("alice")
        yield server
    finally:
        server.destroy()


def at(server: ServerProcess, level: Classification) -> muniment.SessionClient:
    return muniment.connect(server.address, host_key=server.host_key, timeout=20).open_session("alice", level)


def vectors(server: ServerProcess, level: str) -> int:
    """How many chunks of *level* have a vector by llama.cpp's model: of 384 dimensions, and not all zeros."""
    with server.as_owner() as owner:
        return owner.execute(
            f"SELECT FROM muniment_{level}.remote_embedding"
            " WHERE cardinality(vector) = 384 AND vector <> array_fill(0::smallint, ARRAY[384])".encode()
        ).rowcount


def test_its_embeddings_find_what_no_word_finds(server):
    saved = {"pet": "the kitten sleeps on the sofa", "money": "the stock market fell", "trip": "the ferry was late"}
    for key, content in saved.items():
        at(server, Classification.PUBLIC).save_memory(key, content)
    at(server, Classification.RESTRICTED).save_memory("secret", "the tiger sleeps in the cellar")
    wait_until(lambda: vectors(server, "public") == len(saved), "all is embedded", seconds=_SLOW)

    found = at(server, Classification.PUBLIC).search_memories("a cat at rest")

    assert found.results[0].memory.key == "pet"
    assert vectors(server, "restricted") == 0


def test_a_chunk_that_is_longer_than_the_model_reads_is_embedded_in_part(server):
    """Each Han character is a token, of which the model reads 512."""
    han = "".join(map(chr, range(0x4E00, 0x4E00 + 1000)))
    at(server, Classification.INTERNAL).save_memory("long", han)
    wait_until(lambda: vectors(server, "internal") == 1, "it is embedded", seconds=_SLOW)
