"""Guards of notes, broken: budgets, tiers, ids and what an edit may touch."""

from __future__ import annotations

from typing import Any

from muniment_server.domain import errors, notes
from muniment_server.domain.classification import unshadowed
from muniment_server.domain.notes import DeleteNote, KeepStep, NoteSet
from muniment_server.notes import repository
from muniment_server.notes.repository import EditedNotes
from tests.proof.noninterference.mutants.damage import HIDDEN_CHARS, ONE_NAME_FOR_ALL_LEVELS, PEEK
from tests.proof.noninterference.mutants.scheme import ITEMS, Mutant, Patch, edit, setting

_Draft = notes._Draft
_add, _update, _edit = _Draft._add, _Draft._update, repository.edit


def _lowest(versions: Any) -> Any:
    return versions[min(versions, key=lambda label: label.value)]


def _own_usage(self: Any) -> Any:
    own = (versions.get(self._notes.taint) for versions in self._texts.values())
    return self._notes.usage_of(self._tier, [text.content for text in own if text and text.tier is self._tier])


def _tier_first(self: Any, tier: Any) -> Any:
    in_tier = (
        {level: note for level, note in versions.items() if note.tier is tier} for versions in self.versions.values()
    )
    return sorted(map(unshadowed, filter(None, in_tier)), key=lambda note: (note.create_time, note.note_id))


def _index_any(self: Any, note_id: str) -> None:
    seen = unshadowed(self._texts[note_id])
    if seen.tier is self._tier:
        self._own.setdefault(seen.content, set()).add(note_id)


def _add_by_own_level(self: Any, note_id: str, content: str, position: int) -> Any:
    if note_id in self._texts and self._notes.taint not in self._texts[note_id]:
        self._must_be_enabled()
        return self._write(note_id, content, position)
    return _add(self, note_id, content, position)


def _add_twice(self: Any, note_id: str, content: str, position: int) -> Any:
    if note_id in self._texts and unshadowed(self._texts[note_id]).tier is self._tier:
        return KeepStep(note_id)
    return _add(self, note_id, content, position)


def _update_any_version(self: Any, note_id: str, content: str, etag: Any, position: int) -> Any:
    return _update(self, note_id, content, None, position)


def _planned(*, refuses: Any) -> Any:
    """As `plan_edits`, but for when it refuses."""

    def plan_edits(note_set: Any, tier: Any, edits: Any) -> Any:
        draft = _Draft(note_set, tier)
        before = draft.usage()
        taken, usages = [], []
        for position, one in enumerate(edits):
            taken.append(draft.apply(one, position))
            usages.append(draft.usage())
        only_deletes = all(isinstance(one, DeleteNote) for one in edits)
        if refuses(before, usages, only_deletes):
            over = max(usages, key=lambda usage: usage.used_chars)
            raise errors.BudgetExceeded(before, would_be_chars=over.used_chars, entries=notes._largest(note_set, tier))
        return notes.Plan(tuple(taken), usages[-1])

    return plan_edits


def _refusing(refuses: Any) -> Patch:
    return setting(repository, "plan_edits", _planned(refuses=refuses))


def _always_written(scope: Any, tier: Any, edits: Any, *, validate_only: bool = False) -> Any:
    edited = _edit(scope, tier, edits)
    return EditedNotes((), (), edited.usage) if validate_only else edited


def _own_entries(note_set: Any, tier: Any) -> Any:
    return tuple(entry for entry in _largest(note_set, tier) if entry.own_level)


_largest = notes._largest
_OF_THE_SESSION = " AND session.session_id = %(session_id)s"
_LIMITS = ", ".join(
    f"agent.{limit} - vault.hidden_chars(%(tenant)s, session.agent, {tier}, session.label) AS {limit}"
    for tier, limit in ((1, "memory_char_limit"), (2, "user_char_limit"))
)


def note(name: str, killer: str, *patches: Patch, damage: tuple[str, ...] = (), covered_by: str = "") -> Mutant:
    return Mutant(name, killer, patches, damage, covered_by=covered_by, about="notes")


