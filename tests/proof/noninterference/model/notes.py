"""Notes in two budgeted tiers, as they must be."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime
from typing import Any

from google.protobuf.message import Message

from muniment.v1 import note_pb2
from muniment.v1 import note_service_pb2 as pb
from tests.proof.noninterference.model.ground import Ground, newer_below
from tests.proof.noninterference.rules import words_of
from tests.proof.noninterference.values import (
    Agent,
    ByName,
    Disagreement,
    Found,
    Levels,
    Refused,
    Session,
    Version,
    join,
    labeled,
    page_size,
    stamp,
)

SEPARATOR = "\n§\n"
LINE_SEPARATOR = "\u2028"
Listed = list[tuple[str, int, Version]]
"""Name, level and version of notes, in the order of a list."""


class Notes(Ground):
    """NoteService. Edits are made to a draft, and nothing of it is kept unless all of it may be."""

    def _AddNote(self, session: Session, taint: int, request: pb.AddNoteRequest) -> Message:
        draft = _Draft(self, session.agent, taint, request.tier)
        note = draft.add(request.content, request.note_id, 0)
        return pb.AddNoteResponse(note=note, usage=draft.keep())

    def _UpdateNote(self, session: Session, taint: int, request: pb.UpdateNoteRequest) -> Message:
        draft = _Draft(self, session.agent, taint, request.tier)
        note = draft.update(request.note_id, request.content, 0, request.etag)
        return pb.UpdateNoteResponse(note=note, usage=draft.keep())

    def _DeleteNote(self, session: Session, taint: int, request: pb.DeleteNoteRequest) -> Message:
        draft = _Draft(self, session.agent, taint, request.tier)
        revealed = draft.delete(request.note_id, request.etag)
        return pb.DeleteNoteResponse(**revealed, usage=draft.keep(checked=False))

    def _EditNotes(self, session: Session, taint: int, request: pb.EditNotesRequest) -> Message:
        draft = _Draft(self, session.agent, taint, request.tier)
        notes = []
        for position, edit in enumerate(request.edits):
            if edit.HasField("add"):
                notes.append(draft.add(edit.add.content, edit.add.note_id, position))
            elif edit.HasField("update"):
                notes.append(draft.update(edit.update.note_id, edit.update.content, position))
            else:
                draft.delete(edit.delete.note_id)
        checked = any(not edit.HasField("delete") for edit in request.edits)
        usage = draft.keep(checked=checked, validate_only=request.validate_only)
        notes = [] if request.validate_only else notes
        return pb.EditNotesResponse(notes=notes, usage=usage, classification=join(notes))

    def _ListNotes(self, session: Session, taint: int, request: pb.ListNotesRequest) -> Message:
        tier = request.tier or 1
        last = self._last("ListNotes", request.page_token, (tier,), taint)
        notes = self.notes_of(session.agent.notes, taint, tier)
        wanted = [one for one in notes if last is None or _place(one) > last]
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, (tier,), taint, page and _place(page[-1]))
        shown = [_shown(name, self.seen(session.agent.notes, name, taint)) for name, _, _ in page]
        usage = usage_of(session.agent, tier, notes)
        return pb.ListNotesResponse(notes=shown, usage=usage, next_page_token=more, classification=join(shown))

    def _SearchNotes(self, session: Session, taint: int, request: pb.SearchNotesRequest) -> Found:
        words_of(request.query)
        notes = self.notes_of(session.agent.notes, taint, request.tier or 1)
        texts = {name: version.content for name, _, version in notes}
        shown = {name: _shown(name, self.seen(session.agent.notes, name, taint)) for name, _, _ in notes}
        usage = usage_of(session.agent, request.tier or 1, notes)
        return self._found(
            session.agent, request.query, texts, shown, request.max_results, least=request.min_relevance, usage=usage
        )

    def notes_of(self, items: ByName, taint: int, tier: int) -> Listed:
        """The visible notes of a tier, oldest first. A version in the other tier hides one in this."""
        return sorted((one for one in self.all_seen(items, taint) if one[2].tier == tier), key=_place)


class _Draft:
    """The notes of an agent while edits are made."""

    def __init__(self, model: Notes, agent: Agent, taint: int, tier: int) -> None:
        self._model = model
        self._agent = agent
        self._taint = taint
        self._tier = tier or 1
        self._notes_by_name = deepcopy(agent.notes)
        self._before = model.notes_of(agent.notes, taint, self._tier)

    def add(self, content: str, note_id: str, position: int) -> note_pb2.Note:
        self._check_enabled()
        seen = self._seen(note_id)
        if seen:
            top = seen[max(seen)]
            if (top.content, top.tier) != (content, self._tier):
                raise Refused("NOTE_EXISTS")
            return _shown(note_id, {max(seen): top})
        for name, level, version in self._notes():
            if level == self._taint and version.content == content:
                return _shown(name, {level: version})
        note = self._model._new(content, position, tier=self._tier)
        note_id = note_id or self._model._new_name()
        self._notes_by_name.setdefault(note_id, {})[self._taint] = note
        return _shown(note_id, {self._taint: note})

    def update(self, note_id: str, content: str, position: int, etag: str = "") -> note_pb2.Note:
        self._check_enabled()
        seen = self._seen_in_tier(note_id)
        top = seen[max(seen)]
        if self._model._is_stale(etag, top):
            raise Refused("ETAG_STALE")
        own = seen.get(self._taint)
        if own is None:
            own = self._model._new(content, position, tier=self._tier)
            own.created = top.created
            self._notes_by_name[note_id][self._taint] = own
        else:
            self._model._overwrite(own, content, position=position)
        return _shown(note_id, {self._taint: own})

    def delete(self, note_id: str, etag: str = "") -> Any:
        self._seen_in_tier(note_id)
        return self._model._delete(self._notes_by_name, note_id, self._taint, etag, not_found="NOTE_NOT_FOUND")

    def keep(self, *, checked: bool = True, validate_only: bool = False) -> note_pb2.Usage:
        """Check the tier as the edits leave it, keep it, and say what it takes."""
        before = usage_of(self._agent, self._tier, self._before)
        after = usage_of(self._agent, self._tier, self._notes())
        if checked and after.used_chars > max(after.limit_chars, before.used_chars):
            raise Refused("BUDGET_EXCEEDED", self._refusal(before, after))
        if not validate_only:
            self._agent.notes = self._notes_by_name
        return after

    def _check_enabled(self) -> None:
        settings = self._agent.shown.memory_settings
        if not (settings.memory_enabled if self._tier == 1 else settings.user_profile_enabled):
            raise Refused("TIER_DISABLED")

    def _seen(self, note_id: str) -> Levels:
        return self._model.seen(self._notes_by_name, note_id, self._taint)

    def _seen_in_tier(self, note_id: str) -> Levels:
        seen = self._seen(note_id)
        if not seen or seen[max(seen)].tier != self._tier:
            raise Refused("NOTE_NOT_FOUND")
        return seen

    def _notes(self) -> Listed:
        return self._model.notes_of(self._notes_by_name, self._taint, self._tier)

    def _refusal(self, before: note_pb2.Usage, after: note_pb2.Usage) -> note_pb2.BudgetExceeded:
        return note_pb2.BudgetExceeded(
            usage=before,
            would_be_chars=after.used_chars,
            over_by_chars=after.used_chars - after.limit_chars,
            entries=[
                note_pb2.BudgetEntry(
                    note_id=name,
                    length_chars=len(version.content),
                    preview=version.content[:40],
                    own_level=level == self._taint,
                    **labeled(level),
                )
                for name, level, version in sorted(self._before, key=lambda one: -len(one[2].content))
            ],
        )


def hold_against(expected: note_pb2.BudgetExceeded, actual: note_pb2.BudgetExceeded) -> None:
    """Of notes of equal length any may be named; all else must be as predicted. Raises Disagreement."""
    entries = {entry.note_id: entry for entry in expected.entries}
    lengths = [[entry.length_chars for entry in one.entries] for one in (expected, actual)]
    same = all(entries.pop(entry.note_id, None) == entry for entry in actual.entries)
    if not same or lengths[0][:10] != lengths[1]:
        raise Disagreement(f"BudgetExceeded: expected {expected}but got {actual}")
    numbers = [(one.usage, one.would_be_chars, one.over_by_chars) for one in (expected, actual)]
    if numbers[0] != numbers[1]:
        raise Disagreement(f"BudgetExceeded: expected {expected}but got {actual}")


def usage_of(agent: Agent, tier: int, notes: Listed) -> note_pb2.Usage:
    """What *notes* take of their budget, in code points."""
    settings = agent.shown.memory_settings
    limit = settings.memory_char_limit if tier == 1 else settings.user_char_limit
    used = len(SEPARATOR.join(rendered(version.content) for _, _, version in notes))
    tier_number: Any = tier
    return note_pb2.Usage(tier=tier_number, used_chars=used, limit_chars=limit, percent=percent(used, limit))


def rendered(content: str) -> str:
    """A text as the prompt has it. Of what is escaped, the alphabet has one character."""
    return content.replace(LINE_SEPARATOR, r"\u{2028}")


def percent(used: int, limit: int) -> int:
    """Rounded down. Of a budget of nothing, anything is all."""
    return used * 100 // limit if limit else 100 * bool(used)


def _place(note: tuple[str, int, Version]) -> tuple[datetime, str]:
    name, _, version = note
    return version.created, name


def _shown(note_id: str, seen: Levels) -> note_pb2.Note:
    version = seen[max(seen)]
    numbers: Any = {"tier": version.tier, **labeled(max(seen))}
    return note_pb2.Note(
        note_id=note_id,
        content=version.content,
        etag=version.etag,
        create_time=stamp(version.created),
        update_time=stamp(version.updated),
        newer_below=newer_below(seen),
        **numbers,
    )
