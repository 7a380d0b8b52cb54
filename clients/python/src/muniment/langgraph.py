"""A store for LangGraph's long-term memory. Requires the extra `muniment[langgraph]`.

`MunimentStore` is a `langgraph.store.base.BaseStore`. An item is a keyed memory of the session's agent: its key is the
namespace and the key (`muniment:langgraph/users.42/theme` for `("users", "42")` and `"theme"`), its content the value
as JSON, its tags the namespace and all its parents, by which the server filters a search. A model cannot save a memory
that is an item: `muniment:` is refused to its tools. The store never changes other memories of the agent, and it shows
them only under a namespace that you name: see `MunimentStore`.

It behaves like LangGraph's own stores, except for this:

- Levels apply. Items above the session's taint do not exist. `put` writes at the taint, and so shadows a lower item.
  `delete` deletes at the taint: a lower item that was shadowed is visible again, and an item that exists only below the
  taint raises `WriteLevelMismatch`.
- `search` without a query returns items by namespace and key. With a query, it returns only matches, best first and
  with scores, from the 100 best, even if a filter passes few of these. A score is the relevance of an item, from 0 to
  1, or that of the item before it if that is lower: below 0.3 an item hardly fits. It searches all words of a key and a
  value, so a `put` with `index` raises ValueError: a field that must not be found would be.
- What was put is found by its words at once, and by its meaning as soon as the server has made an embedding of it,
  which it does after it has answered. No call waits for that: `get` has the item at once.
- A comparison such as `{"age": {"$gt": 30}}` does not match values that are neither numbers nor texts such as "31", and
  does not raise. With anything else to compare with, it raises ValueError. As in JSON, `true` does not equal 1.
- A filter treats a field that an item lacks as None, as LangGraph's InMemoryStore for Python does. That for JavaScript
  does not, and neither does Muniment's store in TypeScript.
- A put that replaces an item keeps `created_at`; one that changes nothing also keeps `updated_at`.
- An item expires its `ttl` after the last put. Reading does not extend that: `refresh_ttl` has no effect, and a `ttl`
  configuration with `refresh_on_read` raises ValueError.
- A namespace is listed only while it contains an item.
- A memory that has anything but a JSON object, or one that is nested more deeply than Python reads (about 1,000
  levels), is no item, also if another language's store put it.
- A value that would not come back the same raises: TypeError if a name in it is not a string, or if JSON has no such
  type, and ValueError for infinity and NaN. So do a negative `limit` or `offset`, and a condition on namespaces that is
  neither `prefix` nor `suffix`: ValueError.
- A batch reads before it writes, and executes only the last of several puts of an item: first the deletions, then the
  others, up to 100 and 128 KiB in one transaction.
- Namespace (labels joined with dots) and key have at most 236 characters together, and a value 128 KiB; otherwise
  `InvalidArgument`. Some characters are written as `%XX`, which counts as three or more: `%`, `.`, `/`, characters that
  keys must not contain, and those added after Unicode 3.2.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, islice
from typing import Any, Self, TypedDict

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from muniment._batches import batches
from muniment._blocking import require_blocking
from muniment._connect import connect_session
from muniment._json import json_text, object_of
from muniment._langgraph_filter import passes, require_filter
from muniment._langgraph_names import TAG, Namespace, key_of, namespace_of, prefix_of, tag_of, tags_of, unescaped
from muniment._listing import undisturbed
from muniment._reserved import source_of
from muniment.errors import MemoryNotFound
from muniment.session import SessionClient
from muniment.values import Memory, NewMemory

MAX_PAGE_SIZE = 250
MAX_RESULTS = 100
MAX_QUERY_CHARS = 1024


class MunimentStore(BaseStore):
    """A store for one session: the items of its agent, up to the session's taint.

    It does not close the session. Safe to use from several threads. Raises errors of `muniment.errors`, and LangGraph's
    `InvalidNamespaceError`. *ttl* may have a `default_ttl`, in minutes.

    *others* is a namespace under which the store also shows memories that are not its items: plain memories, files, and
    what other adapters have stored. Such an item has the key of the memory; its value has the `content`, and the
    `source`, such as `memory` or `files`. It can be found, listed and read; a put there raises ValueError.
    """

    __slots__ = ("_others", "_session", "ttl_config")

    supports_ttl = True

    def __init__(
        self, session: SessionClient, *, ttl: TTLConfig | None = None, others: Namespace | None = None
    ) -> None:
        if ttl and ttl.get("refresh_on_read"):
            raise ValueError("refresh_on_read is not supported: reading does not extend the ttl of an item")
        if others is not None and not others:
            raise ValueError("others needs a namespace of its own, such as ('others',)")
        require_blocking(session)
        self._session = session
        self._others = others
        self.ttl_config = ttl

    @classmethod
    @contextmanager
    def from_env(cls, *, ttl: TTLConfig | None = None, others: Namespace | None = None) -> Iterator[Self]:
        """A store for the session of MUNIMENT_ADDRESS, MUNIMENT_TOKEN and MUNIMENT_TLS_CA, as a context manager.

        At the end it closes the connection, and leaves the session open. ValueError: the variables are incomplete.
        """
        with connect_session() as session:
            yield cls(session, ttl=ttl, others=others)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute all reads, then the last write of each item."""
        results: list[Result] = []
        puts: dict[tuple[Namespace, str], PutOp] = {}
        for op in ops:
            validate_op_namespace(op)
            _require_page(op)
            if isinstance(op, PutOp):
                _require_no_index(op)
                self._require_own(op.namespace)
                puts[op.namespace, op.key] = op
                results.append(None)
            else:
                results.append(self._read(op))
        self._write(puts.values())
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, in a thread of the event loop's default executor.

        `muniment.aio` cannot replace it: its clients belong to one event loop, but one store serves every loop of a
        program, and nodes without a loop.
        """
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: GetOp | SearchOp | ListNamespacesOp) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _get(self, op: GetOp) -> Item | None:
        key = op.key if op.namespace == self._others else key_of(op.namespace, op.key)
        try:
            fields = self._fields(self._session.get_memory(key))
        except MemoryNotFound:
            return None
        return None if fields is None or fields["namespace"] != op.namespace else Item(**fields)

    def _require_own(self, namespace: Namespace) -> None:
        if self._others is not None and namespace[: len(self._others)] == self._others:
            raise ValueError("what is under `others` can only be read: save it with the client")

    def _shows_others(self, prefix: Namespace) -> bool:
        """Whether the namespaces with *prefix* include that of the other memories."""
        return self._others is not None and self._others[: len(prefix)] == prefix

    def _fields(self, memory: Memory) -> _Fields | None:
        """The fields of an item, or of another memory if the store shows these."""
        item = _fields(memory)
        if item is not None or self._others is None:
            return item
        value = {"content": memory.content, "source": source_of([memory.key], "memory")}
        return _with_times(memory, self._others, memory.key, value)

    def _write(self, puts: Iterable[PutOp]) -> None:
        """Delete the items without a value and save the rest. All are first converted to JSON, since that may fail."""
        saved, deleted = [], []
        for put in puts:
            key = key_of(put.namespace, put.key)
            if put.value is None:
                deleted.append(key)
            else:
                saved.append(_Saved(key, _content(dict(put.value)), tags_of(put.namespace), put.ttl))
        for key in deleted:
            with suppress(MemoryNotFound):  # LangGraph does not report whether there was an item to delete
                self._session.delete_memory(key)
        for batch in batches(saved):
            self._session.save_memories(one.memory() for one in batch)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        require_filter(op.filter or {})
        query = (op.query or "").strip()[:MAX_QUERY_CHARS]
        if query:
            return _part(self._found(query, op), op)
        return undisturbed(lambda: _part(self._listed(op.namespace_prefix), op))

    def _found(self, query: str, op: SearchOp) -> Iterator[SearchItem]:
        # One search finds both, since ranks of two responses cannot be compared.
        everything = self._shows_others(op.namespace_prefix)
        tags = () if everything else (tag_of(op.namespace_prefix),)
        prefix = None if everything else prefix_of(op.namespace_prefix)
        found = self._session.search_memories(query, tags=tags, key_prefix=prefix, max_results=MAX_RESULTS)
        scores = accumulate((result.relevance for result in found), min)
        for result, score in zip(found, scores, strict=True):
            if (fields := self._fields(result.memory)) is not None:
                yield SearchItem(**fields, score=score)

    def _listed(self, prefix: Namespace) -> Iterator[SearchItem]:
        """The items by namespace and key, then the other memories by key."""
        for memory in self._session.list_memories(
            tag_of(prefix), key_prefix=prefix_of(prefix), page_size=MAX_PAGE_SIZE
        ):
            if (fields := _fields(memory)) is not None:
                yield SearchItem(**fields)
        if self._shows_others(prefix):
            for memory in self._session.list_memories(page_size=MAX_PAGE_SIZE):
                if _fields(memory) is None and (fields := self._fields(memory)) is not None:
                    yield SearchItem(**fields)

    def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        # The server filters by the labels of a prefix before the first wildcard.
        prefix = next((_fixed(each.path) for each in conditions if each.match_type == "prefix"), ())
        every = undisturbed(lambda: {item.namespace for item in self._listed(prefix)})
        matching = {each[: op.max_depth] for each in every if all(_matches(each, one) for one in conditions)}
        return sorted(matching)[op.offset : op.offset + op.limit]


def _require_no_index(put: PutOp) -> None:
    if put.index is not None:
        raise ValueError("index is not supported: every word of an item can be found. Leave out what must not be")


def _require_page(op: Op) -> None:
    if isinstance(op, SearchOp | ListNamespacesOp) and (op.limit < 0 or op.offset < 0):
        raise ValueError("limit and offset must not be negative")


def _content(value: dict[str, Any]) -> str:
    """*value* as JSON. TypeError or ValueError if it would not come back the same."""
    content = json_text(value)
    _require_json(value)
    return content


def _require_json(value: object) -> None:
    """Refuse what Python writes as JSON though JSON lacks it: names that are not strings, and some numbers."""
    if isinstance(value, dict):
        for name, each in value.items():
            if not isinstance(name, str):
                raise TypeError("the names in a value must be strings")
            _require_json(each)
    elif isinstance(value, list | tuple):
        for each in value:
            _require_json(each)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a value must not contain infinity or NaN")


def _part(items: Iterator[SearchItem], op: SearchOp) -> list[SearchItem]:
    """The items of the page that *op* requests."""
    below = (each for each in items if each.namespace[: len(op.namespace_prefix)] == op.namespace_prefix)
    wanted = (each for each in below if passes(each.value, op.filter or {}))
    return list(islice(wanted, op.offset, op.offset + op.limit))


class _Fields(TypedDict):
    """The fields of an item."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class _Saved:
    """A value to save. It expires *ttl* minutes after the save."""

    key: str
    content: str
    tags: list[str]
    ttl: float | None

    def memory(self) -> NewMemory:
        expire_time = None if self.ttl is None else datetime.now(UTC) + timedelta(minutes=self.ttl)
        return NewMemory(self.key, self.content, self.tags, expire_time)


def _fields(memory: Memory) -> _Fields | None:
    """The fields of the item that *memory* stores. None if this store did not write it."""
    try:
        _, path, escaped = memory.key.split("/")
        namespace, key = namespace_of(path), unescaped(escaped)
    except ValueError:
        return None
    value = object_of(memory.content)
    if TAG not in memory.tags or key_of(namespace, key) != memory.key or value is None:
        return None
    return _with_times(memory, namespace, key, value)


def _with_times(memory: Memory, namespace: Namespace, key: str, value: dict[str, Any]) -> _Fields:
    return _Fields(
        namespace=namespace, key=key, value=value, created_at=memory.create_time, updated_at=memory.update_time
    )


def _fixed(path: Iterable[str]) -> Namespace:
    labels = list(path)
    return tuple(labels[: labels.index("*")] if "*" in labels else labels)


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends as *condition* says. A `*` matches any one label."""
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(namespace) < len(path):
        return False
    end = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, end, strict=True))
