"""Search by a query, and which fields it looks at."""

from __future__ import annotations

import pytest
from langgraph.store.base import BaseStore, PutOp

from .suite import HERE, Suite, keys, names

TEXTS = {  # by keys that match no query: a store may search keys, too
    "1": "dark themes in the evening",
    "2": "bread without nuts",
    "3": "Assam with sugar",
    "4": "a harbor in the north",
}


def _filled(store: BaseStore) -> BaseStore:
    """The store, with `TEXTS`."""
    store.batch([PutOp(HERE, key, {"text": text, "n": len(text)}) for key, text in TEXTS.items()])
    return store


class Ranks(Suite):
    """Declares that a search with a query ranks items, by embeddings or by words, of their field `text` at least.

    The texts are such that any ranking puts the right one first. Whether a search returns items that match less, or
    not at all, is left to the store.
    """

    def test_the_best_match_is_the_first(self, store: BaseStore):
        _filled(store)

        assert {text: store.search(HERE, query=text)[0].key for text in TEXTS.values()} == {
            text: key for key, text in TEXTS.items()
        }

    def test_scores_fall(self, store: BaseStore):
        found = _filled(store).search(HERE, query="dark bread in the evening")

        scores = [item.score for item in found if item.score is not None]
        assert scores == sorted(scores, reverse=True)
        assert found[0].score is not None
        assert keys(found) <= set(TEXTS)

    def test_a_query_looks_only_below_the_prefix(self, store: BaseStore):
        _filled(store).put(("elsewhere",), "1", {"text": TEXTS["1"]})
        store.put((HERE[0], HERE[1] + "0"), "1", {"text": TEXTS["1"]})

        assert {item.namespace for item in store.search(HERE, query=TEXTS["1"])} == {HERE}

    def test_a_filter_applies_to_a_query(self, store: BaseStore):
        _filled(store).put(HERE, "5", {"text": TEXTS["1"], "n": -1})

        assert keys(store.search(HERE, query=TEXTS["1"], filter={"n": {"$eq": -1}})) == {"5"}

    def test_a_page_of_matches_is_a_part_of_all(self, store: BaseStore):
        for number in range(8):
            store.put(HERE, str(number), {"text": "dark " * (number + 1) + "bread " * (9 - number)})
        whole = names(store.search(HERE, query="dark", limit=20))

        pages = [(offset, limit) for offset in (0, 1, 4, 7, 8, 9) for limit in (1, 3, 20)]
        found = [names(store.search(HERE, query="dark", offset=offset, limit=limit)) for offset, limit in pages]
        assert found == [whole[offset : offset + limit] for offset, limit in pages]
        assert len(whole) == 8

    def test_items_of_a_batch_may_have_the_same_text(self, store: BaseStore):
        store.batch([PutOp(HERE, key, {"text": "dark themes"}) for key in "ab"])

        assert keys(store.search(HERE, query="dark")) == {"a", "b"}

    def test_all_matches_can_be_read(self, store: BaseStore):
        store.batch([PutOp(HERE, str(number), {"text": f"dark {number}"}) for number in range(120)])

        assert len(keys(store.search(HERE, query="dark", limit=200))) == 120

    def test_a_filter_applies_before_the_limit_of_a_query(self, store: BaseStore):
        store.batch([PutOp(HERE, str(number), {"text": f"dark {number}", "n": 0}) for number in range(120)])
        store.put(HERE, "other", {"text": "dark bread without nuts", "n": 1})

        assert keys(store.search(HERE, query="dark", filter={"n": 1})) == {"other"}

    def test_a_deleted_item_is_not_found(self, store: BaseStore):
        _filled(store).delete(HERE, "1")

        assert "1" not in keys(store.search(HERE, query=TEXTS["1"]))

    def test_a_replaced_text_is_found_by_its_new_words(self, store: BaseStore):
        _filled(store).put(HERE, "1", {"text": "light colors"})
        store.put(HERE, "2", {"text": "dark colors"})

        assert store.search(HERE, query="light")[0].key == "1"
        assert store.search(HERE, query="dark")[0].key == "2"

    def test_a_removed_text_is_not_found(self, store: BaseStore):
        """The new value has no text, so nothing of it matches."""
        _filled(store).put(HERE, "1", {"n": 1})
        store.put(HERE, "2", {"text": "dark colors"})

        assert store.search(HERE, query=TEXTS["1"])[0].key != "1"

    def test_an_empty_query_is_none(self, store: BaseStore):
        found = _filled(store).search(HERE, query="")

        assert names(found) == names(store.search(HERE))
        assert {item.score for item in found} == {None}


