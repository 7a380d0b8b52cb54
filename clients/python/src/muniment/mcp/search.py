"""The tool that searches every kind of item."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import Field

from muniment import MemoryResult, NoteResult, PassageResult
from muniment.mcp import results
from muniment.mcp.tools import TIERS, HasClassification, Tools

_FITS = 0.3
"""The relevance from which a result fits."""
Kind = Literal["all", "memory", "note", "passage"]

_EntryT = TypeVar("_EntryT", bound=results.Entry)


class SearchTools(Tools):
    """Search."""

    def search(
        self,
        query: Annotated[
            str, Field(min_length=1, max_length=1024, description="Plain language: a question, or words.")
        ],
        kind: Annotated[Kind, Field(description="One kind only, if not all.")] = "all",
        max_results: Annotated[int, Field(ge=1, le=100, description="The most results of each kind.")] = 10,
    ) -> results.Found:
        """Find memories, notes and passages by what they say, best first.

        Use it before you answer anything that may depend on earlier conversations, and before you ask the user
        something that you may already know. If `whole` is false, memory_get, note_list or passage_get reads the rest.
        """
        memories = self._memories(query, max_results) if kind in ("all", "memory") else []
        notes = self._notes(query, max_results) if kind in ("all", "note") else []
        passages = self._passages(query, max_results) if kind in ("all", "passage") else []
        found: list[HasClassification] = [
            *(each.memory for each in memories),
            *(each.note for _, each in notes),
            *(each.passage for each in passages),
        ]
        rated: list[MemoryResult | NoteResult | PassageResult] = [*memories, *(each for _, each in notes), *passages]
        best = max((each.relevance for each in rated), default=None)
        return results.Found(
            classification=self._level(found),
            hint=_hint(best),
            memories=[_rated(results.memory_entry(each.memory, each.snippet), each) for each in memories],
            notes=[_rated(results.note_entry(each.note, target, each.snippet), each) for target, each in notes],
            passages=[_rated(results.passage_entry(each.passage, each.snippet), each) for each in passages],
        )

    def _memories(self, query: str, most: int) -> list[MemoryResult]:
        return list(self._session.search_memories(query, max_results=most))

    def _notes(self, query: str, most: int) -> list[tuple[results.Target, NoteResult]]:
        """The best of each target."""
        return [
            (target, each)
            for target, tier in TIERS.items()
            for each in self._session.search_notes(query, tier=tier, max_results=most)
        ]

    def _passages(self, query: str, most: int) -> list[PassageResult]:
        return list(self._session.search_passages(query, max_results=most))


def _rated(entry: _EntryT, result: MemoryResult | NoteResult | PassageResult) -> _EntryT:
    entry.relevance = round(result.relevance, 2)
    return entry


def _hint(best: float | None) -> str | None:
    """What a model should know if nothing fits well."""
    if best is None:
        return "Nothing was found. Try other words, or assume that nothing is stored about this."
    if best < _FITS:
        return "Nothing fits this well. These results are the nearest: see whether one answers before you use it."
    return None
