"""What the store does beside the contract: the laws, and what `muniment.langgraph` says."""

from __future__ import annotations

import pytest
from langgraph.store.base import PutOp

import muniment
from muniment import Classification
from muniment._langgraph_names import key_of
from muniment.langgraph import MunimentStore

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
WHERE = ("users", "42")


def values(store: MunimentStore) -> dict[str, object]:
    return {item.key: item.value["n"] for item in store.search(WHERE)}


def test_items_above_the_taint_do_not_exist(opened):
    low, high = MunimentStore(opened(PUBLIC)), MunimentStore(opened(CONFIDENTIAL))
    low.put(WHERE, "plan", {"n": 1})
    high.put(WHERE, "plan", {"n": 2})
    high.put(("secret",), "salary", {"n": 3})

    assert (values(low), values(high)) == ({"plan": 1}, {"plan": 2})
    assert low.get(("secret",), "salary") is None
    assert low.search((), query="salary") == []
    assert low.list_namespaces() == [WHERE]
    assert high.list_namespaces() == [("secret",), WHERE]


def test_a_delete_uncovers_what_is_below_and_does_not_reach_it(opened):
    low, high = MunimentStore(opened(PUBLIC)), MunimentStore(opened(CONFIDENTIAL))
    low.put(WHERE, "plan", {"n": 1})
    high.put(WHERE, "plan", {"n": 2})

    high.delete(WHERE, "plan")

    assert values(high) == {"plan": 1}
    with pytest.raises(muniment.WriteLevelMismatch):
        high.delete(WHERE, "plan")


def test_after_a_raise_the_same_store_writes_higher(owner, opened):
    session = opened(PUBLIC)
    store, low = MunimentStore(session), MunimentStore(opened(PUBLIC))
    store.put(WHERE, "plan", {"n": 1})
    owner.raise_taint(session, RESTRICTED, reason="read the payroll")

    store.put(WHERE, "plan", {"n": 2})

    assert (values(low), values(store)) == ({"plan": 1}, {"plan": 2})


def test_a_search_with_a_query_gives_matches_best_first(store):
    store.put(WHERE, "theme", {"text": "She likes dark themes, and dark tea."})
    store.put(WHERE, "food", {"text": "No nuts, ever. She likes bread."})
    store.put(("elsewhere",), "theme", {"text": "dark dark dark"})

    found = store.search(WHERE, query="Does she like it dark?")
    filtered = store.search(WHERE, query="likes", filter={"text": {"$ne": "No nuts, ever. She likes bread."}})

    assert next(item.key for item in found) == "theme"
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    assert {item.namespace for item in found} == {WHERE}
    assert [item.key for item in filtered] == ["theme"]


@pytest.mark.parametrize("query", ["", "  ", "dark " * 500], ids=["empty", "blank", "very long"])
def test_any_query_is_accepted(store, query):
    """One that says nothing is none, of one that is too long the beginning counts."""
    store.put(WHERE, "theme", {"text": "dark"})

    assert [item.key for item in store.search((), query=query)] == ["theme"]


def test_what_is_no_number_does_not_compare(store):
    store.put(WHERE, "a", {"n": 1})
    store.put(WHERE, "b", {"n": "many"})
    store.put(WHERE, "c", {})

    assert [item.key for item in store.search(WHERE, filter={"n": {"$gt": 0}})] == ["a"]
    assert [item.key for item in store.search(WHERE, filter={"n": {"$lte": "2"}})] == ["a"]
    with pytest.raises(ValueError, match=r"\$gt compares numbers only"):
        store.search(WHERE, filter={"n": {"$gt": "many"}})


def test_a_whole_number_of_any_size_compares(store):
    """Whoever can write at or below the taint can write one: it must not keep the others from being found."""
    store.put(WHERE, "a", {"n": 10**400})
    store.put(WHERE, "b", {"n": 1.5})

    for limit in (1, 1.5, "1.5", 10**400):
        assert "a" in [item.key for item in store.search(WHERE, filter={"n": {"$gte": limit}})]
    assert [item.key for item in store.search(WHERE, filter={"n": {"$lt": 10**400}})] == ["b"]


def test_an_item_expires(opened):
    session = opened(PUBLIC)
    store = MunimentStore(session)
    store.put(WHERE, "a", {"n": 1}, ttl=5)
    (memory,) = session.list_memories()

    assert memory.expire_time is not None
    assert 290 < (memory.expire_time - memory.update_time).total_seconds() < 301
    store.get(WHERE, "a")
    assert next(session.list_memories()).etag == memory.etag
    store.put(WHERE, "a", {"n": 1})
    assert next(session.list_memories()).expire_time is None


def test_what_else_the_agent_remembers_is_not_seen(opened):
    session = opened(PUBLIC)
    store = MunimentStore(session)
    session.save_memory("muniment:langgraph/users.42/plan", '{"n": 1}')
    session.save_memory("muniment:langgraph/users.42/text", "no JSON", tags=["muniment:langgraph"])
    session.save_memory("muniment:langgraph/users.42/list", "[1]", tags=["muniment:langgraph"])
    session.save_memory("muniment:langgraph/users.42/%6B", '{"n": 1}', tags=["muniment:langgraph"])
    session.save_memory("muniment:langgraph/users.42/%FF", '{"n": 1}', tags=["muniment:langgraph"])
    session.save_memory("muniment:langgraph/no-namespace", '{"n": 1}', tags=["muniment:langgraph"])
    session.save_memory("users.42/plan", '{"n": 1}', tags=["muniment:langgraph"])
    session.save_memory("other/users.42/plan", '{"n": 1}', tags=["muniment:langgraph"])

    assert store.search(()) == []
    assert store.list_namespaces() == []
    assert store.get(WHERE, "plan") is None
    assert store.get(WHERE, "text") is None


