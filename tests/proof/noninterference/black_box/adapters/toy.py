"""A memory of a few lines: with both actors apart, together, and apart but for one number."""

from __future__ import annotations

from typing import Any, ClassVar

from ..adapter import Adapter, Boundary, operation, serve

_APART = "a dictionary for each"
_TOGETHER = "one dictionary for both"
_MIXED = "one dictionary for trusted and untrusted contexts"
_COUNTED = "a dictionary for each, one counter for both"


class Toy(Adapter):
    """Texts under keys."""

    system = "toy"
    version = "1"
    arrangements: ClassVar[dict[str, Boundary]] = {
        _APART: "another user",
        _TOGETHER: "above",
        _COUNTED: "another user",
        _MIXED: "untrusted",
    }

    def begin(self, arrangement: str) -> None:
        """Empty dictionaries."""
        self._counted = arrangement == _COUNTED
        shared: dict[str, str] = {}
        self._texts = {actor: shared if arrangement in {_TOGETHER, _MIXED} else {} for actor in ("low", "high")}
        self._writes = 0

    @operation(key="key", text="text")
    def save(self, actor: str, key: str, text: str) -> Any:
        """Store a text."""
        self._writes += 1
        self._texts[actor][key] = text
        return {"number": self._writes} if self._counted else None

    @operation(key="key", reads=True)
    def get(self, actor: str, key: str) -> Any:
        """One text, or None."""
        return self._texts[actor].get(key)

    @operation(query="query", limit="limit", reads=True)
    def search(self, actor: str, query: str, limit: int) -> Any:
        """The texts with any of the words."""
        found = [text for text in self._texts[actor].values() if set(query.split()) & set(text.split())]
        return found[:limit]

    @operation(key="key")
    def delete(self, actor: str, key: str) -> Any:
        """Whether there was a text."""
        return self._texts[actor].pop(key, None) is not None


if __name__ == "__main__":
    serve(Toy())
