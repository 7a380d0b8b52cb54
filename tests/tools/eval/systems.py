"""What is compared: the service, and two things that people use otherwise, on the same texts and questions."""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Sequence
from typing import Any, Protocol

import psycopg

from muniment import Classification, HostClient, NewPassage
from tests.tools.eval.corpora import Corpus, Document

MOST = 10
_TRIES = 50
"""On a machine that is busy a query may wait in vain for its vector."""
_NAMES = uuid.UUID("0b1c4c61-5f0e-4d55-9d0c-6a1f4b0a7d11")


class System(Protocol):
    """Something that remembers the documents of one corpus."""

    def search(self, question: str) -> Sequence[str]:
        """The ids of the best matches, best first."""
        ...


class Muniment:
    """The service, through its client. Documents are passages of one agent."""

    name = "Muniment"
    semantic = True

    def __init__(self, host: HostClient, corpus: Corpus) -> None:
        host.create_agent(corpus.agent_id)
        self._session = host.open_session(corpus.agent_id, Classification.INTERNAL)
        self._ids = {str(uuid.uuid5(_NAMES, one.document_id)): one.document_id for one in corpus.documents}
        self._session.import_passages(map(_passage, corpus.documents), timeout=600)

    def search(self, question: str) -> Sequence[str]:
        for _ in range(_TRIES):
            found = self._session.search_passages(question[:1024], max_results=MOST, timeout=30)
            if found.semantic == self.semantic:
                break
        else:
            raise RuntimeError(f"{self.name}: searches go by {'words alone' if self.semantic else 'meaning, too'}")
        return [self._ids[result.passage.passage_id] for result in found.results]


class ByAddress(Muniment):
    """The same with a model at an address. If that is the built-in one, it should find the same."""

    name = "by an address"


class WordsAlone(Muniment):
    """The same without an embedder."""

    name = "words alone"
    semantic = False


def _passage(document: Document) -> NewPassage:
    return NewPassage(
        document.content,
        thread=document.thread,
        author=document.author,
        event_time=document.time,
        passage_id=str(uuid.uuid5(_NAMES, document.document_id)),
    )


class Fts5:
    """SQLite's full-text search as it is done right: porter, any word, bm25()."""

    name = "SQLite FTS5"

    def __init__(self, _: HostClient, corpus: Corpus) -> None:
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.execute(
            "CREATE VIRTUAL TABLE document USING fts5(id UNINDEXED, text, tokenize='porter unicode61')"
        )
        rows = [(one.document_id, one.text) for one in corpus.documents]
        self._connection.executemany("INSERT INTO document VALUES (?, ?)", rows)

    def search(self, question: str) -> Sequence[str]:
        words = " OR ".join(f'"{word}"' for word in _words(question))
        rows = self._connection.execute(
            "SELECT id FROM document WHERE document MATCH ? ORDER BY bm25(document), rowid LIMIT ?", (words, MOST)
        )
        return [name for (name,) in rows]


class Ilike:
    """Postgres' ILIKE of any word, by how many words are there."""

    name = "ILIKE"

    def __init__(self, admin: psycopg.Connection[Any], corpus: Corpus) -> None:
        self._connection = admin
        self._table = f"ilike_{uuid.uuid4().hex}"
        admin.execute(f"CREATE TEMP TABLE {self._table} (number serial, id text, text text)".encode())
        with admin.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {self._table} (id, text) VALUES (%s, %s)".encode(),
                [(one.document_id, one.text) for one in corpus.documents],
            )

    def search(self, question: str) -> Sequence[str]:
        patterns = [f"%{word}%" for word in _words(question)]
        rows = self._connection.execute(
            f"SELECT id, (SELECT count(*) FROM unnest(%s::text[]) AS word WHERE text ILIKE word) AS words"
            f" FROM {self._table} ORDER BY words DESC, number LIMIT %s".encode(),
            (patterns, MOST),
        )
        return [name for name, count in rows.fetchall() if count]


def _words(question: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\w+", question.lower())))
