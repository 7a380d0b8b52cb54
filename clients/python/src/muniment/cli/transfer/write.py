"""Writes items to an agent: plans first, from what each session sees, then writes.

Items that exist already are not written again, so a second import changes nothing. Notes come first, since their budget
may refuse them. Notes and passages keep the order of the file, whatever their level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias, TypeVar

from muniment import (
    BudgetExceeded,
    Classification,
    InvalidArgument,
    MunimentError,
    PassageExists,
)
from muniment._batches import batches
from muniment.cli.failures import Failure
from muniment.cli.output import print_note
from muniment.cli.transfer.gather import labeled, own_blocks
from muniment.cli.transfer.items import BlockItem, Item, MemoryItem, NoteItem, PassageItem, Unreadable
from muniment.cli.transfer.notes import NoteCall, over_budget, planned
from muniment.cli.transfer.progress import Advance
from muniment.cli.transfer.refusals import (
    STREAM,
    STREAM_SECONDS,
    Refusal,
    grouped,
    new_memory,
    new_passage,
    rules_by_place,
)
from muniment.cli.transfer.sessions import Sessions
from muniment.cli.transfer.tally import Tally, in_words

_I = TypeVar("_I", bound=Item)
_N = TypeVar("_N", MemoryItem, BlockItem)
_Held: TypeAlias = Mapping[str, Hashable]
"""The compared values of the items of one kind and level, by name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written."""

    notes: list[NoteCall]
    blocks: list[BlockItem]
    memories: list[MemoryItem]
    passages: list[PassageItem]
    """All passages: the server reports which exist already."""
    foreseen: Tally
    """The outcome, without passages."""
    agent_id: str

    def __len__(self) -> int:
        return sum(call.item_count for call in self.notes) + len(self.blocks) + len(self.memories) + len(self.passages)


def plan(items: Sequence[Item], sessions: Sessions, agent_id: str) -> Plan:
    """Decide what to write, and predict the outcome. Writes nothing. Raises Failure if the server refuses the notes."""
    foreseen = Tally()

    def held_blocks(level: Classification) -> _Held:
        blocks = own_blocks(sessions[level], agent_id)
        return {block.label: block.content for block in blocks}

    def held_memories(level: Classification) -> _Held:
        memories = labeled(sessions[level], sessions[level].list_memories())
        return {memory.key: (memory.content, memory.tags, memory.expire_time) for memory in memories}

    return Plan(
        planned(_of(NoteItem, items), sessions, agent_id, foreseen),
        list(_to_write(_of(BlockItem, items), held_blocks, _block_value, foreseen)),
        list(_to_write(_of(MemoryItem, items), held_memories, _memory_value, foreseen)),
        _of(PassageItem, items),
        foreseen,
        agent_id,
    )


def _of(kind: type[_I], items: Iterable[Item]) -> list[_I]:
    return [item for item in items if isinstance(item, kind)]


def _to_write(
    items: Iterable[_N], held_at: Callable[[Classification], _Held], value: Callable[[_N], Hashable], tally: Tally
) -> Iterator[_N]:
    """The *items* that are missing or different."""
    for level, each in groupby(sorted(items, key=lambda item: item.level), key=lambda item: item.level):
        held = held_at(level)
        for item in each:
            if item.name not in held:
                tally.added[level, item.kind] += 1
            elif held[item.name] == value(item):
                tally.unchanged[level, item.kind] += 1
                continue
            else:
                tally.replaced[level, item.kind] += 1
            yield item


def _block_value(block: BlockItem) -> Hashable:
    return block.content


def _memory_value(memory: MemoryItem) -> Hashable:
    return (memory.content, memory.tags, memory.expire_time)


def foresee_passages(plan: Plan, sessions: Sessions) -> None:
    """Predict the outcome of the plan's passages, too, by listing all. Raises Unreadable if an id has another text."""
    held = {
        level: {passage.passage_id: passage.content for passage in sessions[level].list_passages()}
        for level in {item.level for item in plan.passages}
    }
    for item in plan.passages:
        content = held[item.level].get(item.passage_id)
        if content not in (None, item.content):
            raise Unreadable(item.where, "the agent has a passage with that id and another text")
        outcome = plan.foreseen.added if content is None else plan.foreseen.unchanged
        outcome[item.level, item.kind] += 1


def write(plan: Plan, sessions: Sessions, advance: Advance) -> Tally:
    """Execute *plan*; return the outcome."""
    writing = _Writing(plan, sessions, advance)
    with writing.report_progress():
        for call in plan.notes:
            writing.notes(call)
        for block in plan.blocks:
            writing.block(block)
        for level, memories in groupby(plan.memories, key=lambda item: item.level):
            for few in batches(memories):
                writing.memories(level, few)
        for level, passages in groupby(plan.passages, key=lambda item: item.level):
            for batch in grouped(passages, STREAM):
                writing.passages(level, batch)
    return plan.foreseen


class _Writing:
    """Writes items, and counts those that are written."""

    def __init__(self, plan: Plan, sessions: Sessions, advance: Advance) -> None:
        self._agent_id = plan.agent_id
        self._tally = plan.foreseen
        self._sessions = sessions
        self._advance = advance
        self._arrived: Counter[str] = Counter()

    def notes(self, call: NoteCall) -> None:
        try:
            self._sessions[call.level].edit_notes(call.edits, tier=call.tier)
        except BudgetExceeded as refused:
            raise over_budget(refused, call, self._agent_id, "the rest was not imported") from None
        self._count("note", call.item_count)

    def block(self, item: BlockItem) -> None:
        with _naming([item]):
            self._sessions[item.level].update_block(item.label, item.content)
        self._count(item.kind)

    def memories(self, level: Classification, batch: Sequence[MemoryItem]) -> None:
        with _naming(batch):
            self._sessions[level].save_memories(map(new_memory, batch))
        self._count("memory", len(batch))

    def passages(self, level: Classification, batch: Sequence[PassageItem]) -> None:
        try:
            with _naming(batch):
                counts = self._sessions[level].import_passages(map(new_passage, batch), timeout=STREAM_SECONDS)
        except PassageExists as error:
            self._stopped_after(error)
            raise Failure("the agent has a passage of the file with another text", "find it: --dry-run") from None
        except MunimentError as error:
            self._stopped_after(error)
            raise
        self._tally.added[level, "passage"] += counts.stored_count
        self._tally.unchanged[level, "passage"] += counts.existing_count
        self._arrived["passage"] += counts.stored_count
        self._advance(len(batch))

    def _stopped_after(self, error: MunimentError) -> None:
        """Count the passages of a batch that the server stored before the one that it refused."""
        self._arrived["passage"] += error.progress.stored_count if error.progress else 0

    def _count(self, kind: str, count: int = 1) -> None:
        self._arrived[kind] += count
        self._advance(count)

    @contextmanager
    def report_progress(self) -> Iterator[None]:
        """If the import stops midway, print what was written."""
        try:
            yield
        except (MunimentError, Failure, KeyboardInterrupt):
            print_note(
                f"Not finished. Written so far: {in_words(self._arrived) or 'nothing'}. What is written stays; to"
            )
            print_note("import the same file again is safe, and continues from there.")
            raise


@contextmanager
def _naming(items: Sequence[Item]) -> Iterator[None]:
    """Name the place in the file of a value that the server refuses, although it did not when it was asked."""
    try:
        yield
    except InvalidArgument as error:
        place, rules = next(iter(rules_by_place(error).items()))
        raise Failure(str(Refusal(items[place], rules)), "correct the file, and import it again") from None
