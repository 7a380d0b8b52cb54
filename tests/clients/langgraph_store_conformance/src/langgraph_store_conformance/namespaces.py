"""Namespaces: which are valid, that none reaches another, and how they are listed."""

from __future__ import annotations

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

from .suite import HERE, Namespace, Suite, names

_INVALID: dict[str, tuple[Any, ...]] = {
    "period": ("a", "b.c"),
    "empty label": ("a", ""),
    "number": ("a", 1),
    "nul": ("a", "b\0"),
}
_invalid = pytest.mark.parametrize("namespace", _INVALID.values(), ids=_INVALID.keys())
_DIFFERENT: list[Namespace] = [
    ("a", "b"), ("a b",), ("a/b",), ("ab",), ("b", "a"), ("a",), ("a", "b", "c"), ("a", "bc"), ("ab", "c"),
    ("A", "b"), ("a", "b "), ("a%2Eb",), ("é",), ("e\u0301",), ("記憶",), ("*",), ("a", "*"), ("a", "langgraph"),
    ("users",) * 30, ("x" * 60, "y"), ("x" * 60, "z"),
]  # fmt: skip


class Labels(Suite):
    """Documented: which labels raise `InvalidNamespaceError`."""

    def test_nothing_is_put_at_the_root(self, store: BaseStore):
        with pytest.raises(InvalidNamespaceError):
            store.put((), "k", {})

        assert store.search(()) == []

    def test_nothing_is_put_below_langgraph(self, store: BaseStore):
        """Its own namespaces are there."""
        for namespace in (("langgraph",), ("langgraph", "a")):
            with pytest.raises(InvalidNamespaceError):
                store.put(namespace, "k", {})

        assert store.search(()) == []

    def test_langgraph_may_be_read(self, store: BaseStore):
        assert store.get(("langgraph",), "k") is None
        assert store.search(("langgraph",)) == []

    @_invalid
    def test_an_invalid_label_is_refused(self, store: BaseStore, namespace: tuple[Any, ...]):
        store.put(HERE, "k", {})

        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})
        with pytest.raises(InvalidNamespaceError):
            store.get(namespace, "k")
        with pytest.raises(InvalidNamespaceError):
            store.delete(namespace, "k")
        with pytest.raises(InvalidNamespaceError):
            store.search(namespace)
        with pytest.raises(InvalidNamespaceError):
            store.list_namespaces(prefix=namespace)
        with pytest.raises(InvalidNamespaceError):
            store.list_namespaces(suffix=namespace)

        assert names(store.search(())) == [(HERE, "k")]

    @pytest.mark.parametrize("namespace", [("a", "b.c"), ("a.b", "c")])
    def test_a_period_in_a_batch_reaches_no_other_namespace(self, store: BaseStore, namespace: Namespace):
        """`batch` is called without the methods that validate: a store may refuse it or keep it apart."""
        store.put(("a", "b", "c"), "k", {"n": 1})

        for op in (GetOp(namespace, "k"), SearchOp(namespace), PutOp(namespace, "k", {"n": 2})):
            try:
                assert store.batch([op]) in ([None], [[]])
            except self.refusals:
                continue

        assert [item.value for item in store.search(("a", "b", "c"))] == [{"n": 1}]


