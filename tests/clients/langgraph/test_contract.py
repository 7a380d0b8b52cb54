"""The same calls give the same answers as LangGraph's own store in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from muniment.langgraph import MunimentStore
from tests.clients.langgraph.conftest import Call, Oracle, plain

ITEMS: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (("users", "42"), "theme", {"theme": "dark", "size": 12, "tags": ["a", "b"]}),
    (("users", "42"), "tea", {"name": "Assam", "size": 3.5, "sugar": False, "by": {"who": "Ada", "on": None}}),
    (("users", "42", "old"), "theme", {"theme": "light", "size": -1}),
    (("users", "7"), "theme", {"theme": "dark", "size": 0}),
    (("users",), "all", {"size": 100}),
    (("user",), "theme", {"size": 1, "theme": "dark"}),
    (("docs", "v1"), "report", {"size": 2, "text": "நினைவு, 記憶, mémoire"}),
    (("docs", "a", "v1"), "", {"size": 5}),
    (("docs%2E", "a b", "C/d"), " key/with.all % of it ", {"size": 6}),
    (("e\u0301", "é"), "\u0301", {"size": 7, "text": "\0 \ud800 \u2028"}),
    ((("deep",) * 40), "k" * 10, {"size": 8}),
    (("x" * 60, "y"), "k", {"size": 9}),
    (("x" * 60, "z"), "k", {"size": 10}),
]

CALLS: dict[str, Call] = {
    "get all": lambda s: [s.get(namespace, key) for namespace, key, _ in ITEMS],
    "get of none": lambda s: s.get(("users", "42"), "no such"),
    "get in none": lambda s: s.get(("nobody",), "theme"),
    "search all": lambda s: s.search((), limit=100),
    "search ten": lambda s: s.search(()),
    "search below": lambda s: s.search(("users",)),
    "search far below": lambda s: s.search(("users", "42")),
    "search deep below": lambda s: s.search(("deep",) * 35),
    "search below a long one": lambda s: s.search(("x" * 60, "y")),
    "search in none": lambda s: s.search(("users", "42", "old", "older")),
    "search part of a label": lambda s: s.search(("us",)),
    "search the odd": lambda s: s.search(("docs%2E", "a b", "C/d")),
    "search a page": lambda s: s.search(("users",), limit=2, offset=1),
    "search past the end": lambda s: s.search(("users",), offset=50),
    "search for none": lambda s: s.search((), limit=0),
    "filter": lambda s: s.search((), filter={"theme": "dark"}),
    "filter a page": lambda s: s.search((), filter={"theme": "dark"}, limit=1, offset=1),
    "filter two": lambda s: s.search((), filter={"theme": "dark", "size": 0}),
    "filter equal": lambda s: s.search((), filter={"size": {"$eq": 12}}),
    "filter unequal": lambda s: s.search((), filter={"theme": {"$ne": "dark"}}, limit=20),
    "filter greater": lambda s: s.search((), filter={"size": {"$gt": 3.5}}, limit=20),
    "filter between": lambda s: s.search((), filter={"size": {"$gte": 0, "$lt": 3.5}}, limit=20),
    "filter at most": lambda s: s.search((), filter={"size": {"$lte": "2"}}, limit=20),
    "filter a list": lambda s: s.search((), filter={"tags": ["a", "b"]}),
    "filter part of a list": lambda s: s.search((), filter={"tags": ["a"]}),
    "filter inside": lambda s: s.search((), filter={"by": {"who": "Ada"}}),
    "filter inside for none": lambda s: s.search((), filter={"by": {"on": None}}),
    "filter inside of none": lambda s: s.search((), filter={"theme": {"who": "Ada"}}),
    "filter for what is not there": lambda s: s.search((), filter={"theme": None}, limit=20),
    "filter with a strange operator": lambda s: s.search((), filter={"size": {"$in": [1]}}),
    "namespaces": lambda s: s.list_namespaces(),
    "namespaces below": lambda s: s.list_namespaces(prefix=("users",)),
    "namespaces below any": lambda s: s.list_namespaces(prefix=("*", "42")),
    "namespaces below some": lambda s: s.list_namespaces(prefix=("users", "*", "old")),
    "namespaces above": lambda s: s.list_namespaces(suffix=("v1",)),
    "namespaces above any": lambda s: s.list_namespaces(suffix=("a", "*")),
    "namespaces between": lambda s: s.list_namespaces(prefix=("docs",), suffix=("v1",)),
    "namespaces to a depth": lambda s: s.list_namespaces(max_depth=1),
    "namespaces to a depth below": lambda s: s.list_namespaces(prefix=("docs",), max_depth=2),
    "a page of namespaces": lambda s: s.list_namespaces(limit=2, offset=3),
    "a page of namespaces to a depth": lambda s: s.list_namespaces(limit=2, offset=1, max_depth=1),
    "put in none": lambda s: s.put((), "k", {}),
    "put into langgraph": lambda s: s.put(("langgraph", "x"), "k", {}),
    "put into a dot": lambda s: s.put(("a.b",), "k", {}),
    "put into nothing": lambda s: s.put(("a", ""), "k", {}),
    "get from a dot": lambda s: s.get(("a.b",), "k"),
    "search a dot": lambda s: s.search(("a.b",)),
    "delete in a dot": lambda s: s.delete(("a.b",), "k"),
    "not an operation": lambda s: s.batch([None]),  # type: ignore[list-item]
}


def outcome(call: Call, store: BaseStore) -> Any:
    """What *call* gives, or the kind of error that it raises."""
    try:
        return plain(call(store))
    except ValueError as error:
        return type(error)


@pytest.fixture
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture
def both(store: MunimentStore, oracle: Oracle) -> tuple[MunimentStore, Oracle]:
    """Two stores with the same items."""
    for each in (store, oracle):
        each.batch([PutOp(*item) for item in ITEMS])
    return store, oracle


def test_every_call_gives_the_same(both):
    """One test for all calls, since none of them changes anything and the items are the same."""
    ours, theirs = both

    assert {name: outcome(call, ours) for name, call in CALLS.items()} == {
        name: outcome(call, theirs) for name, call in CALLS.items()
    }


def test_what_the_calls_show_is_not_nothing(both):
    ours, _ = both

    assert len(ours.search((), limit=100)) == len(ITEMS)
    assert len(ours.list_namespaces()) == len({namespace for namespace, _, _ in ITEMS})
    assert outcome(CALLS["put into a dot"], ours) is InvalidNamespaceError


def test_put_over_and_delete(both):
    for store in both:
        store.put(("users", "42"), "theme", {"theme": "light"})
        store.delete(("users", "42"), "tea")
        store.delete(("users", "42"), "tea")
        store.delete(("users", "42"), "never was")
        store.put(("users", "7"), "theme", {})

    ours, theirs = both
    assert plain(ours.search((), limit=100)) == plain(theirs.search((), limit=100))


def test_a_batch_reads_before_it_writes_and_of_several_puts_the_last_counts(both):
    where = ("users", "42")
    ops = [
        PutOp(where, "new", {"n": 1}),
        GetOp(where, "new"),
        GetOp(where, "tea"),
        PutOp(where, "tea", None),
        PutOp(where, "new", {"n": 2}),
        PutOp(where, "theme", {"n": 3}),
        PutOp(where, "theme", None),
        SearchOp(where),
        ListNamespacesOp((MatchCondition("prefix", ("users",)),)),
    ]

    ours, theirs = (plain(store.batch(ops)) for store in both)

    assert ours == theirs
    assert plain(both[0].search(where)) == plain(both[1].search(where))


def test_the_asynchronous_calls_give_the_same(both):
    async def calls(store: BaseStore) -> list[Any]:
        await store.aput(("users", "42"), "new", {"n": 1})
        await store.adelete(("users", "42"), "tea")
        return [
            await store.aget(("users", "42"), "new"),
            await store.aget(("users", "42"), "tea"),
            await store.asearch(("users",), filter={"theme": "dark"}),
            await store.alist_namespaces(prefix=("users",)),
            *await asyncio.gather(*(store.aget(namespace, key) for namespace, key, _ in ITEMS)),
        ]

    ours, theirs = (plain(asyncio.run(calls(store))) for store in both)

    assert ours == theirs


def test_times_are_aware_and_an_overwritten_item_keeps_its_first(store):
    store.put(("users",), "a", {"n": 1})
    first = store.get(("users",), "a")
    store.put(("users",), "a", {"n": 2})
    second = store.get(("users",), "a")

    assert first.created_at == first.updated_at == second.created_at < second.updated_at
    assert first.created_at.tzinfo is not None
