"""Whatever is done to a store of Muniment's and to LangGraph's own, they answer alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, NamespaceMatchType, Op, PutOp, SearchOp

from muniment import Classification, HostClient
from muniment._langgraph_names import key_of, namespace_of, tags_of, unescaped
from muniment.langgraph import MunimentStore
from muniment_server.domain import text
from tests.clients.langgraph.conftest import Oracle, plain

# Few, so that they meet.
LABELS = st.sampled_from(["a", "b", "a b", "%41", "é", "e\u0301", "/", "*x"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "K", "", " ", "k/k", "k.k", "é", "e\u0301", "\u0338"])
NUMBERS = st.integers(-2, 2) | st.sampled_from([0.5, -1.5])
VALUES = st.fixed_dictionaries(
    {"n": NUMBERS},
    optional={"t": st.sampled_from(["x", "y"]), "l": st.lists(NUMBERS, max_size=2), "o": st.just({"p": {"q": 1}})},
)
COMPARISONS = st.dictionaries(st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), NUMBERS, min_size=1)
FILTERS = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "n": NUMBERS | COMPARISONS,
        "t": st.sampled_from(["x", None, {"$ne": "x"}]),
        "l": st.lists(NUMBERS, max_size=2),
        "o": st.sampled_from([{"p": {"q": 1}}, {"p": {"q": {"$gt": 0}}}, {"p": None}]),
    },
)
LIMITS = st.integers(0, 5)
PATTERNS = st.lists(LABELS | st.just("*"), max_size=2).map(tuple)
KINDS: st.SearchStrategy[NamespaceMatchType] = st.sampled_from(["prefix", "suffix"])
CONDITIONS = st.tuples(KINDS, PATTERNS).map(lambda fields: MatchCondition(*fields))
PUTS = st.tuples(NAMESPACES, KEYS, VALUES).map(lambda fields: PutOp(*fields))
DELETES = st.tuples(NAMESPACES, KEYS, st.none()).map(lambda fields: PutOp(*fields))
GETS = st.tuples(NAMESPACES, KEYS).map(lambda fields: GetOp(*fields))
SEARCHES = st.tuples(st.lists(LABELS, max_size=2).map(tuple), FILTERS, LIMITS, LIMITS).map(
    lambda fields: SearchOp(*fields)
)
LISTS = st.tuples(st.lists(CONDITIONS, max_size=2).map(tuple), st.none() | st.integers(1, 3), LIMITS, LIMITS).map(
    lambda fields: ListNamespacesOp(*fields)
)
OPS: st.SearchStrategy[Op] = PUTS | PUTS | DELETES | GETS | SEARCHES | LISTS
PHASES = [phase for phase in Phase if phase is not Phase.shrink]
"""Each example is some fifty calls of a server: a failing one is printed as it is."""


@settings(max_examples=30, deadline=None, phases=PHASES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(OPS, min_size=1, max_size=4), max_size=12))
def test_the_same_operations_give_the_same_answers(owner: HostClient, batches: list[list[Op]]):
    agent = owner.create_agent()
    oracle = Oracle()
    with owner.open_session(agent.agent_id, Classification.CONFIDENTIAL) as session:
        store = MunimentStore(session)
        last: list[Op] = [SearchOp((), limit=1000), ListNamespacesOp(limit=1000)]
        for ops in [*batches, last]:
            assert plain(store.batch(ops)) == plain(oracle.batch(ops))


TEXTS = st.text(max_size=20) | st.text(
    st.sampled_from("%./ aA0e\u0301\u0338é\u1100\u1161\0\ud800\ufeff\u2028"), max_size=8
)
PATHS = st.lists(TEXTS.filter(bool), max_size=4).map(tuple)


@settings(max_examples=500, deadline=None)
@given(PATHS, TEXTS)
def test_every_namespace_and_key_comes_back_from_the_key_of_its_memory(namespace: tuple[str, ...], key: str):
    """So no two have the same."""
    prefix, path, escaped = key_of(namespace, key).split("/")

    assert (prefix, namespace_of(path), unescaped(escaped)) == ("langgraph", namespace, key)


@settings(max_examples=500, deadline=None)
@given(PATHS, TEXTS)
def test_the_server_keeps_keys_and_tags_as_they_are(namespace: tuple[str, ...], key: str):
    made = key_of(namespace, key)
    if len(made) <= text.KEY_LIMIT:
        assert text.key(made) == made
    tags = tags_of(namespace)
    assert text.tags(tags) == tags


def test_a_key_is_the_same_whatever_unicode_the_interpreter_knows():
    assert key_of(("é", "記憶"), "நினைவு") == "langgraph/é.記憶/நினைவு"
    assert key_of(("a",), "\U0001fae0") == "langgraph/a/%F0%9F%AB%A0"  # since Unicode 14


@pytest.mark.parametrize("depth", [1, 31, 32, 60])
def test_there_are_never_too_many_tags(depth):
    tags: list[Any] = tags_of(("x" * 100,) * depth)

    assert len(tags) == min(depth, 31) + 1