class Isolation(Suite):
    """A namespace has its own items."""

    def test_similar_namespaces_are_different(self, store: BaseStore):
        for number, namespace in enumerate(_DIFFERENT):
            store.put(namespace, "k", {"n": number})

        found = [item and (item.namespace, item.value) for item in (store.get(each, "k") for each in _DIFFERENT)]
        assert found == [(namespace, {"n": number}) for number, namespace in enumerate(_DIFFERENT)]
        assert sorted(store.list_namespaces()) == sorted(_DIFFERENT)

    @pytest.mark.parametrize("namespace", [("x" * 20_000,), ("y",) * 10_000], ids=["label", "path"])
    def test_a_very_long_namespace_is_kept_or_refused(self, store: BaseStore, namespace: Namespace):
        """Never cut."""
        try:
            store.put(namespace, "k", {})
        except self.refusals:
            assert store.list_namespaces() == []
        else:
            assert store.list_namespaces() == [namespace]
            assert names(store.search(namespace)) == [(namespace, "k")]

    def test_a_search_shows_no_other_namespace(self, store: BaseStore):
        for namespace in _DIFFERENT:
            store.put(namespace, "k", {})

        for prefix in _DIFFERENT:
            below = [namespace for namespace in _DIFFERENT if namespace[: len(prefix)] == prefix]
            assert sorted(item.namespace for item in store.search(prefix, limit=100)) == sorted(below)

    def test_a_delete_reaches_no_other_namespace(self, store: BaseStore):
        for namespace in _DIFFERENT:
            store.put(namespace, "k", {})
        store.delete(("a", "b"), "k")
        store.delete(("a", "*"), "no such")

        assert sorted(item.namespace for item in store.search((), limit=100)) == sorted(_DIFFERENT[1:])

    def test_a_put_reaches_no_other_namespace(self, store: BaseStore):
        for namespace in _DIFFERENT:
            store.put(namespace, "k", {"n": 1})
        store.put(("a",), "k", {"n": 2})

        assert [item.namespace for item in store.search((), filter={"n": 2}, limit=100)] == [("a",)]


_LISTED: list[Namespace] = [
    ("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f"),
    ("docs", "v1"), ("docs", "a", "v1"), ("docs", "a", "v2"), ("other",),
]  # fmt: skip
"""The first five are the documentation's example."""


