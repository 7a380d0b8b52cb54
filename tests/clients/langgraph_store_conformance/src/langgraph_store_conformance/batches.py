"""Batches, and the asynchronous methods."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp

from .suite import HERE, Suite, keys, plain


class Batches(Suite):
    """Documented: a result for each operation, in their order.

    That reads come before writes, and that of several writes of an item the last counts, is not documented. Both of
    LangGraph's stores do it.
    """

    def test_an_empty_batch_has_no_results(self, store: BaseStore):
        assert store.batch([]) == []

    def test_results_are_in_the_order_of_the_operations(self, store: BaseStore):
        store.put(HERE, "a", {"n": 1})
        store.put(HERE, "b", {"n": 2})

        results = store.batch(
            [
                GetOp(HERE, "b"),
                SearchOp(HERE, {"n": 1}),
                PutOp(("new",), "c", {}),
                GetOp(HERE, "no such"),
                ListNamespacesOp(),
                GetOp(HERE, "a"),
                SearchOp(("no such",)),
                PutOp(HERE, "no such", None),
                GetOp(HERE, "b"),
                SearchOp(HERE, {"n": 2}),
            ]
        )

        a, b = (HERE, "a", {"n": 1}), (HERE, "b", {"n": 2})
        assert plain(results) == [b, [a], None, None, [HERE], a, [], None, b, [b]]

    def test_a_batch_may_be_a_generator(self, store: BaseStore):
        """Documented: an iterable."""
        assert store.batch(PutOp(HERE, key, {}) for key in "ab") == [None, None]
        assert keys(store.search(HERE)) == {"a", "b"}

    def test_reads_see_what_was_before_the_batch(self, store: BaseStore):
        store.put(HERE, "old", {"n": 1})

        results = store.batch(
            [
                PutOp(HERE, "new", {"n": 2}),
                PutOp(HERE, "old", None),
                GetOp(HERE, "new"),
                GetOp(HERE, "old"),
                SearchOp(HERE),
                PutOp(("elsewhere",), "k", {}),
                ListNamespacesOp(),
            ]
        )

        old = (HERE, "old", {"n": 1})
        assert plain(results) == [None, None, None, old, [old], None, [HERE]]
        assert keys(store.search(())) == {"new", "k"}

    def test_of_several_puts_the_last_counts(self, store: BaseStore):
        store.batch([PutOp(HERE, "k", {"n": 1}), PutOp(HERE, "other", {}), PutOp(HERE, "k", {"n": 2})])

        assert plain(store.get(HERE, "k")) == (HERE, "k", {"n": 2})
        assert keys(store.search(HERE)) == {"k", "other"}

    def test_of_a_put_and_a_delete_the_last_counts(self, store: BaseStore):
        store.put(HERE, "deleted", {"n": 0})
        store.put(HERE, "put", {"n": 0})
        store.batch(
            [
                PutOp(HERE, "deleted", {"n": 1}),
                PutOp(HERE, "put", None),
                PutOp(HERE, "deleted", None),
                PutOp(HERE, "put", {"n": 2}),
            ]
        )

        assert plain(store.search(HERE)) == [(HERE, "put", {"n": 2})]

    def test_many_operations_are_one_batch(self, store: BaseStore):
        store.batch([PutOp((f"{number % 7}",), f"{number:03}", {"n": number}) for number in range(250)])
        results = store.batch([GetOp((f"{number % 7}",), f"{number:03}") for number in range(250)])

        assert [plain(item)[2] for item in results] == [{"n": number} for number in range(250)]
        assert len(store.search((), limit=1000)) == 250

    def test_what_is_no_operation_is_refused(self, store: BaseStore):
        with pytest.raises(self.refusals):
            store.batch([None])  # type: ignore[list-item]


class Asynchronous(Suite):
    """Declares that the asynchronous methods do the same as the others."""

    def test_the_asynchronous_methods(self, store: BaseStore):
        async def calls() -> list[Any]:
            await store.aput(HERE, "a", {"n": 1})
            await store.aput(HERE, "b", {"n": 2})
            await store.aput(HERE, "c", {"n": 3})
            await store.adelete(HERE, "c")
            return [
                await store.aget(HERE, "a"),
                await store.aget(HERE, "c"),
                await store.asearch(HERE[:1], filter={"n": {"$gte": 2}}),
                await store.asearch(HERE[:1], limit=0),
                await store.alist_namespaces(prefix=("*", "42")),
                await store.abatch([GetOp(HERE, "b"), PutOp(HERE, "d", {}), ListNamespacesOp(limit=0)]),
            ]

        a, b = (HERE, "a", {"n": 1}), (HERE, "b", {"n": 2})
        assert plain(asyncio.run(calls())) == [a, None, [b], [], [HERE], [b, None, []]]
        assert keys(store.search(())) == {"a", "b", "d"}

    def test_asynchronous_calls_at_once(self, store: BaseStore):
        async def calls() -> list[Any]:
            await asyncio.gather(*(store.aput(HERE, str(number), {"n": number}) for number in range(20)))
            return await asyncio.gather(*(store.aget(HERE, str(number)) for number in range(20)))

        assert plain(asyncio.run(calls())) == [(HERE, str(number), {"n": number}) for number in range(20)]

    def test_an_asynchronous_batch_may_be_a_generator(self, store: BaseStore):
        assert asyncio.run(store.abatch(PutOp(HERE, key, {}) for key in "ab")) == [None, None]
        assert keys(store.search(HERE)) == {"a", "b"}

    @pytest.mark.parametrize("namespace", [(), ("langgraph", "a"), ("a.b",), ("a", "")])
    def test_an_invalid_namespace_is_refused_asynchronously(self, store: BaseStore, namespace: tuple[str, ...]):
        with pytest.raises(InvalidNamespaceError):
            asyncio.run(store.aput(namespace, "k", {}))

        assert store.search(()) == []


class RefusesAsynchronous(Suite):
    """Declares that there are no asynchronous methods."""

    def test_asynchronous_calls_are_refused(self, store: BaseStore):
        with pytest.raises(NotImplementedError):
            asyncio.run(store.aput(HERE, "k", {}))
        with pytest.raises(NotImplementedError):
            asyncio.run(store.aget(HERE, "k"))

        assert store.search(()) == []
