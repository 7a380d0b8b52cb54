"""Histories of concurrent calls, and whether some order of them explains all answers.

A history of one key is linearizable if its calls can be put in an order in which each is between its start and its
end, and in which one after the other gives the same answers (Herlihy and Wing, 1990). The order is searched for as Wing
and Gong (1993) do, and states that were visited are remembered, as Lowe (2017) does. RaiseTaint is part of every key's
history, so an order exists only if no write was below the taint, and no read above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LEVELS = 4
NOTHING = (0, "")


@dataclass(frozen=True, slots=True)
class Operation:
    """One call and its answer."""

    start: float
    end: float
    rpc: str
    conversation: str
    level: int = 0
    """At which level a save was made; of what a read returned, 0 for nothing; to which a conversation was raised."""
    content: str = ""
    deleted: bool = False
    """Whether a deletion found a version at its own level. Which lower one it reveals is not checked."""


class Memory(NamedTuple):
    """The versions of one key, and the taints."""

    taints: tuple[tuple[str, int], ...]
    versions: tuple[str, ...] = ("",) * LEVELS
    """From PUBLIC. Empty if there is none at a level."""

    def taint(self, conversation: str) -> int:
        return dict(self.taints)[conversation]

    def raised(self, conversation: str, level: int) -> Memory:
        taints = tuple((name, max(taint, level) if name == conversation else taint) for name, taint in self.taints)
        return self._replace(taints=taints)

    def with_version(self, level: int, content: str) -> Memory:
        return self._replace(versions=(*self.versions[: level - 1], content, *self.versions[level:]))

    def highest(self, taint: int) -> tuple[int, str]:
        """The version that a session at *taint* sees."""
        live = ((level, content) for level, content in enumerate(self.versions[:taint], 1) if content)
        return max(live, default=NOTHING)


def order_of(history: Sequence[Operation], taints: Mapping[str, int]) -> list[Operation] | None:
    """An order that explains the history of one key, which begins without a version; None if there is none."""
    beginning = Memory(tuple(sorted(taints.items())))
    everything = frozenset(range(len(history)))
    waiting: list[tuple[Memory, tuple[int, ...]]] = [(beginning, ())]
    visited = set()
    while waiting:
        memory, order = waiting.pop()
        left = everything.difference(order)
        if not left:
            return [history[number] for number in order]
        for number in _next(history, left):
            after = _after(memory, history[number])
            if after is not None and (known := (after, left - {number})) not in visited:
                visited.add(known)
                waiting.append((after, (*order, number)))
    return None


def _next(history: Sequence[Operation], left: frozenset[int]) -> Iterator[int]:
    """The calls that may be next: none of the others ended before they started."""
    first_end = min(history[number].end for number in left)
    return (number for number in left if history[number].start <= first_end)


def _after(memory: Memory, operation: Operation) -> Memory | None:
    """The memory after one call; None if the call could not have had its answer."""
    if operation.rpc == "RaiseTaint":
        return memory.raised(operation.conversation, operation.level)
    taint = memory.taint(operation.conversation)
    if operation.rpc == "SaveMemory":
        return memory.with_version(taint, operation.content) if operation.level == taint else None
    if operation.rpc == "GetMemory":
        return memory if memory.highest(taint) == (operation.level, operation.content) else None
    found = bool(memory.versions[taint - 1])
    if found != operation.deleted:
        return None
    return memory.with_version(taint, "") if found else memory
