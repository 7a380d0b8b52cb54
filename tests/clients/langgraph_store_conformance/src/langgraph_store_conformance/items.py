"""Put, get and delete: one item at a time."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Any

import pytest
from langgraph.store.base import BaseStore, Item

from .suite import HERE, Suite, keys

VALUE: dict[str, Any] = {
    "text": 'நினைவு, 記憶, mémoire, e\u0301, 🫠, \u2028 \t " \\',
    "numbers": [0, -1, 2**70, 0.1, -2.5e-7],
    "nested": {"list": [[], {}, [{"deep": [None, True, False, ""]}]]},
    "": "an empty name",
    "a.b": {"$eq": 1},
}


class Items(Suite):
    """What was put is what is read, until it is replaced or deleted."""

    def test_what_was_put_is_read(self, store: BaseStore):
        store.put(HERE, "k", VALUE)

        item = store.get(HERE, "k")

        assert isinstance(item, Item)
        assert (item.namespace, item.key, item.value) == (HERE, "k", VALUE)

    def test_values_keep_their_types(self, store: BaseStore):
        store.put(HERE, "k", {"one": 1, "true": True, "float": 1.0, "none": None, "text": "1"})

        item = store.get(HERE, "k")

        assert item is not None
        assert {name: type(each) for name, each in item.value.items()} == {
            "one": int, "true": bool, "float": float, "none": type(None), "text": str,
        }  # fmt: skip

    def test_a_large_float_stays_a_float(self, store: BaseStore):
        store.put(HERE, "k", {"n": 1.5e300})

        item = store.get(HERE, "k")

        assert item is not None
        assert (item.value, type(item.value["n"])) == ({"n": 1.5e300}, float)

    def test_a_text_may_have_a_nul(self, store: BaseStore):
        """It is a character of JSON."""
        store.put(HERE, "k", {"text": "a\0b"})

        assert _value(store, "k") == {"text": "a\0b"}

    def test_a_text_may_have_half_of_a_surrogate_pair(self, store: BaseStore):
        """`json` writes and reads it: it comes from texts that were cut."""
        store.put(HERE, "k", {"text": "a\ud800b"})

        assert _value(store, "k") == {"text": "a\ud800b"}

    def test_an_empty_value_is_one(self, store: BaseStore):
        store.put(HERE, "k", {})

        assert _value(store, "k") == {}

    def test_a_value_may_be_any_mapping(self, store: BaseStore):
        """Documented: `value` is a Mapping."""
        store.put(HERE, "k", MappingProxyType({"n": 1}))

        assert _value(store, "k") == {"n": 1}

    def test_a_large_value_is_kept(self, store: BaseStore):
        value = {"text": "0123456789" * 10_000}
        store.put(HERE, "k", value)

        assert _value(store, "k") == value

    def test_a_very_large_value_is_kept_or_refused(self, store: BaseStore):
        """Never cut."""
        value = {"text": "0123456789" * 100_000}
        kept = self.accepts(store, "k", value)

        assert [item.value for item in store.search(HERE)] == ([value] if kept else [])

    @pytest.mark.parametrize("value", [{1: "a", "1": "b"}, {"n": [{2: "c"}]}], ids=["in a value", "deep in a value"])
    def test_a_name_that_is_no_text_is_kept_or_refused(self, store: BaseStore, value: dict[Any, Any]):
        """Documented: the names of a value must be strings. Made strings, two of them may become one."""
        kept = self.accepts(store, "k", value)

        assert [item.value for item in store.search(HERE)] == ([value] if kept else [])

    @pytest.mark.parametrize("number", [float("inf"), float("-inf")])
    def test_a_number_that_json_lacks_is_kept_or_refused(self, store: BaseStore, number: float):
        kept = self.accepts(store, "k", {"n": number})

        assert [item.value for item in store.search(HERE)] == ([{"n": number}] if kept else [])

    def test_what_json_lacks_is_kept_or_refused(self, store: BaseStore):
        value = {"n": {1, 2}}
        kept = self.accepts(store, "k", value)

        assert [item.value for item in store.search(HERE)] == ([value] if kept else [])

    def test_a_put_replaces_the_whole_value(self, store: BaseStore):
        store.put(HERE, "k", {"a": 1, "b": {"c": 2, "d": 3}})
        store.put(HERE, "k", {"b": {"c": 4}})

        assert _value(store, "k") == {"b": {"c": 4}}
        assert len(store.search(HERE)) == 1

    def test_what_was_never_put_is_none(self, store: BaseStore):
        store.put(HERE, "k", {})

        assert store.get(HERE, "other") is None
        assert store.get((*HERE, "below"), "k") is None
        assert store.get(HERE[:1], "k") is None
        assert store.get(("no", "such"), "k") is None

    def test_what_was_deleted_is_none(self, store: BaseStore):
        store.put(HERE, "k", {"n": 1})
        store.put(HERE, "stays", {"n": 2})
        store.delete(HERE, "k")

        assert store.get(HERE, "k") is None
        assert keys(store.search(())) == {"stays"}

    def test_to_delete_nothing_is_no_error(self, store: BaseStore):
        store.put(HERE, "k", {"n": 1})
        store.delete(HERE, "never was")
        store.delete(("no", "such"), "k")
        store.delete(HERE, "k")
        store.delete(HERE, "k")

        assert store.search(()) == []

    def test_a_put_after_a_delete_is_a_new_item(self, store: BaseStore):
        store.put(HERE, "k", {"old": 1})
        first = store.get(HERE, "k")
        store.delete(HERE, "k")
        time.sleep(0.002)  # for clocks that count in milliseconds
        store.put(HERE, "k", {"new": 2})
        second = store.get(HERE, "k")

        assert first is not None
        assert second is not None
        assert second.value == {"new": 2}
        assert first.created_at < second.created_at

    def test_a_change_of_what_was_put_changes_nothing(self, store: BaseStore):
        value = {"n": 1}
        store.put(HERE, "k", value)
        value["n"] = 2

        assert _value(store, "k") == {"n": 1}

    def test_a_change_deep_in_what_was_put_changes_nothing(self, store: BaseStore):
        value = {"nested": {"list": [1]}}
        store.put(HERE, "k", value)
        value["nested"]["list"].append(2)

        assert _value(store, "k") == {"nested": {"list": [1]}}

    def test_a_change_of_what_was_read_changes_nothing(self, store: BaseStore):
        store.put(HERE, "k", {"list": [1]})
        for item in (store.get(HERE, "k"), *store.search(HERE)):
            assert item is not None
            item.value["list"].append(2)
            item.value["more"] = 3

        assert _value(store, "k") == {"list": [1]}


class Keys(Suite):
    """A key is any text, and every other text is another key."""

    def test_similar_keys_are_different_items(self, store: BaseStore):
        similar = ["k", "K", " k", "k ", "k.k", "k/k", "k%2Fk", "k_k", "*", "é", "e\u0301", "", " ", "0", "00", "k\n"]
        for number, key in enumerate(similar):
            store.put(HERE, key, {"n": number})

        found = [item and (item.key, item.value["n"]) for item in (store.get(HERE, key) for key in similar)]
        assert found == [(key, number) for number, key in enumerate(similar)]
        assert keys(store.search(HERE, limit=100)) == set(similar)

    def test_a_key_may_be_in_any_script(self, store: BaseStore):
        odd = ["நினைவு", "記憶", "ключ", "🫠", "\u202eabc", "a\u0000b"[:1] + "\ufeff", "x" * 100, "'; --", "\\"]
        for key in odd:
            store.put(HERE, key, {"key": key})

        assert {item.key: item.value["key"] for item in store.search(HERE, limit=100)} == {key: key for key in odd}

    def test_a_key_with_a_nul_is_kept_or_refused(self, store: BaseStore):
        kept = self.accepts(store, "a\0b", {})

        assert keys(store.search(HERE)) == ({"a\0b"} if kept else set())

    def test_a_key_that_is_no_text_is_made_one(self, store: BaseStore):
        """The methods call `str`."""
        store.put(HERE, 5, {"n": 1})  # type: ignore[arg-type]

        assert keys(store.search(HERE)) == {"5"}
        assert _value(store, "5") == {"n": 1}

    def test_a_very_long_key_is_kept_or_refused(self, store: BaseStore):
        """Never cut. It cannot be compressed, as some databases do."""
        key = "".join(chr(33 + number * number % 89) for number in range(10_000)) + "."
        kept = self.accepts(store, key, {"n": 1})

        assert keys(store.search(HERE)) == ({key} if kept else set())


class Times(Suite):
    """Documented: when an item was created, and when it was last updated."""

    def test_times_have_a_zone(self, store: BaseStore):
        store.put(HERE, "k", {})
        item = store.get(HERE, "k")

        assert item is not None
        assert item.created_at.utcoffset() is not None
        assert item.updated_at.utcoffset() is not None
        assert item.created_at <= item.updated_at

    def test_a_replaced_item_keeps_its_first_time(self, store: BaseStore):
        first, second = _put_twice(store, {"n": 1}, {"n": 2})

        assert first.created_at == second.created_at

    def test_a_replaced_item_has_a_new_last_time(self, store: BaseStore):
        first, second = _put_twice(store, {"n": 1}, {"n": 2})

        assert first.updated_at < second.updated_at

    def test_a_put_of_the_same_value_is_an_update(self, store: BaseStore):
        first, second = _put_twice(store, {"n": 1}, {"n": 1})

        assert first.updated_at < second.updated_at

    def test_reading_is_no_update(self, store: BaseStore):
        store.put(HERE, "k", {})
        first = store.get(HERE, "k")
        (found,) = store.search(HERE)
        second = store.get(HERE, "k")

        assert first is not None
        assert second is not None
        times = {(item.created_at, item.updated_at) for item in (first, found, second)}
        assert len(times) == 1


def _put_twice(store: BaseStore, one: dict[str, Any], other: dict[str, Any]) -> tuple[Item, Item]:
    """The item after each of two puts, which are two milliseconds apart."""
    store.put(HERE, "k", one)
    first = store.get(HERE, "k")
    time.sleep(0.002)
    store.put(HERE, "k", other)
    second = store.get(HERE, "k")
    assert first is not None
    assert second is not None
    return first, second


def _value(store: BaseStore, key: str) -> dict[str, Any] | None:
    item = store.get(HERE, key)
    return None if item is None else item.value
