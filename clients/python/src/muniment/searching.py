"""A tool for any framework, with which a model searches everything that its session sees.

An adapter finds only what it has stored itself. `search_tool` finds what other adapters, other programs and the model
have stored: memories, files, notes and passages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from muniment._blocking import require_blocking
from muniment._json import json_text
from muniment._reserved import source_of
from muniment.session import SessionClient
from muniment.values import Classification, Tier

__all__ = ["search_tool"]

MAX_QUERY_CHARS = 1024
"""The size limit of a query. Longer ones are cut."""


def search_tool(session: SessionClient, *, max_results: int = 10) -> Callable[[str], str]:
    """A function that frameworks accept as a tool: it has a name, types and a description for the model.

    It finds up to *max_results* memories, notes of each tier, and passages. It returns JSON: a list of what was found,
    each kind best first, with its kind, its name (a key or an id), its source (the adapter that stored it, such as
    `files`, or else the kind), its level, and the part of its text that matches. Raises the errors of
    `muniment.errors`.
    """
    require_blocking(session)

    def search_memory(query: str) -> str:
        """Search what earlier conversations have saved: memories, files, notes and passages, best first.

        Use it before you answer anything that may depend on earlier conversations, and before you ask the user
        something that you may already know. The query is plain language: a question, or words.
        """
        words = query.strip()[:MAX_QUERY_CHARS]
        return json_text(list(_found(session, words, max_results)) if words else [])

    return search_memory


def _found(session: SessionClient, query: str, most: int) -> Iterator[dict[str, str]]:
    for one in session.search_memories(query, max_results=most):
        memory = one.memory
        yield _entry("memory", memory.key, [memory.key], memory.classification, one.snippet)
    for tier in Tier:
        for each in session.search_notes(query, tier=tier, max_results=most):
            yield _entry("note", each.note.note_id, [], each.note.classification, each.snippet)
    for other in session.search_passages(query, max_results=most):
        passage = other.passage
        yield _entry("passage", passage.passage_id, passage.tags, passage.classification, other.snippet)


def _entry(kind: str, name: str, names: Iterable[str], level: Classification, text: str) -> dict[str, str]:
    source = source_of(names, kind)
    return {"kind": kind, "name": name, "source": source, "classification": level.name, "text": text}
