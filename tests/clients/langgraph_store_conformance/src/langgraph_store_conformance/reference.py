"""The contract as a program: a store in memory that deviates in nothing."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from .suite import Namespace

Name = tuple[Namespace, str]
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """An item, and when it was last used."""

    text: str
    created_at: datetime
    updated_at: datetime
    ttl: float | None
    used_at: datetime


class Reference(BaseStore):
    """Keeps values as JSON, so that none is shared with a caller. Orders items by namespace and key."""

    __slots__ = ("_rows", "now")

    supports_ttl = True

    def __init__(self) -> None:
        self._rows: dict[Name, Row] = {}
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        for op in given:
            validate_op_namespace(op)
        results = [self.read(op) for op in given]
        puts = {(op.namespace, op.key): op for op in given if isinstance(op, PutOp)}
        texts = {name: json_of(op.value) for name, op in puts.items() if op.value is not None}
        for name, op in puts.items():
            self.write(name, texts.get(name), op.ttl)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return self.batch(ops)

    def read(self, op: Op) -> Result:
        """The result of an operation."""
        if isinstance(op, PutOp):
            return None
        if isinstance(op, ListNamespacesOp):
            return self.namespaces(op)
        if isinstance(op, SearchOp):
            return self.search_items(op)
        if isinstance(op, GetOp):
            name = (op.namespace, op.key)
            return Item(**self.fields(name, refresh=op.refresh_ttl)) if name in self.live() else None
        raise ValueError(f"not an operation: {op!r}")

    def write(self, name: Name, text: str | None, ttl: float | None) -> None:
        """Replace or delete an item."""
        before = self.live().get(name)
        self._rows.pop(name, None)
        if text is not None:
            now = self.now()
            self._rows[name] = Row(text, before.created_at if before else now, now, ttl, now)

    def live(self) -> dict[Name, Row]:
        """The items that have not expired, in their order."""
        now = self.now()
        return {
            name: row
            for name, row in sorted(self._rows.items())
            if row.ttl is None or now < row.used_at + timedelta(minutes=row.ttl)
        }

    def fields(self, name: Name, *, refresh: bool) -> dict[str, Any]:
        """The fields of an item that is read."""
        row = self._rows[name]
        if refresh:
            self._rows[name] = Row(row.text, row.created_at, row.updated_at, row.ttl, self.now())
        times = {"created_at": row.created_at, "updated_at": row.updated_at}
        return {"namespace": name[0], "key": name[1], "value": json.loads(row.text), **times}

    def search_items(self, op: SearchOp) -> list[SearchItem]:
        """The page of a search. A query changes nothing."""
        require(op.filter or {})
        matching = [
            name
            for name, row in self.live().items()
            if name[0][: len(op.namespace_prefix)] == op.namespace_prefix
            and passes(json.loads(row.text), op.filter or {})
        ]
        return [SearchItem(**self.fields(name, refresh=op.refresh_ttl)) for name in page(matching, op)]

    def namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        """The page of a list of namespaces."""
        conditions = op.match_conditions or ()
        found = {each for each, _ in self.live() if all(matches(each, one) for one in conditions)}
        return page(sorted({each[: op.max_depth] for each in found}), op)


def json_of(value: Mapping[str, Any]) -> str:
    """A value as JSON. ValueError: it is not the same afterwards."""
    text = json.dumps(dict(value))
    if json.loads(text) != dict(value):
        raise ValueError("not JSON")
    return text


def page(found: list[Any], op: SearchOp | ListNamespacesOp) -> list[Any]:
    """The part of *found* that *op* asks for."""
    if op.limit < 0 or op.offset < 0:
        raise ValueError("limit and offset must not be negative")
    return found[op.offset : op.offset + op.limit]


def matches(namespace: Namespace, condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends as *condition* says."""
    path, count = condition.path, len(condition.path)
    ends = {"prefix": namespace[:count], "suffix": namespace[max(0, len(namespace) - count) :]}
    if condition.match_type not in ends:
        raise ValueError(f"not a kind of condition: {condition.match_type}")
    end = ends[condition.match_type]
    return len(end) == count and all(wanted in ("*", label) for wanted, label in zip(path, end, strict=True))


def require(wanted: Mapping[str, Any]) -> None:
    """Refuse an unknown operator even if there is no item to compare."""
    for each in wanted.values():
        fits(None, each)


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a value passes a filter. A field that it lacks is None."""
    return all(fits(value.get(name), each) for name, each in wanted.items())


def fits(value: Any, wanted: Any) -> bool:
    """Whether one field passes its condition."""
    if isinstance(wanted, dict) and any(name.startswith("$") for name in wanted):
        return all(compares(value, name, to) for name, to in wanted.items())
    if isinstance(wanted, dict):
        return isinstance(value, dict) and passes(value, wanted)
    return same(value, wanted)


def compares(value: Any, name: str, to: Any) -> bool:
    """Whether a value compares to another as an operator says. Only numbers are greater or less."""
    if name in ("$eq", "$ne"):
        return same(value, to) == (name == "$eq")
    compare = _COMPARISONS.get(name)
    if compare is None:
        raise ValueError(f"not an operator: {name}")
    if not isinstance(to, int | float):
        raise ValueError("compares numbers only")
    return isinstance(value, int | float) and compare(value, to)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 is 1.0, and not true."""
    return type_of(one) == type_of(other) and bool(one == other)


def type_of(value: Any) -> Any:
    """What tells a boolean from a number, at any depth."""
    if isinstance(value, dict):
        return {name: type_of(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [type_of(each) for each in value]
    return isinstance(value, bool)