class Listing(Suite):
    """Documented: the namespaces that hold items, by the beginning and the end of their paths."""

    def listed(self, store: BaseStore, **wanted: Any) -> list[Namespace]:
        """The namespaces that are listed, of `_LISTED`, sorted."""
        store.batch([PutOp(namespace, key, {}) for namespace in _LISTED for key in ("k", "other")])
        return sorted(store.list_namespaces(**wanted))

    def test_every_namespace_is_listed_once(self, store: BaseStore):
        assert self.listed(store) == sorted(_LISTED)

    def test_an_empty_store_has_no_namespaces(self, store: BaseStore):
        assert store.list_namespaces() == []

    def test_the_beginning(self, store: BaseStore):
        assert self.listed(store, prefix=("a", "b")) == sorted(_LISTED[:4])
        assert store.list_namespaces(prefix=("a", "b", "d", "e")) == [("a", "b", "d", "e")]
        assert store.list_namespaces(prefix=("a", "b", "d", "e", "f")) == []
        assert store.list_namespaces(prefix=("oth",)) == []

    def test_the_end(self, store: BaseStore):
        assert self.listed(store, suffix=("v1",)) == [("docs", "a", "v1"), ("docs", "v1")]
        assert store.list_namespaces(suffix=("a", "v1")) == [("docs", "a", "v1")]
        assert store.list_namespaces(suffix=("other",)) == [("other",)]
        assert store.list_namespaces(suffix=("x", "other")) == []
        assert store.list_namespaces(suffix=("1",)) == []

    def test_a_wildcard_is_any_one_label(self, store: BaseStore):
        assert self.listed(store, prefix=("a", "*", "f")) == [("a", "b", "f"), ("a", "c", "f")]
        assert sorted(store.list_namespaces(prefix=("*", "a"))) == [("docs", "a", "v1"), ("docs", "a", "v2")]
        assert store.list_namespaces(prefix=("a", "*", "*", "e")) == [("a", "b", "d", "e")]
        assert ("other",) not in store.list_namespaces(prefix=("other", "*"))
        assert sorted(store.list_namespaces(suffix=("a", "*"))) == [("docs", "a", "v1"), ("docs", "a", "v2")]
        assert store.list_namespaces(suffix=("*", "d", "i")) == [("a", "b", "d", "i")]

    def test_the_beginning_and_the_end(self, store: BaseStore):
        assert self.listed(store, prefix=("a",), suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f")]
        assert sorted(store.list_namespaces(prefix=("docs", "v1"), suffix=("docs", "v1"))) == [("docs", "v1")]

    def test_all_conditions_of_an_operation_must_be_met(self, store: BaseStore):
        conditions = (
            MatchCondition("prefix", ("a",)), MatchCondition("prefix", ("*", "b")), MatchCondition("suffix", ("f",)),
        )  # fmt: skip
        self.listed(store)

        assert store.batch([ListNamespacesOp(conditions)]) == [[("a", "b", "f")]]

    def test_no_character_of_a_path_is_a_pattern(self, store: BaseStore):
        labels = ["a+", "aa", "a|b", "(a)", "[a]", "^a", "a$", "a_b", "axb", "a%", "a\\d", "a1", "a b", "a{2}", "(?i)A"]
        store.batch([PutOp((label, "k"), "k", {}) for label in labels])
        store.batch([PutOp(("k", label), "k", {}) for label in labels])

        assert [store.list_namespaces(prefix=(label,)) for label in labels] == [[(label, "k")] for label in labels]
        assert [store.list_namespaces(suffix=(label,)) for label in labels] == [[("k", label)] for label in labels]

    def test_deeper_paths_are_cut(self, store: BaseStore):
        """The documentation's example."""
        found = self.listed(store, prefix=("a", "b"), max_depth=3)

        assert found == [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]
        assert sorted(store.list_namespaces(max_depth=1)) == [("a",), ("docs",), ("other",)]
        assert sorted(store.list_namespaces(max_depth=10)) == sorted(_LISTED)

    def test_a_path_is_matched_before_it_is_cut(self, store: BaseStore):
        assert self.listed(store, suffix=("v1",), max_depth=2) == [("docs", "a"), ("docs", "v1")]

    def test_a_hundred_are_listed_by_default(self, store: BaseStore):
        store.batch([PutOp((f"{number:03}",), "k", {}) for number in range(101)])

        assert len(store.list_namespaces()) == 100
        assert len(store.list_namespaces(limit=200)) == 101

    def test_a_page_of_namespaces_is_a_part_of_the_whole(self, store: BaseStore):
        self.listed(store)
        conditions: list[dict[str, Any]] = [{}, {"max_depth": 2}, {"prefix": ("a",)}]
        for wanted in conditions:
            whole = store.list_namespaces(**wanted)
            pages = [(offset, limit) for offset in range(len(whole) + 2) for limit in (0, 1, 2, 20)]

            found = [store.list_namespaces(**wanted, offset=offset, limit=limit) for offset, limit in pages]
            assert found == [whole[offset : offset + limit] for offset, limit in pages]

    @pytest.mark.parametrize("page", [{"limit": -1}, {"offset": -1}], ids=["limit", "offset"])
    def test_a_page_of_namespaces_before_the_first_is_refused(self, store: BaseStore, page: dict[str, Any]):
        self.listed(store)

        with pytest.raises(self.refusals):
            store.list_namespaces(**page)

    def test_a_namespace_without_items_is_not_listed(self, store: BaseStore):
        store.put(("a",), "k", {})
        store.put(("a", "b"), "k", {})
        store.delete(("a", "b"), "k")

        assert store.list_namespaces() == [("a",)]

    def test_reading_makes_no_namespace(self, store: BaseStore):
        store.get(("a",), "k")
        store.search(("b",))
        store.delete(("c",), "k")

        assert store.list_namespaces() == []

    def test_an_unknown_kind_of_condition_is_refused(self, store: BaseStore):
        store.put(HERE, "k", {})

        with pytest.raises(self.refusals):
            store.batch([ListNamespacesOp((MatchCondition("infix", ("users",)),))])  # type: ignore[arg-type]
