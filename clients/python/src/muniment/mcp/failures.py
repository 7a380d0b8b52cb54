"""The errors that a model sees: what happened, and what to do next."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mcp.server.mcpserver.exceptions import ToolError

import muniment
from muniment import BudgetEntry, BudgetExceeded, MunimentError
from muniment._shown import shown
from muniment.mcp.results import LEVELS

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# By class of error, subclasses first.
NEXT: dict[type[MunimentError], str] = {
    muniment.InvalidArgument: "Correct the arguments and call again.",
    muniment.Unauthenticated: "The session is over, and no memory tool will work again. Tell the user that "
    "whoever runs the memory must open another session; do not retry.",
    muniment.PermissionDenied: "The memory is set up wrongly: MUNIMENT_TOKEN must be a session's token. Tell the user; "
    "do not retry.",
    muniment.MemoryNotFound: "Find its key with search or memory_list, or save it.",
    muniment.NoteNotFound: "Find its id with note_list. A note of the other target is not found here.",
    muniment.BlockNotFound: "See the blocks with block_list, or create it with block_update.",
    muniment.PassageNotFound: "Find its id with search or passage_list.",
    muniment.NotFound: "Look for what there is.",
    muniment.AlreadyExists: "Call again.",
    muniment.WriteLevelMismatch: "It was written where the conversation had seen less, so it cannot be deleted from "
    "here. Leave it, or save a correction under the same key, label or id: that is what you will see from then on.",
    muniment.TierDisabled: "These notes are switched off. Do not retry; save it with memory_save if it matters.",
    muniment.BlockTooLarge: "Shorten the content and call again.",
    muniment.FailedPrecondition: "Look at what is there, and call again.",
    muniment.Aborted: "Something changed meanwhile. Read again, then call again.",
    muniment.QuotaExceeded: "The memory is full. Delete what is not needed any more, and tell the user; do not retry.",
    muniment.StorageFull: "The memory's disk is full. Tell the user; do not retry. What is stored can be read.",
    muniment.ResourceExhausted: "The memory is busy. Go on without it, and try again later.",
    muniment.Unavailable: "The memory cannot be reached. Go on without it, and try again later. A write may have "
    "happened: look before you repeat it.",
    muniment.DeadlineExceeded: "The memory is slow. A write may have happened: look before you repeat it.",
    muniment.MethodUnknown: "The memory is older than this tool. Tell the user; do not retry.",
    muniment.InternalError: "The memory is at fault. Tell the user; do not retry.",
}


def report_errors(tool: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Wrap *tool*, so that its errors say what to do next. They contain neither a traceback nor the token."""

    @functools.wraps(tool)
    def reporting(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return tool(*args, **kwargs)
        except MunimentError as error:
            raise ToolError(text_of(error)) from None

    return reporting


def text_of(error: MunimentError) -> str:
    """What a model reads of *error*."""
    return _budget_message(error) if isinstance(error, BudgetExceeded) else f"{_message(error)}. {_next(error)}"


def _message(error: MunimentError) -> str:
    return shown(error).rstrip(".")


def _next(error: MunimentError) -> str:
    return next((hint for kind, hint in NEXT.items() if isinstance(error, kind)), "Tell the user.")


def _budget_message(full: BudgetExceeded) -> str:
    """All that a model needs to make room in one call."""
    if full.usage is None:
        return f"{_message(full)}. Make room with note_edit: see note_list."
    summary = (
        f"{_message(full)}.\nThe notes take {full.usage.used_chars:,} of {full.usage.limit_chars:,} characters; this "
        f"would make it {full.would_be_chars:,}, which is {full.over_by_chars:,} too many. Nothing was changed."
    )
    if not full.entries:
        return f"{summary} Say it in fewer words, or use memory_save or passage_store."
    lines = [
        summary,
        "Repeat this change in one call of note_edit with the same target, together with deletions and shorter "
        f"versions that free {full.over_by_chars:,} characters or more. The largest notes, up to "
        f"{LEVELS[max(entry.classification for entry in full.entries)]}, are:",
        *map(_entry, full.entries),
    ]
    return "\n".join(lines)


def _entry(entry: BudgetEntry) -> str:
    may = "delete or shorten" if entry.own_level else "shorten only"
    level = LEVELS[entry.classification]
    return f"- note_id {entry.note_id}, {entry.length_chars:,} characters, {level}, {may}: {entry.preview!r}"
