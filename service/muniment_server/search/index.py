"""Maintains the search index when an item is written. See `index.sql`."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from muniment_server.domain.items import ItemKind
from muniment_server.monitor.session_scope import SessionScope, Statement
from muniment_server.search import languages
from muniment_server.search.chunks import Chunk, chunks
from muniment_server.search.grams import folded_words, grams, grams_of_words
from muniment_server.search.marks import marks

IndexedText: TypeAlias = Mapping[str, object]
"""The part of an index entry that depends on the text alone: its language and chunks."""
IndexEntry: TypeAlias = Mapping[str, object]
"""The index entry of one version, as `index_items` takes it. Without chunks, the version is not indexed."""

_STEMMERS = json.dumps(dict(languages.STEMMERS))
_LATER_HEADER_CHARS = 100
"""How many code points of the header later chunks repeat. The whole header in 849 chunks took half a minute."""
_SEPARATORS = re.compile(r"[\W_]+")
_FOLD_ONCE_IN = 64
"""After how many writes the term statistics are folded, on average."""


def entry(
    kind: ItemKind, name: str, change_id: UUID, content: str, *, author: str | None = None, tags: Iterable[str] = ()
) -> IndexEntry:
    """The index entry of a version with this text."""
    return entry_of(name, change_id, indexed_text(kind, name, content, author=author, tags=tags))


def entry_of(name: str, change_id: UUID, text: IndexedText) -> IndexEntry:
    """The index entry of a version whose text has been indexed."""
    return {"name": name, "change_id": str(change_id), **text}


def indexed_text(
    kind: ItemKind, name: str, content: str, *, author: str | None = None, tags: Iterable[str] = ()
) -> IndexedText:
    """Split *content* into chunks. Each gets a header, the words of name, author and tags; later chunks a short one."""
    first = header(kind, name, author, tags)
    later = first[:_LATER_HEADER_CHARS]
    grams_of_header = {text: grams(text) for text in {first, later}}

    def indexed(number: int, chunk: Chunk) -> Mapping[str, object]:
        own_header = later if number else first
        text = chunk.of(content)
        words = folded_words(text)
        return {
            "number": number,
            "start": chunk.start,
            "size": chunk.size,
            "sample": zlib.crc32(text.encode()) - 2**31,
            "header": own_header,
            "marks": marks(author, text, words) if kind is ItemKind.PASSAGE else [],
            "grams": list(dict.fromkeys([*grams_of_header[own_header], *grams_of_words(words)])),
        }

    return {
        "language": languages.stemmer(content),
        "chunks": [indexed(number, chunk) for number, chunk in enumerate(chunks(content))],
    }


def header(kind: ItemKind, name: str, author: str | None, tags: Iterable[str]) -> str:
    """The words that the first chunk is indexed with, besides its own: of a memory's key, of author and tags."""
    return " ".join([*_words_of_key(kind, name), *([author] if author else []), *tags])


def no_entry(name: str, change_id: UUID) -> IndexEntry:
    """The entry of a deleted item."""
    return {"name": name, "change_id": str(change_id)}


def update(scope: SessionScope, kind: ItemKind, entries: Sequence[IndexEntry], change_id: UUID) -> Iterator[Statement]:
    """The statements that update the index after a write, in the same transaction."""
    index = index_statement(kind, entries)
    yield Statement("index_items", {**index.parameters, "change_id": change_id})
    if kind is ItemKind.PASSAGE:
        yield queue_statement(kind, entries)
        if deleted := [entry["name"] for entry in entries if "chunks" not in entry]:
            yield Statement("forget_passages", {"kind": kind, "names": deleted})
    if change_id.int % _FOLD_ONCE_IN == 0:
        yield Statement("fold_stats", {"kind": kind, "fold_id": scope.new_uuid()})


def index_statement(kind: ItemKind, entries: Sequence[IndexEntry]) -> Statement:
    """The statement that writes the chunks of *entries*."""
    names = [entry["name"] for entry in entries]
    parameters = {"kind": kind, "names": names, "texts": json.dumps(entries), "stemmers": _STEMMERS}
    return Statement("index_items", parameters)


def queue_statement(kind: ItemKind, entries: Sequence[IndexEntry]) -> Statement:
    """The statement that queues the chunks of *entries* for embedding."""
    names = [entry["name"] for entry in entries]
    changes = [entry["change_id"] for entry in entries]
    return Statement("queue_chunks", {"kind": kind, "names": names, "changes": changes})


def _words_of_key(kind: ItemKind, name: str) -> list[str]:
    """The words of a memory's key, split at punctuation. None for other kinds: their names are ids."""
    return _SEPARATORS.sub(" ", name).split() if kind is ItemKind.MEMORY else []
