"""What search finds of an item, made when the item is written: see `index_items` in queries/search.sql."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from psycopg.types.json import Jsonb

from muniment_server.domain.records import ItemKind
from muniment_server.monitor.session_scope import Query
from muniment_server.search import languages
from muniment_server.search.chunks import pieces
from muniment_server.search.grams import grams

Text: TypeAlias = Mapping[str, object]
"""What is indexed of one version, as the statement takes it. With a name only: nothing."""

_STEMMERS = json.dumps(dict(languages.STEMMERS))
_LATER_HEADER_CHARS = 100
"""Code points of the header that pieces after the first repeat. All of it, in each of 849, was half a minute."""
_SEPARATORS = re.compile(r"[\W_]+")


def text_of(kind: ItemKind, name: str, content: str, *, author: str | None = None, tags: Iterable[str] = ()) -> Text:
    """*content* in pieces: the first found by its header too, the others by its beginning. The date is added later."""
    first = " ".join([*_named(kind, name), *([author] if author else []), *tags])
    later = first[:_LATER_HEADER_CHARS]
    grams_of_header = {header: grams(header) for header in (first, later)}
    return {
        "name": name,
        "language": languages.stemmer(content),
        "pieces": [
            {
                "number": number,
                "start": piece.start,
                "size": piece.size,
                "sample": zlib.crc32(piece.of(content).encode()) - 2**31,
                "header": header,
                "grams": list(dict.fromkeys([*grams_of_header[header], *grams(piece.of(content))])),
            }
            for number, piece in enumerate(pieces(content))
            for header in (later if number else first,)
        ],
    }


def _named(kind: ItemKind, name: str) -> list[str]:
    """The words of a key: it is no file name and no host. Other names are ids."""
    return _SEPARATORS.sub(" ", name).split() if kind is ItemKind.MEMORY else []


def nothing_of(name: str) -> Text:
    """What is indexed of a name that is deleted."""
    return {"name": name}


def index_query(kind: ItemKind, texts: Sequence[Text]) -> Query:
    """The statement that keeps the index of items of these names, after a write of them."""
    names = [text["name"] for text in texts]
    changes = [text["change_id"] for text in texts if "change_id" in text]
    parameters = {"kind": kind, "names": names, "changes": changes, "texts": Jsonb(texts), "stemmers": _STEMMERS}
    return Query("index_items", parameters)
