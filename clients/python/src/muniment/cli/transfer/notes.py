"""What writing notes comes to: which calls, and whether the budgets hold, before any of them is made.

A call is at most 100 edits of one tier at one level, and is made whole or not at all. Notes go in the order of the
file, whatever their level, because the order in which they are added is the one in which sessions see them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from muniment import AddNote, Agent, Classification, NoteEdit, SessionClient, Tier, UpdateNote
from muniment.cli.failures import Failure
from muniment.cli.transfer.items import NoteItem, Unreadable
from muniment.cli.transfer.sessions import Sessions
from muniment.cli.transfer.tally import Tally
from muniment_server.domain.notes import SEPARATOR

MOST_EDITS = 100
_MOST_BYTES = 512 * 1024
"""Content in one call: a request takes 1 MiB at most."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The version of a note that a session sees."""

    level: Classification
    tier: Tier
    content: str = field(repr=False)


_View: TypeAlias = dict[str, _Seen]
"""What one session sees, by id."""


@dataclass(slots=True)
class NoteCall:
    """One call of EditNotes."""

    level: Classification
    tier: Tier
    edits: list[NoteEdit] = field(default_factory=list)
    items: int = 0
    size: int = 0
    """Bytes of content."""


def planned(items: Sequence[NoteItem], sessions: Sessions, agent: Agent, tally: Tally) -> list[NoteCall]:
    """The calls that write *items*, whose outcome is counted in *tally*.

    Raises Failure when a tier is switched off, or when its budget would refuse.
    """
    if not items:
        return []
    desk = _Desk({level: _view(session) for level, session in sessions.items()}, agent)
    in_file = {(item.level, item.note_id) for item in items}
    for item in items:
        desk.take(item, in_file, tally)
    desk.finish()
    return desk.calls


def _view(session: SessionClient) -> _View:
    return {
        note.note_id: _Seen(note.classification, note.tier, note.content)
        for tier in Tier
        for note in session.list_notes(tier)
    }


class _Desk:
    """The notes as they become, call by call."""

    def __init__(self, views: dict[Classification, _View], agent: Agent) -> None:
        self.calls: list[NoteCall] = []
        self._views = views
        self._agent = agent
        self._before = 0
        self._worst: dict[Tier, tuple[int, Classification]] = {}

    def take(self, item: NoteItem, in_file: set[tuple[Classification, str]], tally: Tally) -> None:
        """Let *item* be written, or not, if it is there already."""
        seen = self._views[item.level].get(item.note_id)
        if seen is not None and seen.tier != item.tier:
            raise Unreadable(item.where, "the agent has a note of that id in the other tier, and notes stay in theirs")
        place = (item.level, item.kind)
        own = seen is not None and seen.level == item.level
        twin = None if seen else self._twin(item)
        if (own and seen and seen.content == item.content) or (twin and (item.level, twin) not in in_file):
            tally.unchanged[place] += 1
            return
        (tally.replaced if own else tally.added)[place] += 1
        self._write(item, list(_edits(item, is_visible=seen is not None, has_twin=twin is not None)))

    def finish(self) -> None:
        """No more calls. Raises Failure if one of them would be refused."""
        self._close()
        for tier, (used, level) in self._worst.items():
            raise _over_budget(self._agent, tier, used, level)

    def _twin(self, item: NoteItem) -> str | None:
        """The note of the tier that has this very content at the same level: to add it again is to get that one."""
        wanted = _Seen(item.level, item.tier, item.content)
        return next((note_id for note_id, seen in self._views[item.level].items() if seen == wanted), None)

    def _write(self, item: NoteItem, edits: list[NoteEdit]) -> None:
        call = self.calls[-1] if self.calls else None
        if (
            call is None
            or (call.level, call.tier) != (item.level, item.tier)
            or len(call.edits) + len(edits) > MOST_EDITS
            or call.size >= _MOST_BYTES
        ):
            self._close()
            self._require_enabled(item.tier)
            call = NoteCall(item.level, item.tier)
            self.calls.append(call)
            self._before = self._usage(call)
        call.edits += edits
        call.items += 1
        call.size += len(item.content.encode())
        written = _Seen(item.level, item.tier, item.content)
        for level, view in self._views.items():
            if level >= item.level and (item.note_id not in view or view[item.note_id].level <= item.level):
                view[item.note_id] = written

    def _close(self) -> None:
        """Hold the last call against its budget, as the server will."""
        if not self.calls:
            return
        call = self.calls[-1]
        used = self._usage(call)
        if used > max(_limit(self._agent, call.tier), self._before):
            self._worst[call.tier] = max(self._worst.get(call.tier, (0, call.level)), (used, call.level))

    def _usage(self, call: NoteCall) -> int:
        lengths = [len(seen.content) for seen in self._views[call.level].values() if seen.tier == call.tier]
        return sum(lengths) + len(SEPARATOR) * max(0, len(lengths) - 1)

    def _require_enabled(self, tier: Tier) -> None:
        settings = self._agent.memory_settings
        enabled = settings.memory_enabled if tier is Tier.MEMORY else settings.user_profile_enabled
        if enabled is False:
            raise Failure(
                f"the agent keeps no {_name(tier)}, and the file has some; nothing was imported",
                f"switch them on: muniment agent update {self._agent.agent_id} "
                f"{'--notes' if tier is Tier.MEMORY else '--profile'}",
            )


def _edits(item: NoteItem, *, is_visible: bool, has_twin: bool) -> Iterator[NoteEdit]:
    """One edit, or two: a note with the content of another can be made of one with different content only."""
    if not is_visible:
        yield AddNote(item.note_id if has_twin else item.content, note_id=item.note_id)
    if is_visible or has_twin:
        yield UpdateNote(item.note_id, item.content)


def _limit(agent: Agent, tier: Tier) -> int:
    settings = agent.memory_settings
    return (settings.memory_char_limit if tier is Tier.MEMORY else settings.user_char_limit) or 0


def _name(tier: Tier) -> str:
    return "notes" if tier is Tier.MEMORY else "profile"


def _over_budget(agent: Agent, tier: Tier, used: int, level: Classification) -> Failure:
    option = "--notes-limit" if tier is Tier.MEMORY else "--profile-limit"
    limit = _limit(agent, tier)
    return Failure(
        f"the {_name(tier)} (tier {tier.name.lower()}) do not fit: at {level.name} they would take {used:,} of "
        f"{limit:,} chars, {used - limit:,} too many; nothing was imported",
        f"raise the limit, then import again: muniment agent update {agent.agent_id} {option} {used}",
    )
