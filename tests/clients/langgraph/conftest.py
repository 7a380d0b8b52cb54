"""A store of Muniment's over a real server, and LangGraph's own in memory beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.store.base import BaseStore, Item, ListNamespacesOp, Op, Result, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

import muniment
from muniment import Classification, HostClient, SessionClient
from muniment.langgraph import MunimentStore, _key_of
from tests.support.services import Service

Opened = Callable[[Classification], SessionClient]
ALL = 10**6


@pytest.fixture
def owner(service: Service) -> Iterator[HostClient]:
    """A host with an agent `alice`."""
    with muniment.connect(service.address, host_key=service.host().token) as host:
        host.create_agent("alice")
        yield host


@pytest.fixture
def opened(owner: HostClient) -> Opened:
    """Opens sessions of `alice`, each with a conversation of its own."""
    return lambda taint: owner.open_session("alice", taint)


@pytest.fixture
def store(opened: Opened) -> MunimentStore:
    return MunimentStore(opened(Classification.INTERNAL))


class Oracle(InMemoryStore):
    """LangGraph's own store, with the three things put right that `muniment.langgraph` says it does otherwise.

    Items come in the order of their keys, a namespace without items is none, and overwriting keeps `created_at`;
    which is compared no further, since the clocks are two.
    """

    __slots__ = ()

    def batch(self, ops: Any) -> list[Result]:
        given: list[Op] = list(ops)
        answers = super().batch([_unlimited(op) for op in given])
        return [self._put_right(op, answer) for op, answer in zip(given, answers, strict=True)]

    def _put_right(self, op: Op, answer: Any) -> Any:
        if isinstance(op, SearchOp):
            answer.sort(key=lambda item: _key_of(item.namespace, item.key).encode())
            return answer[op.offset : op.offset + op.limit]
        if isinstance(op, ListNamespacesOp):
            filled = {namespace for namespace, items in self._data.items() if items}
            there = [each for each in answer if any(each == full[: len(each)] for full in filled)]
            return there[op.offset : op.offset + op.limit]
        return answer


def _unlimited(op: Op) -> Op:
    return op._replace(offset=0, limit=ALL) if isinstance(op, SearchOp | ListNamespacesOp) else op


def plain(answer: Any) -> Any:
    """An answer without its times."""
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    if isinstance(answer, Item):
        score = answer.score if isinstance(answer, SearchItem) else None
        return type(answer), answer.namespace, answer.key, answer.value, score
    return answer


Call = Callable[[BaseStore], Any]
