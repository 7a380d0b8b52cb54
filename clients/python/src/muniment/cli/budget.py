"""Prints the usage of a tier, and what to do if a note exceeds the budget."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import muniment
from muniment import Usage
from muniment.cli.failures import Failure
from muniment.cli.output import Output, Row

_COLUMNS = ("note_id", "chars", "classification", "whose", "preview")


class OverBudget(Failure):
    """The notes would exceed the budget of their tier. Shows the beginnings of the largest notes."""

    def __init__(self, usage: Usage, refused: muniment.BudgetExceeded) -> None:
        super().__init__(
            f"the notes would take {refused.would_be_chars:,} of {usage.limit_chars:,} chars, "
            f"{refused.over_by_chars:,} too many; nothing was changed",
            "make room: shorten a note (muniment note update) or delete one of the own level (muniment note delete); "
            "or do it all at once: muniment note edit",
        )
        self._largest = refused.entries

    def show_details(self) -> None:
        """The largest notes, largest first."""
        Output(as_json=False, beside=True).rows(map(_row, self._largest), _COLUMNS)


def report_budget(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command show the largest notes when the budget is exceeded."""

    @functools.wraps(command)
    def with_telling(*positional: Any, **arguments: Any) -> None:
        try:
            command(*positional, **arguments)
        except muniment.BudgetExceeded as refused:
            if refused.usage is None:
                raise
            raise OverBudget(refused.usage, refused) from None

    return with_telling


def usage_in_words(usage: Usage) -> str:
    """`42% — 924/2,200 chars`, as in a prompt."""
    return f"{usage.percent}% — {usage.used_chars:,}/{usage.limit_chars:,} chars"


def _row(each: muniment.BudgetEntry) -> Row:
    return {
        "note_id": each.note_id,
        "chars": each.length_chars,
        "classification": each.classification,
        "whose": "own level" if each.own_level else "another level",
        "preview": each.preview,
    }
