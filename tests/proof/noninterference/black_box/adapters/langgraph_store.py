"""What the adapters of LangGraph's stores share: a `BaseStore`, with a namespace for each actor as its documentation
recommends, or one for both."""

from __future__ import annotations

from importlib import metadata
from typing import Any, ClassVar

from langgraph.store.base import BaseStore

from ..adapter import Adapter, Boundary, operation

_USERS = "(memories, user) as the namespace"
_ALIKE = "(memories, user) as the namespace, of users an and anna"
_LEVELS = "(memories, user, level) as the namespace"
_TOGETHER = "one namespace for both levels"
_TRUST = "(memories, user, integrity) as the namespace"
_MIXED = "one namespace for trusted and untrusted contexts"


class Store(Adapter):
    """Texts under a namespace and a key."""

    arrangements: ClassVar[dict[str, Boundary]] = {
        _USERS: "another user",
        _ALIKE: "another user",
        _LEVELS: "above",
        _TOGETHER: "above",
        _TRUST: "untrusted",
        _MIXED: "untrusted",
    }
    refusals = (ValueError,)
    package: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.version = metadata.version(self.package)
        self.store: BaseStore

    def begin(self, arrangement: str) -> None:
        """Choose the namespaces. What is stored is deleted by `empty`."""
        self.empty()
        namespaces: dict[str, dict[str, tuple[str, ...]]] = {
            _USERS: {"low": ("memories", "alice"), "high": ("memories", "bob")},
            _ALIKE: {"low": ("memories", "an"), "high": ("memories", "anna")},
            _LEVELS: {"low": ("memories", "alice", "public"), "high": ("memories", "alice", "confidential")},
            _TOGETHER: {"low": ("memories", "alice"), "high": ("memories", "alice")},
            _TRUST: {"low": ("memories", "alice", "trusted"), "high": ("memories", "alice", "untrusted")},
            _MIXED: {"low": ("memories", "alice"), "high": ("memories", "alice")},
        }
        self._namespaces = namespaces[arrangement]

    def empty(self) -> None:
        """Delete all."""
        for namespace in self.store.list_namespaces(limit=100):
            for item in self.store.search(namespace, limit=100):
                self.store.delete(item.namespace, item.key)

    @operation(key="key", text="text", tags="tags")
    def put(self, actor: str, key: str, text: str, tags: list[str]) -> Any:
        """Store a text."""
        return self.store.put(self._namespaces[actor], key, {"text": text, "tag": "".join(tags[:1])})

    @operation(key="key", reads=True)
    def get(self, actor: str, key: str) -> Any:
        """One item."""
        item = self.store.get(self._namespaces[actor], key)
        return item and item.dict()

    @operation(limit="limit", tags="tags", reads=True)
    def search(self, actor: str, limit: int, tags: list[str]) -> Any:
        """The items of the namespace, perhaps with a tag."""
        found = self.store.search(self._namespaces[actor], filter={"tag": tags[0]} if tags else None, limit=limit)
        return [item.dict() for item in found]

    @operation(limit="limit", reads=True)
    def list_namespaces(self, actor: str, limit: int) -> Any:
        """The namespaces that begin with the actor's own."""
        return self.store.list_namespaces(prefix=self._namespaces[actor], limit=limit)

    @operation(key="key")
    def delete(self, actor: str, key: str) -> Any:
        """Delete an item."""
        return self.store.delete(self._namespaces[actor], key)