def test_what_else_the_agent_remembers_is_not_touched(opened):
    session = opened(PUBLIC)
    store = MunimentStore(session)
    saved = session.save_memory("project/atlas", "ships on Friday")

    store.put(("project",), "atlas", {"n": 1})
    assert session.get_memory("project/atlas").etag == saved.etag
    store.delete(("project",), "atlas")
    assert session.get_memory("project/atlas").etag == saved.etag


def test_items_are_ordered_as_their_names_are_written(store):
    """In keys of memories, some characters are escaped."""
    odd = [("a b", "k"), ("a", "k.k"), ("a", "k"), ("A", "é"), ("é", "k"), ("a", ""), ("%", "k"), ("/", "k")]
    store.batch([PutOp((label,), key, {}) for label, key in odd])

    found = [(item.namespace, item.key) for item in store.search(())]
    assert found == sorted((((label,), key) for label, key in odd), key=lambda name: key_of(*name).encode())


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"n": [{1: 2}]}, TypeError),
        ({"n": {None: 2}}, TypeError),
        ({"n": (1, {2: 3})}, TypeError),
        ({"n": [float("nan")]}, ValueError),
        ({"n": float("inf")}, ValueError),
    ],
)
def test_what_json_would_change_is_refused_before_anything_is_written(store, value, error):
    with pytest.raises(error):
        store.batch([PutOp(WHERE, "a", {"n": 1}), PutOp(WHERE, "b", value)])

    assert store.search(()) == []


def test_what_is_no_json_is_found_out_before_anything_is_written(store):
    with pytest.raises(TypeError):
        store.batch([PutOp(WHERE, "a", {"n": 1}), PutOp(WHERE, "b", {"n": object()})])

    assert store.search(()) == []


def test_the_puts_of_a_batch_are_one_transaction(store):
    with pytest.raises(muniment.InvalidArgument):
        store.batch([PutOp(WHERE, "a", {"n": 1}), PutOp(WHERE, "b" * 250, {"n": 2})])
    assert store.search(()) == []

    store.batch([PutOp(WHERE, f"k{number}", {"n": "x" * 2_000}) for number in range(150)])
    assert len(store.search((), limit=200)) == 150


def test_a_namespace_does_not_begin_another_one(store):
    for namespace in (("users",), ("users2",), ("users", "42"), ("users",) * 39, ("us",)):
        store.put(namespace, "k", {"n": "harbor"})

    below = {("users",), ("users", "42"), ("users",) * 39}
    assert {item.namespace for item in store.search(("users",))} == below
    assert {item.namespace for item in store.search(("users",), query="harbor")} == below
    assert [item.namespace for item in store.search(("users",) * 35)] == [("users",) * 39]


def test_a_namespace_that_is_deeper_than_the_tags_does_not_begin_another_one(store):
    for label in ("b", "b2"):
        store.put((*("a",) * 40, label), "k", {"n": "harbor"})

    for query in (None, "harbor"):
        found = store.search((*("a",) * 40, "b"), query=query)
        assert [item.namespace[-1] for item in found] == ["b"]


def test_too_long_is_an_error(store):
    store.put(WHERE, "k" * (236 - len("users.42")), {"n": 1})
    with pytest.raises(muniment.InvalidArgument):
        store.put(WHERE, "k" * (237 - len("users.42")), {"n": 1})
    with pytest.raises(muniment.InvalidArgument):
        store.put(WHERE, "k", {"n": "x" * 140_000})


def test_the_session_is_its_owners(opened):
    session = opened(PUBLIC)
    session.close()

    with pytest.raises(muniment.Unauthenticated):
        MunimentStore(session).get(WHERE, "a")


def test_a_default_ttl_is_that_of_every_put(opened):
    session = opened(Classification.PUBLIC)
    store = MunimentStore(session, ttl={"default_ttl": 5})

    store.put(WHERE, "default", {"n": 1})
    store.put(WHERE, "none", {"n": 1}, ttl=None)

    expires = {memory.key.rpartition("/")[2]: memory.expire_time is not None for memory in session.list_memories()}
    assert expires == {"default": True, "none": False}


def test_what_reading_would_renew_is_refused(opened):
    with pytest.raises(ValueError, match="refresh_on_read is not supported"):
        MunimentStore(opened(Classification.PUBLIC), ttl={"refresh_on_read": True})


def test_the_environment_names_a_session(service, opened, monkeypatch):
    """Also beside a host key. It stays open."""
    session = opened(Classification.PUBLIC)
    monkeypatch.setenv("MUNIMENT_ADDRESS", service.address)
    monkeypatch.setenv("MUNIMENT_TOKEN", session.token)
    monkeypatch.setenv("MUNIMENT_HOST_KEY", service.host().token)

    with MunimentStore.from_env() as store:
        store.put(WHERE, "a", {"n": 1})

    assert MunimentStore(session).get(WHERE, "a") is not None


@pytest.mark.parametrize("content", ["no JSON", '"text"', '{"a":' + "[" * 50_000 + "]" * 50_000 + "}"])
def test_what_it_cannot_read_does_not_hide_the_rest(opened, content):
    """Another program, or a deeper value from another language, in a memory that could be an item."""
    session = opened(PUBLIC)
    store = MunimentStore(session)
    store.put(("a",), "mine", {"text": "tea"})
    session.save_memory("muniment:langgraph/a/other", content, tags=["muniment:langgraph", "muniment:langgraph:a"])

    assert store.get(("a",), "other") is None
    assert [item.key for item in store.search(("a",))] == ["mine"]
    assert store.list_namespaces() == [("a",)]
