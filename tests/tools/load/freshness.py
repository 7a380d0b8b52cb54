"""How long after a save a search finds the memory: by its words, and by its embedding.

By words: a search for a word that no other memory has. By embedding: an English sentence, searched for in Chinese, so
that query and memory have no word and no n-gram in common. The agent has nothing else, but shares the database.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import muniment
from muniment import Classification, SessionClient
from tests.tools.bench.processes import Service
from tests.tools.load.figures import Figures

_POLL_SECONDS = 0.01
_TIMEOUT = 20.0
_SENTENCE_CHARS = 300


class Freshness(NamedTuple):
    """Times from the beginning of a save to the answer that holds the memory."""

    by_words: Figures
    by_embedding: Figures
    not_found: int
    """By embedding, within 20 s. They are missing in *by_embedding*."""


def pairs(data: Path) -> Sequence[tuple[str, str]]:
    """English sentences and the same in Chinese, without a Latin letter or a digit."""
    english, chinese = (_paragraphs(data / "xquad" / f"{language}.json") for language in ("en", "zh"))
    firsts = (
        (one.split(". ")[0][:_SENTENCE_CHARS], other.split("。")[0])
        for one, other in zip(english, chinese, strict=True)
    )
    return [pair for pair in firsts if not re.search(r"[A-Za-z0-9]", pair[1])]


def measure(service: Service, asked: Iterable[tuple[str, str]]) -> Freshness:
    """Save and search each of *asked*, one after another."""
    words, embedded = [], []
    with muniment.connect(service.address, host_key=service.host_key, timeout=30) as host:
        agent_id = f"fresh-{uuid.uuid4().hex[:8]}"
        host.create_agent(agent_id)
        session = host.open_session(agent_id, Classification.INTERNAL)
        for text, query in asked:
            word = uuid.uuid4().hex
            words.append(_seconds_to_find(session, f"{text} {word}", word))
            embedded.append(_seconds_to_find(session, text, query))
    found = [seconds for seconds in embedded if seconds is not None]
    return Freshness(Figures.of(filter(None, words)), Figures.of(found), len(embedded) - len(found))


def _seconds_to_find(session: SessionClient, content: str, query: str) -> float | None:
    """Save a memory, search until it is found, and delete it. None if it is not found in time."""
    key = uuid.uuid4().hex
    begun = time.monotonic()
    session.save_memory(key, content)
    try:
        while time.monotonic() < begun + _TIMEOUT:
            if any(result.memory.key == key for result in session.search_memories(query)):
                return time.monotonic() - begun
            time.sleep(_POLL_SECONDS)
        return None
    finally:
        session.delete_memory(key)


def _paragraphs(path: Path) -> Iterator[str]:
    for article in json.loads(path.read_text("utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            yield paragraph["context"]
