"""A store of Muniment's over a real server, and LangGraph's own in memory beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.store.base import BaseStore, Item, ListNamespacesOp, Op, Result, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

import muniment
from muniment import Classification, HostClient, SessionClient
from muniment._langgraph_names import key_of
from muniment.langgraph import MunimentStore
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
    """LangGraph's own store, with what `muniment.langgraph` says it does otherwise.

    Items come by namespace and key, and a namespace without items is none.
    """

    __slots__ = ()

    def batch(self, ops: Any) -> list[Result]:
        given: list[Op] = list(ops)
        unlimited = [op._replace(offset=0, limit=ALL) if isinstance(op, SearchOp) else op for op in given]
        answers = super().batch(unlimited)
        return [_in_order(op, answer) for op, answer in zip(given, answers, strict=True)]

    def _handle_list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        for namespace in [each for each, items in self._data.items() if not items]:
            del self._data[namespace]
        return super()._handle_list_namespaces(op)


def _in_order(op: Op, answer: Any) -> Any:
    if not isinstance(op, SearchOp):
        return answer
    ordered = sorted(answer, key=lambda item: key_of(item.namespace, item.key).encode())
    return ordered[op.offset : op.offset + op.limit]


def plain(answer: Any) -> Any:
    """An answer without its times."""
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    if isinstance(answer, Item):
        score = answer.score if isinstance(answer, SearchItem) else None
        return type(answer), answer.namespace, answer.key, answer.value, score
    return answer


Call = Callable[[BaseStore], Any]
