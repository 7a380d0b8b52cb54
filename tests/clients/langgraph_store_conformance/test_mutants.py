"""The suite can fail: each mutant of a store fails a test, and so does a capability that is declared wrongly."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any
from unicodedata import normalize

import pytest
from langgraph.store.base import BaseStore, Item, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from langgraph_store_conformance import (
    ChoosesFields,
    Ranks,
    Reference,
    RefusesAsynchronous,
    RefusesFields,
    RefusesNestedFilters,
    RefusesTTL,
    reference,
)
from langgraph_store_conformance.suite import Suite
from tests.clients.langgraph_store_conformance import test_langgraph, test_reference

pytestmark = pytest.mark.proof

_FAILURES = (AssertionError, pytest.fail.Exception, AttributeError, LookupError, TypeError, ValueError)
_COMPARES, _FITS, _MATCHES, _PAGE, _SAME = (
    reference.compares, reference.fits, reference.matches, reference.page, reference.same,
)  # fmt: skip


def calls(tests: type[Suite]) -> Iterator[tuple[str, Callable[..., None], dict[str, Any]]]:
    """Every test of a class, with each of its arguments. Histories, which take the longest, come last."""
    names = (each for each in dir(tests) if each.startswith("test_"))
    for name in sorted(names, key=lambda each: ("history" in each, each)):
        test = getattr(tests, name)
        marks = [mark.args for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
        for values in itertools.product(*(values for _, values in marks)):
            yield name, test, {argument: value for (argument, _), value in zip(marks, values, strict=True)}


def failing(subject: Suite, make: Callable[[], BaseStore], tests: type[Suite] | None = None) -> str | None:
    """The first test that fails, though the subject does not deviate in it. None if all pass."""
    for name, test, arguments in calls(tests or type(subject)):
        if name in subject.deviations:
            continue
        try:
            test(subject, store=make(), **arguments)
        except _FAILURES:
            return name
    return None


def of_reference() -> Suite:
    return test_reference.TestReference()


def of_index() -> Suite:
    return test_langgraph.TestInMemoryStoreWithIndex()


# Stores of which one method is wrong.


class WritesBeforeItReads(Reference):
    def batch(self, ops: Any) -> Any:
        given = list(ops)
        super().batch([op for op in given if isinstance(op, PutOp)])
        return [None if isinstance(op, PutOp) else self.read(op) for op in given]


class KeepsTheFirstPut(Reference):
    def batch(self, ops: Any) -> Any:
        given = list(ops)
        results = super().batch([op for op in given if not isinstance(op, PutOp)])
        super().batch([op for op in reversed(given) if isinstance(op, PutOp)])
        return [None if isinstance(op, PutOp) else results.pop(0) for op in given]


class AnswersReadsFirst(Reference):
    def batch(self, ops: Any) -> Any:
        return super().batch(sorted(ops, key=lambda op: isinstance(op, PutOp)))


class LosesAsynchronousWrites(Reference):
    async def abatch(self, ops: Any) -> Any:
        return [self.read(op) for op in ops]


class Merges(Reference):
    def write(self, name: Any, text: str | None, ttl: float | None) -> None:
        before = self.live().get(name)
        super().write(name, json.dumps(json.loads(before.text) | json.loads(text)) if text and before else text, ttl)


class DeletesTheNamespace(Reference):
    def write(self, name: Any, text: str | None, ttl: float | None) -> None:
        super().write(name, text, ttl)
        if text is None:
            self._rows = {each: row for each, row in self._rows.items() if each[0] != name[0]}


class DeletesOnlyWhatIsThere(Reference):
    def write(self, name: Any, text: str | None, ttl: float | None) -> None:
        if text is None and name not in self._rows:
            raise KeyError(name)
        super().write(name, text, ttl)


class KeepsTheTTL(Reference):
    def write(self, name: Any, text: str | None, ttl: float | None) -> None:
        before = self.live().get(name)
        super().write(name, text, before.ttl if before and ttl is None else ttl)


class SharesWhatItReturns(Reference):
    def __init__(self) -> None:
        super().__init__()
        self.shared: dict[str, Any] = {}

    def fields(self, name: Any, *, refresh: bool) -> dict[str, Any]:
        found = super().fields(name, refresh=refresh)
        return found | {"value": self.shared.setdefault(self._rows[name].text, found["value"])}


class SharesWhatIsDeep(Reference):
    """As a shallow copy does."""

    def __init__(self) -> None:
        super().__init__()
        self.shared: dict[Any, Any] = {}

    def batch(self, ops: Any) -> Any:
        given = list(ops)
        self.shared |= {(op.namespace, op.key): dict(op.value) for op in given if isinstance(op, PutOp) and op.value}
        return super().batch(given)

    def fields(self, name: Any, *, refresh: bool) -> dict[str, Any]:
        found = super().fields(name, refresh=refresh)
        return found | {"value": dict(self.shared.get(name, found["value"]))}


class ListsWhatHasExpired(Reference):
    def namespaces(self, op: Any) -> Any:
        return _PAGE(sorted({each for each, _ in self._rows}), op)


class HasNoOrder(Reference):
    def live(self) -> Any:
        return dict(reversed(super().live().items()))


class FiltersAfterTheLimit(Reference):
    def search_items(self, op: SearchOp) -> Any:
        found = super().search_items(op._replace(filter=None))
        return [item for item in found if reference.passes(item.value, op.filter or {})]


class TakesAPrefixForAText(Reference):
    def search_items(self, op: SearchOp) -> Any:
        found = super().search_items(op._replace(namespace_prefix=(), limit=10**6, offset=0))
        prefix = ".".join(op.namespace_prefix)
        return _PAGE([item for item in found if ".".join(item.namespace).startswith(prefix)], op)


class CutsBeforeItMatches(Reference):
    def namespaces(self, op: Any) -> Any:
        cut = {each[: op.max_depth] for each, _ in self.live()}
        return _PAGE(sorted(each for each in cut if all(_MATCHES(each, one) for one in op.match_conditions or ())), op)


class AcceptsAnything(Reference):
    def read(self, op: Any) -> Any:
        return None if op is None else super().read(op)


class ReturnsDicts(Reference):
    def read(self, op: Any) -> Any:
        found = super().read(op)
        return found.dict() if isinstance(found, Item) else found


class RanksBackwards(InMemoryStore):
    def batch(self, ops: Any) -> Any:
        return [each[::-1] if isinstance(each, list) else each for each in super().batch(ops)]


def changed_fields(change: Callable[[Any, dict[str, Any]], dict[str, Any]]) -> type[Reference]:
    """A store that changes the fields of an item that is read."""

    class Changed(Reference):
        def fields(self, name: Any, *, refresh: bool) -> dict[str, Any]:
            found = super().fields(name, refresh=refresh)
            return found | change(self, found)

    return Changed


def changed_writes(change: Callable[[str | None, float | None], tuple[str | None, float | None]]) -> type[Reference]:
    """A store that changes what is written, or ignores what becomes neither."""

    class Changed(Reference):
        def write(self, name: Any, text: str | None, ttl: float | None) -> None:
            super().write(name, *change(text, ttl))

    return Changed


def changed(base: type[BaseStore], field: str, change: Callable[[Any], Any]) -> type[BaseStore]:
    """A store that changes a field of all operations that have it."""

    class Changed(base):  # type: ignore[valid-type,misc]
        def batch(self, ops: Any) -> Any:
            return super().batch(
                op._replace(**{field: change(getattr(op, field))}) if hasattr(op, field) else op for op in ops
            )

    return Changed


STORES: dict[str, type[BaseStore]] = {
    **{
        each.__name__: each
        for each in list(globals().values())
        if isinstance(each, type) and each.__module__ == __name__
    },
    "never updates": changed_fields(lambda _, found: {"updated_at": found["created_at"]}),
    "is always new": changed_fields(lambda _, found: {"created_at": found["updated_at"]}),
    "has no zone": changed_fields(lambda _, found: {"created_at": found["created_at"].replace(tzinfo=None)}),
    "updates what it reads": changed_fields(lambda store, _: {"updated_at": store.now()}),
    "never deletes": changed_writes(lambda text, ttl: (text or "{}", ttl)),
    "never expires": changed_writes(lambda text, _: (text, None)),
    "rounds the ttl": changed_writes(lambda text, ttl: (text, ttl and round(ttl))),
    "never renews": changed(Reference, "refresh_ttl", lambda _: False),
    "always renews": changed(Reference, "refresh_ttl", lambda _: True),
    "folds case": changed(Reference, "key", str.casefold),
    "strips": changed(Reference, "key", str.strip),
    "normalizes": changed(Reference, "key", lambda key: normalize("NFC", key)),
    "cuts keys": changed(Reference, "key", lambda key: key[:64]),
    "cuts long keys": changed(Reference, "key", lambda key: key[:1000]),
    "folds case of labels": changed(Reference, "namespace", lambda labels: tuple(map(str.casefold, labels))),
    "joins labels": changed(Reference, "namespace", lambda labels: ("".join(labels),)),
    "splits labels": changed(Reference, "namespace", lambda labels: tuple("/".join(labels).split("/"))),
    "cuts labels": changed(Reference, "namespace", lambda labels: tuple(each[:32] for each in labels)),
    "cuts paths": changed(Reference, "namespace", lambda labels: labels[:8]),
    "chooses no fields": changed(InMemoryStore, "index", lambda _: None),
    "ranks nothing": changed(InMemoryStore, "query", lambda _: None),
}


def _json_without_none(value: Any) -> str:
    return json.dumps({name: each for name, each in value.items() if each is not None})


def _json_that_is_cut(value: Any) -> str:
    return json.dumps({name: each[:500_000] if isinstance(each, str) else each for name, each in value.items()})


_UNKNOWN = ("$in", "$regex", "$", "$GT")


def _as_texts(value: Any, name: str, to: Any) -> bool:
    ordered = reference._COMPARISONS.get(name)
    return _COMPARES(value, name, to) if ordered is None or value is None else ordered(str(value), str(to))


FUNCTIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "no offset": ("page", lambda found, op: found[: op.limit]),
    "no limit": ("page", lambda found, op: found[op.offset :]),
    "negative pages": ("page", lambda found, op: found[op.offset : op.offset + op.limit]),
    "the limit counts from the start": ("page", lambda found, op: _PAGE(found, op) and found[op.offset : op.limit]),
    "no conditions": ("matches", lambda each, one: True),
    "an end is a beginning": ("matches", lambda each, one: _MATCHES(each, one._replace(match_type="prefix"))),
    "a wildcard is a label": ("matches", lambda each, one: _MATCHES(each, one) and each[: len(one.path)] == one.path),
    "a wildcard is none": ("matches", lambda each, one: _MATCHES((*each, "*"), one)),
    "any kind of condition": ("matches", lambda each, one: one.match_type == "infix" or _MATCHES(each, one)),
    "no filter": ("passes", lambda value, wanted: True),
    "a filter is looked at late": ("require", lambda wanted: None),
    "any of a filter": ("passes", lambda value, wanted: any(_FITS(value.get(name), to) for name, to in wanted.items())),
    "booleans are numbers": ("same", lambda one, other: bool(one == other)),
    "texts are numbers": ("same", lambda one, other: str(one) == str(other)),
    "lists contain": ("same", lambda one, other: _SAME(one, other) or (isinstance(one, list) and other in one)),
    "no part of an object": ("fits", lambda value, to: _FITS(value, to if "$" in str(to) else {"$eq": to})),
    "any operator": ("compares", lambda value, name, to: name in _UNKNOWN or _COMPARES(value, name, to)),
    "numbers are texts": ("compares", _as_texts),
    "names become texts": ("json_of", json.dumps),
    "values are cut": ("json_of", _json_that_is_cut),
    "none is left out": ("json_of", _json_without_none),
}
"""Functions of the reference, by name, and wrong ones in their place."""
OPERATORS = [("$gt", "$gte"), ("$gte", "$gt"), ("$lt", "$lte"), ("$lte", "$lt"), ("$ne", "$eq"), ("$eq", "$ne")]


@pytest.mark.parametrize("mutant", STORES)
def test_a_wrong_store_fails(mutant: str):
    store = STORES[mutant]
    if issubclass(store, InMemoryStore):
        assert failing(of_index(), lambda: store(index=test_langgraph.INDEX)) is not None
    else:
        assert failing(of_reference(), store) is not None


@pytest.mark.parametrize("mutant", FUNCTIONS)
def test_a_wrong_function_fails(mutant: str, monkeypatch: pytest.MonkeyPatch):
    name, wrong = FUNCTIONS[mutant]
    monkeypatch.setattr(reference, name, wrong)

    assert failing(of_reference(), Reference) is not None


@pytest.mark.parametrize(("operator", "wrong"), OPERATORS)
def test_a_wrong_operator_fails(operator: str, wrong: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        reference, "compares", lambda value, name, to: _COMPARES(value, wrong if name == operator else name, to)
    )

    assert failing(of_reference(), Reference) is not None


@pytest.mark.parametrize(
    "capability",
    [RefusesTTL, Ranks, ChoosesFields, RefusesFields, RefusesNestedFilters, RefusesAsynchronous],
    ids=lambda capability: capability.__name__,
)
def test_a_capability_that_is_declared_wrongly_fails(capability: type[Suite]):
    assert failing(of_reference(), Reference, capability) is not None
