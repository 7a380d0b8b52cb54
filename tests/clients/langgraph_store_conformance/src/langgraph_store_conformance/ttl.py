"""The time to live of items."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, ClassVar

import pytest
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp

from .suite import HERE, Suite, keys


class Expires(Suite):
    """Declares that the store supports `ttl`, and no longer shows an item that has expired.

    Documented: an item expires when it has been neither read nor written for its `ttl`, in minutes. Stores may delete
    it later; configure yours so that reads omit it at once (`omit_expired` of LangGraph's stores).
    """

    ttl: ClassVar[float] = 5.0
    """The `ttl` of the tests, in minutes. If `pass_time` really waits, a few seconds: such as 0.05."""

    def pass_time(self, store: Any, minutes: float) -> None:
        """Let items get older. This waits; a store whose clock can be set need not."""
        time.sleep(minutes * 60)

    def test_ttl_is_declared(self, store: BaseStore):
        """Otherwise `put` refuses a `ttl`."""
        assert store.supports_ttl

    def test_an_item_expires(self, store: BaseStore):
        store.put(HERE, "k", {"n": 1}, ttl=self.ttl)
        assert store.get(HERE, "k") is not None

        self.pass_time(store, self.ttl * 1.2)

        assert store.get(HERE, "k") is None
        assert store.search(()) == []
        assert store.list_namespaces() == []

    def test_an_item_without_ttl_does_not_expire(self, store: BaseStore):
        store.put(HERE, "a", {"n": 1})
        store.put(HERE, "b", {"n": 1}, ttl=None)

        self.pass_time(store, self.ttl * 1.2)

        assert keys(store.search(())) == {"a", "b"}

    def test_ttl_in_a_batch(self, store: BaseStore):
        store.batch([PutOp(HERE, "a", {}, ttl=self.ttl), PutOp(HERE, "b", {}), PutOp(HERE, "c", {}, ttl=self.ttl * 9)])

        self.pass_time(store, self.ttl * 1.2)

        assert keys(store.search(())) == {"b", "c"}

    def test_a_put_renews_the_ttl(self, store: BaseStore):
        store.put(HERE, "k", {"n": 1}, ttl=self.ttl)
        self.pass_time(store, self.ttl * 0.6)
        store.put(HERE, "k", {"n": 2}, ttl=self.ttl)
        self.pass_time(store, self.ttl * 0.6)

        assert keys(store.search(())) == {"k"}

    def test_a_put_without_ttl_ends_it(self, store: BaseStore):
        store.put(HERE, "k", {"n": 1}, ttl=self.ttl)
        store.put(HERE, "k", {"n": 2})
        self.pass_time(store, self.ttl * 1.2)

        assert keys(store.search(())) == {"k"}

    def test_a_get_renews_the_ttl(self, store: BaseStore):
        store.put(HERE, "k", {"n": 1}, ttl=self.ttl)
        self.pass_time(store, self.ttl * 0.6)
        store.get(HERE, "k")
        self.pass_time(store, self.ttl * 0.6)

        assert store.get(HERE, "k") is not None

    def test_a_search_renews_the_ttl(self, store: BaseStore):
        store.put(HERE, "k", {"n": 1}, ttl=self.ttl)
        self.pass_time(store, self.ttl * 0.6)
        store.search(HERE)
        self.pass_time(store, self.ttl * 0.6)

        assert store.get(HERE, "k") is not None

    def test_a_read_need_not_renew_the_ttl(self, store: BaseStore):
        store.put(HERE, "k", {"n": 1}, ttl=self.ttl)
        self.pass_time(store, self.ttl * 0.6)
        store.get(HERE, "k", refresh_ttl=False)
        store.search(HERE, refresh_ttl=False)
        store.batch([GetOp(HERE, "k", refresh_ttl=False), SearchOp(HERE, refresh_ttl=False)])
        self.pass_time(store, self.ttl * 0.6)

        assert store.get(HERE, "k") is None

    def test_a_part_of_a_minute_is_a_ttl(self, store: BaseStore):
        """Documented: a float. A read must not round it down."""
        store.put(HERE, "k", {"n": 1}, ttl=0.4)
        store.get(HERE, "k")

        assert store.get(HERE, "k") is not None

    @pytest.mark.parametrize("ttl", [0, -1])
    def test_an_item_that_has_expired_already_is_not_shown(self, store: BaseStore, ttl: int):
        """It may also be refused."""
        with suppress(*self.refusals):
            store.put(HERE, "k", {"n": 1}, ttl=ttl)

        assert store.search(()) == []

    def test_an_expired_item_can_be_put_again(self, store: BaseStore):
        store.put(HERE, "k", {"n": 1}, ttl=self.ttl)
        self.pass_time(store, self.ttl * 1.2)
        store.put(HERE, "k", {"n": 2})

        assert [item.value for item in store.search(())] == [{"n": 2}]


class RefusesTTL(Suite):
    """Declares that the store does not support `ttl`: an item that should expire is not put at all."""

    def test_a_ttl_is_refused(self, store: BaseStore):
        """Documented: NotImplementedError."""
        with pytest.raises(NotImplementedError):
            store.put(HERE, "k", {}, ttl=5)

        assert store.search(()) == []

    def test_a_ttl_in_a_batch_is_refused(self, store: BaseStore):
        with pytest.raises(self.refusals):
            store.batch([PutOp(HERE, "k", {}, ttl=5)])

        assert store.search(()) == []