class IgnoresQueries(Suite):
    """Declares that a search with a query returns the same as without. Documented: without an index it may."""

    def test_a_query_changes_nothing(self, store: BaseStore):
        for key, text in TEXTS.items():
            store.put(HERE, key, {"text": text})
        found = store.search(HERE, query=TEXTS["3"])

        assert names(found) == names(store.search(HERE))
        assert {item.score for item in found} == {None}  # by which a caller sees it


class ChoosesFields(Suite):
    """Declares that `index` chooses the fields that a query looks at."""

    def test_an_item_without_index_does_not_match(self, store: BaseStore):
        store.put(HERE, "hidden", {"text": "dark themes"}, index=False)
        store.put(HERE, "shown", {"text": "dark bread"})

        found = {item.key: item.score for item in store.search(HERE, query="dark themes")}
        assert found["shown"] is not None
        assert found.get("hidden") is None
        assert store.get(HERE, "hidden") is not None
        assert keys(store.search(HERE)) == {"hidden", "shown"}

    def test_only_the_chosen_fields_match(self, store: BaseStore):
        store.put(HERE, "a", {"title": "dark", "text": "bread"}, index=["title"])
        store.put(HERE, "b", {"title": "bread", "text": "dark"}, index=["title"])

        assert store.search(HERE, query="dark")[0].key == "a"
        assert store.search(HERE, query="bread")[0].key == "b"

    def test_a_chosen_field_may_be_deep(self, store: BaseStore):
        """Documented: paths such as `parent.child` and `array[*].field`."""
        store.put(HERE, "a", {"meta": {"title": "dark"}, "notes": [{"text": "harbor"}]}, index=["meta.title"])
        store.put(HERE, "b", {"meta": {"title": "tea"}, "notes": [{"text": "nuts"}]}, index=["notes[*].text"])

        assert store.search(HERE, query="dark")[0].key == "a"
        assert store.search(HERE, query="nuts")[0].key == "b"
        assert store.search(HERE, query="harbor")[0].score in (0, None)

    def test_a_put_without_index_ends_it(self, store: BaseStore):
        store.put(HERE, "a", {"text": "dark themes"})
        store.put(HERE, "a", {"text": "dark themes"}, index=False)

        assert [item.score for item in store.search(HERE, query="dark themes")] in ([], [None])


class RefusesFields(Suite):
    """Declares that a put with `index` is refused: a query would find what was to be left out."""

    @pytest.mark.parametrize("index", [False, ["text"]])
    def test_a_choice_of_fields_is_refused(self, store: BaseStore, index: list[str] | bool):
        with pytest.raises(self.refusals):
            store.batch([PutOp(HERE, "a", {"n": 1}), PutOp(HERE, "b", {"n": 2}, index=index)])  # type: ignore[arg-type]
        with pytest.raises(self.refusals):
            store.put(HERE, "a", {"n": 1}, index=index)  # type: ignore[arg-type]

        assert store.search(()) == []


class IgnoresFields(Suite):
    """Declares that `index` has no effect. Documented, for a store that is not configured to search by a query."""

    @pytest.mark.parametrize("index", [False, ["text"]])
    def test_a_choice_of_fields_changes_nothing(self, store: BaseStore, index: list[str] | bool):
        store.put(HERE, "a", {"text": "dark", "n": 1}, index=index)  # type: ignore[arg-type]
        found = store.search(HERE, query="dark")

        assert [(item.value, item.score) for item in found] == [({"text": "dark", "n": 1}, None)]
