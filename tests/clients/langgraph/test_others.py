"""What the store shows of memories that are no items of it, under a namespace that the caller names."""

from __future__ import annotations

import pytest

from muniment import Classification, SessionClient
from muniment.files import FileView
from muniment.langgraph import MunimentStore
from tests.clients.langgraph.conftest import Opened

OTHERS = ("others",)


@pytest.fixture
def session(opened: Opened) -> SessionClient:
    """Has a plain memory, a file and an item that all speak of tea."""
    session = opened(Classification.INTERNAL)
    session.save_memory("fact/tea", "She likes tea from Assam.", tags=["facts"])
    FileView(session).create("trips/graz.md", "A house of tea is in Graz.")
    MunimentStore(session).put(("users", "42"), "drinks", {"text": "tea in the morning"})
    return session


@pytest.fixture
def store(session: SessionClient) -> MunimentStore:
    return MunimentStore(session, others=OTHERS)


EXPECTED = {
    (OTHERS, "fact/tea", "memory"),
    (OTHERS, "muniment:files/trips/graz.md", "files"),
    (("users", "42"), "drinks", None),
}


def found(items):
    return {(item.namespace, item.key, item.value.get("source")) for item in items}


@pytest.mark.parametrize("query", ["tea", None])
def test_a_search_finds_what_others_stored_and_says_who(store, query):
    assert found(store.search((), query=query)) == EXPECTED
    assert found(store.search(OTHERS, query=query)) == {each for each in EXPECTED if each[0] == OTHERS}
    assert found(store.search(("users",), query=query)) == {each for each in EXPECTED if each[0] != OTHERS}


def test_scores_compare(store):
    scores = [item.score for item in store.search((), query="tea from Assam")]

    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 1.0


def test_a_filter_applies(store):
    assert found(store.search((), filter={"source": "files"})) == {(OTHERS, "muniment:files/trips/graz.md", "files")}


def test_another_memory_is_read_by_its_key(store):
    item = store.get(OTHERS, "fact/tea")

    assert item is not None
    assert item.value == {"content": "She likes tea from Assam.", "source": "memory"}
    assert store.get(OTHERS, "no such key") is None


def test_an_item_is_not_among_the_others(store):
    assert store.get(OTHERS, "muniment:langgraph/users.42/drinks") is None


def test_the_namespace_is_listed_while_there_are_others(store, session):
    assert store.list_namespaces() == [OTHERS, ("users", "42")]
    assert store.list_namespaces(prefix=("users",)) == [("users", "42")]
    session.delete_memory("fact/tea")
    FileView(session).clear()
    assert store.list_namespaces() == [("users", "42")]


@pytest.mark.parametrize("namespace", [OTHERS, (*OTHERS, "below")])
@pytest.mark.parametrize("value", [{"text": "x"}, None])
def test_others_can_only_be_read(store, namespace, value):
    with pytest.raises(ValueError, match="only be read"):
        store.put(namespace, "fact/tea", value)


def test_without_the_option_the_store_shows_its_items_alone(session):
    store = MunimentStore(session)

    assert found(store.search((), query="tea")) == {(("users", "42"), "drinks", None)}
    assert store.get(OTHERS, "fact/tea") is None


def test_what_is_above_the_taint_does_not_exist(opened, session):
    low = MunimentStore(opened(Classification.PUBLIC), others=OTHERS)

    assert low.search(()) == low.search((), query="tea") == low.list_namespaces() == []
    assert low.get(OTHERS, "fact/tea") is None


def test_an_empty_namespace_is_refused(session):
    with pytest.raises(ValueError, match="namespace of its own"):
        MunimentStore(session, others=())
