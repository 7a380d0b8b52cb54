"""Times, ids, secrets and embeddings that are the same in both worlds: ids are functions of the operation.

They are injected, never masked: a mask would hide a leak.
"""

from __future__ import annotations

import hmac
import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import grpc
import pytest

from muniment_server.domain.classification import Classification, Label
from muniment_server.search.embeddings import RemoteVector, Vector
from muniment_server.search.reranking import LabeledText, Reranker
from muniment_server.search.search import PendingRemoteVector, Searcher
from muniment_server.transport.dispatch import Dispatcher
from tests.support.databases import Database
from tests.support.embedders import quick
from tests.support.services import Service, serving

BEGINNING = datetime(2030, 1, 1, tzinfo=UTC)
OPERATION = "test-operation"
"""The key of the metadata that name the operation of a call. The server ignores it; its ids are made of it."""
_KEY = b"the same in both worlds"
_ALIKE = {"the": "meeting", "user": "budget", "name": "running"}
"""Words of queries that no item holds, and the words that the embedder takes them for."""
REMOTE_MODEL = 7
"""The number of the model at the address, where there is one."""
_ALIKE_REMOTELY = {"the": "running", "user": "meeting", "name": "budget"}
"""What that model takes such words for."""
_serve = Dispatcher._serve


class ReplayedIds:
    """Ids and secrets that are a function of the operation and of how many it has drawn. A thread serves one call."""

    def __init__(self) -> None:
        self._call = threading.local()

    def begin(self, operation: str) -> None:
        """What this thread draws from now on belongs to *operation*."""
        self._call.operation, self._call.drawn = operation, 0

    def new_uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._draw()[:16], version=4)

    def new_number(self) -> int:
        return int.from_bytes(self._draw()[:8]) >> 1 | 1

    def new_secret(self) -> bytes:
        return self._draw()

    def _draw(self) -> bytes:
        self._call.drawn += 1
        return derived(f"{self._call.operation}/{self._call.drawn}")


def derived(name: str) -> bytes:
    """32 bytes that depend on *name* only."""
    return hmac.digest(_KEY, name.encode(), "sha256")


def embedding_of(text: str) -> Vector:
    """The embedding of a text, the same in both worlds."""
    return quick(text, _ALIKE)


def remote_embedding_of(text: str) -> Vector:
    """The embedding of a text by the model at the address, the same in both worlds."""
    return quick(text, _ALIKE_REMOTELY)


def remote_query(text: str, label: Label, *, ceiling: int) -> PendingRemoteVector | None:
    """Starts to embed a query by that model, up to *ceiling*. A third get none: it is slow, wrong or away."""
    if label.level > ceiling:
        return None
    found = None if derived(text)[0] % 3 == 0 else RemoteVector(REMOTE_MODEL, remote_embedding_of(text))
    return lambda: found


def ask_remotely(monkeypatch: pytest.MonkeyPatch, *, ceiling: int) -> None:
    """Give a server that model, and a reranker, up to *ceiling*."""
    asked = partial(remote_query, ceiling=ceiling)
    monkeypatch.setattr(Searcher, "_embed_remotely", property(lambda _: asked), raising=False)
    reranker = Reranker(Classification(ceiling), rerank)
    monkeypatch.setattr(Searcher, "_reranker", property(lambda _: reranker), raising=False)


def rerank(query: str, texts: Sequence[LabeledText], level: Label) -> Sequence[int] | None:
    """The order of a reranker that depends on all that it is sent. A third get none: it is late, wrong or down."""
    sent = json.dumps([query, level.value, [(one.level.value, one.text) for one in texts]])
    match derived(sent)[0] % 9:
        case 0:
            return None
        case 1:
            return [0] * len(texts)
        case 2:
            return range(len(texts) + 1)
    return sorted(range(len(texts)), key=lambda index: derived(f"{sent}/{texts[index].text}"))


def _serve_operation(self: Any, method: Any, proceed: Any, incoming: Any, context: grpc.ServicerContext) -> Any:
    ids = self._scopes._ids
    if isinstance(ids, ReplayedIds):
        ids.begin(str(dict(context.invocation_metadata() or ()).get(OPERATION)))
    return _serve(self, method, proceed, incoming, context)


@contextmanager
def replayed(database: Database) -> Iterator[Service]:
    """Serve *database* with such ids and embeddings."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Dispatcher, "_serve", _serve_operation)
        with serving(database, ids=ReplayedIds(), embed=embedding_of) as service:
            yield service
