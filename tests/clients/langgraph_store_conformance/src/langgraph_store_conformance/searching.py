"""Search without a query: by namespace and filter, in pages."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.store.base import BaseStore, PutOp, SearchItem

from .suite import HERE, Order, Suite, keys, names

_ORDERS = {
    Order.NAMES: [(("a",), "3"), (("b",), "1"), (("b",), "2")],
    Order.FIRST_PUT: [(("b",), "2"), (("b",), "1"), (("a",), "3")],
    Order.LAST_PUT: [(("b",), "2"), (("a",), "3"), (("b",), "1")],
}


class Searches(Suite):
    """Documented: the items in a namespace and below it."""

    def test_an_item_that_is_found_is_the_one_that_is_read(self, store: BaseStore):
        store.put(HERE, "k", {"n": 1})

        (found,) = store.search(HERE)
        item = store.get(HERE, "k")

        assert isinstance(found, SearchItem)
        assert found.score is None
        assert item is not None
        assert (found.namespace, found.key, found.value, found.created_at, found.updated_at) == (
            item.namespace, item.key, item.value, item.created_at, item.updated_at,
        )  # fmt: skip

    def test_an_empty_prefix_is_that_of_all_items(self, store: BaseStore):
        everywhere: list[tuple[str, ...]] = [("a",), ("a", "b"), ("b",), ("deep",) * 40]
        for namespace in everywhere:
            store.put(namespace, "k", {})

        assert sorted(item.namespace for item in store.search(())) == sorted(everywhere)

    def test_a_prefix_is_of_whole_labels(self, store: BaseStore):
        below: list[tuple[str, ...]] = [("users",), ("users", "42"), ("users", "42", "old"), ("users", "users")]
        beside: list[tuple[str, ...]] = [
            ("user",),
            ("users2",),
            ("users 42",),
            ("Users",),
            ("a", "users"),
            ("us", "ers"),
        ]
        for namespace in (*below, *beside):
            store.put(namespace, "k", {})

        assert sorted(item.namespace for item in store.search(("users",), limit=100)) == sorted(below)
        assert [item.namespace for item in store.search(("users", "42", "old"))] == [("users", "42", "old")]
        assert store.search(("users", "4")) == []
        assert store.search(("users", "42", "old", "older")) == []

    def test_no_character_of_a_prefix_is_a_wildcard(self, store: BaseStore):
        labels = [
            "a_b",
            "axb",
            "a%",
            "a%b",
            "a*",
            "*",
            "a\\",
            "a\\b",
            "a+",
            "aa",
            "a|b",
            "(a)",
            "[a]",
            "^a",
            "a$",
            "a b",
        ]
        for label in labels:
            store.put((label, "below"), "k", {})

        assert {label: names(store.search((label,))) for label in labels} == {
            label: [((label, "below"), "k")] for label in labels
        }

    def test_ten_items_are_returned_by_default(self, store: BaseStore):
        for number in range(12):
            store.put(HERE, str(number), {})

        assert len(store.search(())) == 10

    def test_a_page_is_a_part_of_the_whole(self, store: BaseStore):
        for number in (3, 1, 4, 0, 5, 9, 2, 6, 8, 7):
            store.put(("even" if number % 2 == 0 else "odd",), str(number), {"n": number % 3})
        whole, filtered = names(store.search((), limit=20)), names(store.search((), filter={"n": 0}, limit=20))

        pages = {(offset, limit): names(store.search((), offset=offset, limit=limit)) for offset, limit in _PAGES}
        assert pages == {(offset, limit): whole[offset : offset + limit] for offset, limit in _PAGES}
        of_filtered = [names(store.search((), filter={"n": 0}, offset=offset, limit=2)) for offset in range(5)]
        assert of_filtered == [filtered[offset : offset + 2] for offset in range(5)]

    def test_a_page_of_what_one_batch_put_is_a_part_of_the_whole(self, store: BaseStore):
        """Items that were put at once may have the same time, by which a store must not order alone."""
        store.batch([PutOp(HERE, f"{number * 37 % 100:02}", {}) for number in range(100)])
        whole = names(store.search((), limit=100))

        pages = [names(store.search((), offset=offset, limit=7)) for offset in range(0, 100, 7)]
        assert [name for page in pages for name in page] == whole

    @pytest.mark.parametrize("page", [{"limit": -1}, {"offset": -1}], ids=["limit", "offset"])
    def test_a_page_before_the_first_is_refused(self, store: BaseStore, page: dict[str, Any]):
        for number in range(3):
            store.put(HERE, str(number), {})

        with pytest.raises(self.refusals):
            store.search((), **page)

    def test_items_come_in_the_stated_order(self, store: BaseStore):
        for namespace, key in [(("b",), "2"), (("b",), "1"), (("a",), "3"), (("b",), "2")]:
            store.put((namespace), key, {"n": len(store.search(()))})

        found = names(store.search(()))
        assert found == _ORDERS.get(self.search_order, found)
        assert sorted(found) == _ORDERS[Order.NAMES]


_PAGES = [(0, 0), (0, 1), (0, 3), (2, 3), (5, 20), (9, 1), (9, 5), (10, 5), (50, 5)]


class Filters(Suite):
    """Documented: values of the first level, compared exactly or by six operators; all conditions must be met."""

    def matches(self, store: BaseStore, values: dict[str, Any], wanted: Any) -> set[str]:
        """The names of those of *values* that pass the filter `{"n": wanted}`."""
        for key, value in values.items():
            store.put(HERE, key, {"n": value})
        return keys(store.search((), filter={"n": wanted}, limit=100))

    def test_a_value_that_is_equal(self, store: BaseStore):
        values = {"a": "dark", "b": "Dark", "c": "dark ", "d": ["dark"], "e": {"dark": 1}, "f": None, "g": "d_rk"}

        assert self.matches(store, values, "dark") == {"a"}

    def test_a_number_that_is_equal(self, store: BaseStore):
        assert self.matches(store, {"a": 1, "b": 1.0, "c": 10, "d": -1, "e": 1.5, "f": "1"}, 1) == {"a", "b"}

    def test_a_boolean_is_no_number(self, store: BaseStore):
        """Neither in JSON nor to the documentation, which wants exact matches."""
        assert self.matches(store, {"a": True, "b": 1, "c": False, "d": 0}, True) == {"a"}

    def test_a_boolean_in_a_list_is_no_number(self, store: BaseStore):
        assert self.matches(store, {"a": [True], "b": [1]}, {"$eq": [True]}) == {"a"}

    def test_none_that_is_equal(self, store: BaseStore):
        assert self.matches(store, {"a": None, "b": 0, "c": "", "d": "null", "e": []}, None) == {"a"}

    def test_a_list_that_is_equal(self, store: BaseStore):
        values = {"a": ["x", "y"], "b": ["y", "x"], "c": ["x"], "d": ["x", "y", "z"], "e": "x"}

        assert self.matches(store, values, ["x", "y"]) == {"a"}

    def test_text_in_any_script(self, store: BaseStore):
        assert self.matches(store, {"a": "記憶", "b": "é", "c": "e\u0301"}, "é") == {"b"}

    def test_eq(self, store: BaseStore):
        assert self.matches(store, {"a": 12, "b": 13, "c": "12"}, {"$eq": 12}) == {"a"}

    def test_eq_to_an_object(self, store: BaseStore):
        values = {"a": {"x": 1, "y": 2}, "b": {"x": 1}, "c": {"y": 2, "x": 1}}

        assert self.matches(store, values, {"$eq": {"x": 1, "y": 2}}) == {"a", "c"}

    def test_ne(self, store: BaseStore):
        assert self.matches(store, {"a": 12, "b": 13, "c": "12"}, {"$ne": 12}) == {"b", "c"}

    def test_gt(self, store: BaseStore):
        assert self.matches(store, {"a": 3, "b": 4, "c": 5, "d": 5.5}, {"$gt": 4}) == {"c", "d"}

    def test_gte(self, store: BaseStore):
        assert self.matches(store, {"a": 3, "b": 4, "c": 5}, {"$gte": 4}) == {"b", "c"}

    def test_lt(self, store: BaseStore):
        assert self.matches(store, {"a": 3, "b": 4, "c": 5}, {"$lt": 4}) == {"a"}

    def test_lte(self, store: BaseStore):
        assert self.matches(store, {"a": 3, "b": 4, "c": 5}, {"$lte": 4}) == {"a", "b"}

    def test_a_range(self, store: BaseStore):
        assert self.matches(store, {"a": 3, "b": 4, "c": 5, "d": 6}, {"$gte": 4, "$lt": 6}) == {"b", "c"}

    def test_numbers_compare_by_size(self, store: BaseStore):
        """The documentation's example is a score greater than 4.99."""
        assert self.matches(store, {"a": 10, "b": 4.5, "c": 5, "d": 4.99}, {"$gt": 4.99}) == {"a", "c"}

    def test_negative_numbers_compare_by_size(self, store: BaseStore):
        assert self.matches(store, {"a": -10, "b": -2, "c": 1}, {"$lt": -1}) == {"a", "b"}

    def test_a_comparison_with_a_text_compares_or_is_refused(self, store: BaseStore):
        """Such as dates. It never finds nothing."""
        try:
            found = self.matches(store, {"a": "2026-11-25", "b": "2026-11-01"}, {"$gt": "2026-11-11"})
        except self.refusals:
            return
        assert found == {"a"}

    def test_an_item_without_the_field_does_not_compare(self, store: BaseStore):
        store.put(HERE, "without", {"other": 5})
        store.put(HERE, "none", {"n": None})

        assert self.matches(store, {"a": 5}, {"$gt": 1}) == {"a"}
        assert keys(store.search((), filter={"n": {"$lt": 9}})) == {"a"}

    def test_a_missing_field(self, store: BaseStore):
        """The documentation leaves it open: `missing_is_null` says what the store does."""
        store.put(HERE, "without", {"other": 5})
        missing = {"without"} if self.missing_is_null else set()

        assert self.matches(store, {"a": None, "b": 1}, None) == {"a"} | missing
        assert keys(store.search((), filter={"n": {"$ne": 1}})) == {"a"} | missing

    def test_all_conditions_must_be_met(self, store: BaseStore):
        for key, value in {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 2, "y": 2}}.items():
            store.put(HERE, key, value)

        assert keys(store.search((), filter={"x": 1, "y": 2})) == {"a"}
        assert keys(store.search((), filter={"x": {"$lt": 2}, "y": {"$ne": 2}})) == {"b"}

    def test_an_empty_filter_is_none(self, store: BaseStore):
        store.put(HERE, "a", {"x": 1})

        assert keys(store.search((), filter={})) == {"a"}

    def test_a_filter_applies_within_the_prefix(self, store: BaseStore):
        store.put(("here",), "a", {"x": 1})
        store.put(("there",), "b", {"x": 1})

        assert keys(store.search(("here",), filter={"x": 1})) == {"a"}

    def test_a_filter_applies_before_the_limit(self, store: BaseStore):
        for number in range(30):
            store.put(HERE, f"{number:02}", {"odd": number % 2, "last": number in (0, 15, 29)})

        assert len(store.search((), filter={"odd": 1})) == 10
        assert keys(store.search((), filter={"last": True}, limit=3)) == {"00", "15", "29"}

    def test_the_name_of_a_field_is_a_name(self, store: BaseStore):
        """Neither a path nor a part of a statement."""
        odd = ["a.b", "a b", "a'b", 'a"b', "a->b", "[0]", "", "x' OR '1'='1", "%s", "記憶"]
        for number, name in enumerate(odd):
            store.put(HERE, str(number), {name: "dark", "a": {"b": "dark"}})

        assert [keys(store.search((), filter={name: "dark"})) for name in odd] == [{str(n)} for n in range(len(odd))]
        assert keys(store.search((), filter={"0": "dark"})) == set()

    @pytest.mark.parametrize(
        "wanted", [{"$in": [1]}, {"$gt": 0, "$regex": "1"}, {"$": 1}, {"$GT": 0}], ids=["in", "regex", "none", "case"]
    )
    def test_an_unknown_operator_is_refused(self, store: BaseStore, wanted: dict[str, Any]):
        store.put(HERE, "a", {"n": 1})

        with pytest.raises(self.refusals):
            store.search((), filter={"n": wanted})

    def test_an_unknown_operator_is_refused_without_items(self, store: BaseStore):
        """So that the mistake shows before there are items."""
        with pytest.raises(self.refusals):
            store.search((), filter={"n": {"$regex": "1"}})