NOTES = (
    note("M05 of a note the lowest version is seen", "model", setting(notes, "unshadowed", _lowest)),
    note("M09 notes are held against the tier before the shadow", "model", setting(NoteSet, "notes", _tier_first)),
    note(
        "M09 a search holds notes against the tier before the shadow",
        "model",
        edit(
            ITEMS,
            "search_items",
            "AND above.label > ranked.label",
            "AND above.label > ranked.label AND above.tier = %(tier)s",
        ),
    ),
    note(
        "M15 writes are locked without the session predicate",
        "fault",
        edit(ITEMS, "lock_writes", f"{_OF_THE_SESSION} AND NOT session.read_only FOR NO", " FOR NO"),
    ),
    note(
        "M16 notes are read without the session predicate",
        "fault",
        edit(ITEMS, "note_versions", _OF_THE_SESSION, ""),
    ),
    note(
        "M20 a lower note is edited in place",
        "fault",
        edit(ITEMS, "save_item", "INSERT INTO item AS own", "INSERT INTO muniment_public.item AS own"),
    ),
    note("M23 a note id is unique across levels", "worlds", damage=(*PEEK, *ONE_NAME_FOR_ALL_LEVELS)),
    note(
        "M24 a note of the other tier is PERMISSION_DENIED",
        "model",
        *(
            setting(kind, "status", kind.status._replace(code="PERMISSION_DENIED"))
            for kind in (errors.NoteIsAgentNote, errors.NoteIsUserProfile)
        ),
    ),
    note("M25 a duplicate is one of any level", "model", setting(_Draft, "_index", _index_any)),
    note("a duplicate is another note", "model", setting(_Draft, "_index", lambda *_: None)),
    note("M44 an id to add under is looked up at the own level", "model", setting(_Draft, "_add", _add_by_own_level)),
    note("an id to add under is taken for the note it names", "model", setting(_Draft, "_add", _add_twice)),
    note(
        "M30 a note over a lower one has a create_time of its own",
        "model",
        edit(ITEMS, "save_item", "%(kind)s IN (2, 3)", "%(kind)s IN (3)"),
    ),
    note(
        "M30 a note inherits the create_time of what is above",
        "worlds",
        edit(
            ITEMS,
            "save_item",
            "END, expiry.time)",
            "END, CASE WHEN vault.peek(%(tenant)s, session.agent, %(name)s) IS NOT NULL"
            " THEN expiry.time - interval '1 day' END, expiry.time)",
        ),
        damage=PEEK,
    ),
    note(
        "notes of one call have one create_time",
        "model",
        edit(ITEMS, "save_item", "%(position)s * interval", "0 * interval"),
    ),
    note(
        "M35 usage counts what is above",
        "worlds",
        edit(
            ITEMS,
            "note_versions",
            "agent.memory_char_limit, agent.user_char_limit",
            _LIMITS,
        ),
        damage=HIDDEN_CHARS,
    ),
    note("M36 usage counts the own level only", "model", setting(_Draft, "usage", _own_usage)),
    note("usage counts bytes", "model", setting(notes, "_rendered_chars", lambda content: len(content.encode()))),
    note("usage does not count what joins notes", "model", setting(notes, "SEPARATOR", "")),
    note(
        "exactly at the limit is refused",
        "model",
        _refusing(
            lambda before, after, only_deletes: (
                not only_deletes and after[-1].used_chars >= max(after[-1].limit_chars, before.used_chars + 1)
            )
        ),
    ),
    note(
        "one over the limit is allowed",
        "model",
        _refusing(
            lambda before, after, only_deletes: (
                not only_deletes and after[-1].used_chars > max(after[-1].limit_chars + 1, before.used_chars)
            )
        ),
    ),
    note(
        "over the limit nothing may be shortened",
        "model",
        _refusing(
            lambda before, after, only_deletes: not only_deletes and after[-1].used_chars > after[-1].limit_chars
        ),
    ),
    note(
        "a delete is checked",
        "model",
        _refusing(lambda before, after, _: after[-1].used_chars > max(after[-1].limit_chars, before.used_chars)),
    ),
    note(
        "the budget is held against each edit",
        "model",
        _refusing(
            lambda before, after, only_deletes: (
                not only_deletes
                and any(usage.used_chars > max(usage.limit_chars, before.used_chars) for usage in after)
            )
        ),
    ),
    note("a refusal tells of own notes only", "model", setting(notes, "_largest", _own_entries)),
    note("a tier that is off takes notes", "model", setting(_Draft, "_must_be_enabled", lambda _: None)),
    note("an update ignores the etag", "model", setting(_Draft, "_update", _update_any_version)),
    note("edits that are only to be checked are made", "model", setting(repository, "edit", _always_written)),
)
