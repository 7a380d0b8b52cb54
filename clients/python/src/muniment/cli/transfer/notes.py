"""Plans the calls of EditNotes that write the notes of a file. The server checks them before any is made.

A call has at most 100 edits of one tier at one level, and is applied as a whole or not at all. Notes are written in the
order of the file, whatever their level, because sessions see them in the order in which they were added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby

import muniment
from muniment import AddNote, BudgetExceeded, Classification, Note, NoteEdit, SessionClient, Tier, UpdateNote
from muniment.cli.failures import Failure
from muniment.cli.transfer.gather import labeled
from muniment.cli.transfer.items import NoteItem, Unreadable
from muniment.cli.transfer.refusals import MAX_EDIT_BYTES, MAX_EDITS, rules_by_place
from muniment.cli.transfer.sessions import Sessions
from muniment.cli.transfer.tally import Tally

_NAMES = {Tier.MEMORY: ("notes", "--notes"), Tier.USER: ("profile", "--profile")}
"""The name of each tier in messages, and the option that enables it."""

_Held = Mapping[Classification, Mapping[str, Note]]
"""The notes that a session at each level sees, by id."""


@dataclass(slots=True)
class NoteCall:
    """One call of EditNotes."""

    level: Classification
    tier: Tier
    edits: list[NoteEdit] = field(default_factory=list)
    items: list[NoteItem] = field(default_factory=list)
    """The note that each edit writes. Some notes take two edits."""

    @property
    def item_count(self) -> int:
        """How many notes it writes."""
        return len({item.note_id for item in self.items})

    def has_room(self, item: NoteItem) -> bool:
        """Whether the call can write *item*, too."""
        size = sum(len(each.content.encode()) for each in (*self.items, item))
        return not self.edits or (len(self.edits) + 2 <= MAX_EDITS and size <= MAX_EDIT_BYTES)


def planned(items: Sequence[NoteItem], sessions: Sessions, agent_id: str, tally: Tally) -> list[NoteCall]:
    """The calls that write *items*. Counts the outcome in *tally*. Raises Failure if the server refuses the notes."""
    if not items:
        return []
    held = {
        level: {note.note_id: note for tier in Tier for note in session.list_notes(tier)}
        for level, session in sessions.items()
    }
    own = {level: list(labeled(session, held[level].values())) for level, session in sessions.items()}
    changed = list(_changed(items, held, own, tally))
    _check_budgets(changed, held, sessions, agent_id)
    return list(_in_file_order(changed, held))


def over_budget(refused: BudgetExceeded, call: NoteCall, agent_id: str, outcome: str) -> Failure:
    """The failure for notes that exceed the budget. *outcome* says what was written."""
    name, option = _NAMES[call.tier]
    limit = refused.would_be_chars - refused.over_by_chars
    return Failure(
        f"the {name} (tier {call.tier.name.lower()}) do not fit: at {call.level.name} they would take "
        f"{refused.would_be_chars:,} of {limit:,} chars, {refused.over_by_chars:,} too many; {outcome}",
        f"raise the limit, then import again: muniment agent update {agent_id} {option}-limit {refused.would_be_chars}",
    )


def _changed(
    items: Sequence[NoteItem], held: _Held, own: Mapping[Classification, Sequence[Note]], tally: Tally
) -> Iterator[NoteItem]:
    """The *items* that the agent does not have yet, under the same id or under one that is not in the file.

    *own*: the notes of each session's own label.
    """
    in_file = {(item.level, item.note_id) for item in items}
    for item in items:
        seen = held[item.level].get(item.note_id)
        if seen and seen.tier != item.tier:
            raise Unreadable(
                item.where, "the agent has a note with that id in the other tier, and a note cannot change its tier"
            )
        of_tier = [note for note in own[item.level] if note.tier == item.tier]
        same = [note.note_id for note in of_tier if note.content == item.content]
        if item.note_id in same or (not seen and any((item.level, note_id) not in in_file for note_id in same)):
            tally.unchanged[item.level, item.kind] += 1
            continue
        (tally.replaced if seen in of_tier else tally.added)[item.level, item.kind] += 1
        yield item


def _in_file_order(items: Sequence[NoteItem], held: _Held) -> Iterator[NoteCall]:
    visible = {level: set(seen) for level, seen in held.items()}
    for (level, tier), group in groupby(items, key=lambda item: (item.level, item.tier)):
        together = list(group)
        at_level = [item for item in items if (item.level, item.tier) == (level, tier)]
        yield from _calls(together, visible[level], NoteCall(level, tier), _contents(at_level, held[level], level))
        for each in visible:
            if each >= level:
                visible[each].update(item.note_id for item in together)


def _contents(items: Iterable[NoteItem], seen: Mapping[str, Note], level: Classification) -> Counter[str]:
    """How many notes of a level will have each content once *items* are written."""
    others = (note.content for note in seen.values() if note.classification == level)
    return Counter(chain((item.content for item in items), others))


def _calls(
    items: Iterable[NoteItem], visible: Collection[str], call: NoteCall, contents: Counter[str]
) -> Iterator[NoteCall]:
    """*call*, and as many more calls as are needed, with the edits that write *items*."""
    for item in items:
        if not call.has_room(item):
            yield call
            call = NoteCall(call.level, call.tier)
        for edit in _edits(item, is_visible=item.note_id in visible, has_twin=contents[item.content] > 1):
            call.edits.append(edit)
            call.items.append(item)
    if call.edits:
        yield call


def _edits(item: NoteItem, *, is_visible: bool, has_twin: bool) -> Iterator[NoteEdit]:
    """One edit, or two if another note has the same content.

    Adding that content would return the other note, so this one is added with its id as content, and then updated.
    """
    if not is_visible:
        yield AddNote(item.note_id if has_twin else item.content, note_id=item.note_id)
    if is_visible or has_twin:
        yield UpdateNote(item.note_id, item.content)


def _check_budgets(items: Sequence[NoteItem], held: _Held, sessions: Sessions, agent_id: str) -> None:
    """Ask the server, level by level, whether it would accept what a session will see. Writes nothing.

    The server checks the budget at the end of a call. If the notes need several calls, each is checked separately here,
    and their sum when they are written.
    """
    for tier in Tier:
        of_tier = [item for item in items if item.tier is tier]
        over = [
            (refused, call)
            for level, session in sessions.items()
            for call in _budget_checks(of_tier, held[level], NoteCall(level, tier))
            if (refused := _overrun(call, session, agent_id))
        ]
        if over:
            refused, call = max(over, key=lambda each: each[0].would_be_chars)
            raise over_budget(refused, call, agent_id, "nothing was imported")


def _budget_checks(items: Sequence[NoteItem], seen: Mapping[str, Note], call: NoteCall) -> Iterator[NoteCall]:
    """The edits that produce what a session at the level of *call* will see: each note's highest visible version."""
    shown = {item.note_id: item for item in sorted(items, key=lambda item: item.level) if item.level <= call.level}
    written = [
        item for item in shown.values() if item.note_id not in seen or seen[item.note_id].classification <= item.level
    ]
    return _calls(written, seen, call, _contents(written, seen, call.level))


def _overrun(call: NoteCall, session: SessionClient, agent_id: str) -> BudgetExceeded | None:
    """How *call* would exceed the budget. None if it fits. Raises Failure if the server refuses it otherwise."""
    try:
        session.edit_notes(call.edits, tier=call.tier, validate_only=True)
    except BudgetExceeded as refused:
        return refused
    except muniment.TierDisabled:
        name, option = _NAMES[call.tier]
        raise Failure(
            f"the agent keeps no {name}, and the file has some; nothing was imported",
            f"enable them: muniment agent update {agent_id} {option}",
        ) from None
    except muniment.InvalidArgument as refused:
        place, rules = next(iter(rules_by_place(refused).items()))
        raise Unreadable(call.items[place].where, rules) from None
    return None