class FiltersNested(Suite):
    """Declares that a filter may look into objects: `{"by": {"who": "Ada"}}` is a condition on one field of `by`."""

    def test_a_filter_looks_into_objects(self, store: BaseStore):
        store.put(HERE, "a", {"by": {"who": "Ada", "on": None, "at": {"n": 5}}})
        store.put(HERE, "b", {"by": {"who": "Bob", "at": {"n": 15}}})
        store.put(HERE, "c", {"by": "Ada"})
        store.put(HERE, "d", {"who": "Ada"})

        assert keys(store.search((), filter={"by": {"who": "Ada"}})) == {"a"}
        assert keys(store.search((), filter={"by": {"at": {"n": 15}}})) == {"b"}
        assert keys(store.search((), filter={"by": {"at": {"n": {"$lt": 20}}}})) == {"a", "b"}
        assert keys(store.search((), filter={"by": {"who": "Ada", "on": 1}})) == set()


class RefusesNestedFilters(Suite):
    """Declares that it refuses a filter by an object, which could be an exact match or a part of one."""

    def test_a_filter_by_an_object_is_refused(self, store: BaseStore):
        store.put(HERE, "a", {"by": {"who": "Ada", "on": None}})

        with pytest.raises(self.refusals):
            store.search((), filter={"by": {"who": "Ada"}})
