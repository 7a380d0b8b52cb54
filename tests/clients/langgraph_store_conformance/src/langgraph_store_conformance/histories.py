"""Random histories: whatever is done to a store, it answers as the reference does."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp

from .reference import Reference
from .searching import FiltersNested
from .suite import Namespace, Suite, plain

# Few, so that they meet.
_LABELS = st.sampled_from(["a", "b", "a b", "%41", "é", "e\u0301", "/", "*x"])
_KEYS = st.sampled_from(["k", "K", "", " ", "k/k", "k.k", "é", "e\u0301", "\u0338"])
_SETTINGS = settings(
    max_examples=30,
    deadline=None,
    # Each example is some fifty calls of a store: a failing one is printed as it is.
    phases=[phase for phase in Phase if phase is not Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow],
    report_multiple_bugs=False,
)


def _made(kind: Callable[..., Op], *fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Op]:
    """Operations with these fields. `builds` would make up the others."""
    return st.tuples(*fields).map(lambda made: kind(*made))


class Operations:
    """Operations within one namespace, which no other history has."""

    def __init__(self, subject: Suite) -> None:
        self.root = uuid.uuid4().hex
        numbers = subject.numbers
        comparisons = st.dictionaries(
            st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), numbers, min_size=1
        )
        nested: st.SearchStrategy[Any] = st.sampled_from([{"p": {"q": 1}}, {"p": {"q": {"$gt": 0}}}, {"p": None}])
        self._values = st.fixed_dictionaries(
            {
                "n": numbers,
                "t": st.sampled_from(["x", "y"]),
                "l": st.lists(numbers, max_size=2),
                "o": st.just({"p": {"q": 1}}),
            }
        )
        self._filters = st.none() | st.fixed_dictionaries(
            {},
            optional={
                "n": numbers | comparisons,
                "t": st.sampled_from(["x", None, {"$ne": "x"}]),
                "l": st.lists(numbers, max_size=2),
                **({"o": nested} if isinstance(subject, FiltersNested) else {}),
            },
        )

    def namespaces(self, *, above: int = 0) -> st.SearchStrategy[Namespace]:
        """Namespaces, or the beginnings of some."""
        return st.lists(_LABELS, min_size=1 - above, max_size=3 - above).map(lambda labels: (self.root, *labels))

    def changes(self) -> st.SearchStrategy[Op]:
        """Puts and deletions."""
        puts = _made(PutOp, self.namespaces(), _KEYS, self._values)
        return puts | puts | _made(PutOp, self.namespaces(), _KEYS, st.none())

    def reads(self) -> st.SearchStrategy[Op]:
        """Gets, and searches for all that match."""
        searches = _made(SearchOp, self.namespaces(above=1), self._filters, st.just(1000))
        return _made(GetOp, self.namespaces(), _KEYS) | searches

    def lists(self) -> st.SearchStrategy[Op]:
        """Lists of all namespaces that match."""
        labels = _LABELS | st.just("*")
        below = st.lists(labels, max_size=2).map(lambda path: (MatchCondition("prefix", (self.root, *path)),))
        end = st.lists(labels, min_size=1, max_size=2).map(lambda path: (MatchCondition("suffix", tuple(path)),))
        conditions = st.tuples(below, st.just(()) | end).map(lambda both: both[0] + both[1])
        return _made(ListNamespacesOp, conditions, st.none() | st.integers(1, 3), st.just(1000))


class Histories(Suite):
    """Random operations, one batch after another."""

    @_SETTINGS
    @given(data=st.data())
    def test_a_history_of_items(self, store: BaseStore, data: st.DataObject):
        operations, reference = Operations(self), Reference()
        for _ in range(data.draw(st.integers(1, 12))):
            ops = data.draw(st.lists(operations.changes() | operations.reads(), min_size=1, max_size=4))
            assert _sorted(store.batch(ops)) == _sorted(reference.batch(ops))
        whole = [SearchOp((operations.root,), limit=1000)]
        assert _sorted(store.batch(whole)) == _sorted(reference.batch(whole))

    @settings(_SETTINGS, derandomize=True, database=None)  # for the deviation: it always fails, or never
    @given(data=st.data())
    def test_a_history_of_namespaces(self, store: BaseStore, data: st.DataObject):
        operations, reference = Operations(self), Reference()
        for _ in range(data.draw(st.integers(1, 12))):
            ops = data.draw(st.lists(operations.changes(), max_size=4))
            reads = [data.draw(operations.lists())]
            assert _sorted(store.batch([*ops, *reads])) == _sorted(reference.batch([*ops, *reads]))


def _sorted(answer: Any) -> Any:
    """An answer, or several, without an order of items: the documentation states none."""
    if isinstance(answer, list) and answer and isinstance(answer[0], tuple):
        return sorted(answer, key=repr)
    return [_sorted(plain(each)) for each in answer] if isinstance(answer, list) else answer
