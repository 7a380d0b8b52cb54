"""What edits of notes write: the plan, against examples and against a model of a few lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import NAMESPACE_OID, uuid5

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muniment_server.domain import errors
from muniment_server.domain.budgets import DEFAULT_MEMORY_SETTINGS, BudgetEntry, Tier, Usage
from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.ids import ItemId
from muniment_server.domain.items import Version
from muniment_server.domain.notes import (
    AddNote,
    DeleteNote,
    DeleteStep,
    KeepStep,
    Note,
    NoteSet,
    SaveStep,
    UpdateNote,
    plan_edits,
)
from tests.support.labels import untrusted

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = map(untrusted, Classification)
MEMORY, USER = Tier
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def note(note_id, content, level=PUBLIC, tier=MEMORY, minute=0):
    """A version of a note, with an etag that no other has."""
    return Note(
        note_id=note_id,
        tier=tier,
        content=content,
        label=level,
        version=Version(ItemId(uuid5(NAMESPACE_OID, f"{note_id} {level}")), 1),
        create_time=BEGUN + timedelta(minutes=minute),
        update_time=BEGUN,
    )


def note_set(*versions, taint=PUBLIC, **changed):
    return NoteSet(taint, replace(DEFAULT_MEMORY_SETTINGS, **changed), versions)


def steps(notes, *edits, tier=MEMORY):
    return list(plan_edits(notes, tier, edits).steps)


def used(notes, *edits, tier=MEMORY):
    return plan_edits(notes, tier, edits).usage.used_chars


# What is seen.


def test_notes_are_seen_oldest_first_and_of_one_time_by_id():
    found = note_set(note("c", "x", minute=1), note("b", "x", minute=2), note("a", "x", minute=2), note("d", "x"))

    assert [each.note_id for each in found.notes(MEMORY)] == ["d", "c", "a", "b"]


def test_of_several_versions_the_highest_is_seen():
    found = note_set(note("a", "low"), note("a", "top", CONFIDENTIAL), note("a", "mid", INTERNAL), taint=RESTRICTED)

    assert [each.content for each in found.notes(MEMORY)] == ["top"]


def test_c12_a_note_is_shadowed_before_the_tier_is_checked():
    """Two levels may have chosen one id for notes of different tiers: only the higher one is seen, in its tier."""
    found = note_set(note("a", "low", tier=MEMORY), note("a", "high", INTERNAL, tier=USER), taint=INTERNAL)

    assert found.notes(MEMORY) == []
    assert [each.content for each in found.notes(USER)] == ["high"]
    assert (found.usage(MEMORY).used_chars, found.usage(USER).used_chars) == (0, 4)


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ([], 0),
        (["four"], 4),
        (["four", "five5"], 12),
        (["a", "b", "c"], 9),
        (["\U0001f600"], 1),
        (["நினைவு"], 6),
        (["e\u0301"], 2),
        (["é"], 1),
        (["👩\u200d💻"], 3),
        (["\r\n"], 2),
    ],
)
def test_usage_counts_code_points_and_three_for_each_separator(contents, expected):
    found = note_set(*(note(str(number), content) for number, content in enumerate(contents)))

    assert found.usage(MEMORY).used_chars == expected == len("\n§\n".join(contents))


@pytest.mark.parametrize(
    ("used_chars", "limit_chars", "percent"),
    [
        (924, 2200, 42), (427, 1375, 31), (0, 2200, 0), (2199, 2200, 99), (2200, 2200, 100), (2640, 2200, 120),
        (21, 2200, 0), (22, 2200, 1), (0, 0, 0), (1, 0, 100), (1_000_000, 1, 100_000_000),
    ],
)  # fmt: skip
def test_percent_is_rounded_down_and_not_capped(used_chars, limit_chars, percent):
    assert Usage(MEMORY, used_chars, limit_chars).percent == percent


# What edits come to.


def test_an_addition_is_saved_in_the_place_it_was_given():
    assert steps(note_set(), AddNote("a", "one"), AddNote("b", "two")) == [
        SaveStep("a", "one", 0),
        SaveStep("b", "two", 1),
    ]


def test_an_own_note_with_the_same_text_is_kept():
    assert steps(note_set(note("a", "text")), AddNote("b", "text")) == [KeepStep("a")]


def test_two_additions_of_one_text_are_one_note():
    assert steps(note_set(), AddNote("a", "text"), AddNote("b", "text")) == [SaveStep("a", "text", 0), KeepStep("a")]


def test_the_same_text_in_the_other_tier_or_below_is_another_note():
    other_tier, below = note_set(note("a", "text", tier=USER)), note_set(note("a", "text"), taint=INTERNAL)

    assert steps(other_tier, AddNote("b", "text")) == steps(below, AddNote("b", "text")) == [SaveStep("b", "text", 0)]


@pytest.mark.parametrize("content", ["text ", " text", "Text", "te\u0301xt", "text\n"])
def test_only_an_exact_duplicate_is_one(content):
    assert steps(note_set(note("a", "text")), AddNote("b", content)) == [SaveStep("b", content, 0)]


@pytest.mark.parametrize("taint", [PUBLIC, INTERNAL])
def test_an_id_that_is_visible_with_the_same_text_and_tier_is_kept(taint):
    assert steps(note_set(note("a", "text"), taint=taint), AddNote("a", "text")) == [KeepStep("a")]


@pytest.mark.parametrize("taken", [note("a", "other"), note("a", "text", tier=USER)])
def test_an_id_that_is_visible_with_another_text_or_tier_is_taken(taken):
    with pytest.raises(errors.NoteExists):
        plan_edits(note_set(taken, taint=INTERNAL), MEMORY, [AddNote("a", "text")])


def test_updating_into_a_duplicate_is_allowed():
    assert steps(note_set(note("a", "text"), note("b", "x")), UpdateNote("b", "text")) == [SaveStep("b", "text", 0)]


def test_a_lower_note_is_updated_at_the_own_level():
    found = note_set(note("a", "low", PUBLIC), taint=RESTRICTED)

    assert steps(found, UpdateNote("a", "high"), DeleteNote("a")) == [SaveStep("a", "high", 0), DeleteStep("a")]


def test_a_note_that_an_edit_wrote_is_seen_by_those_after_it():
    edits = [AddNote("a", "one"), UpdateNote("a", "two"), DeleteNote("a"), AddNote("a", "three")]

    assert steps(note_set(), *edits) == [
        SaveStep("a", "one", 0),
        SaveStep("a", "two", 1),
        DeleteStep("a"),
        SaveStep("a", "three", 3),
    ]


def test_a_note_that_an_edit_deleted_is_gone_for_those_after_it():
    for edit in (UpdateNote("a", "x"), DeleteNote("a")):
        with pytest.raises(errors.NoteNotFound):
            plan_edits(note_set(note("a", "text")), MEMORY, [DeleteNote("a"), edit])


def test_a_lower_version_that_a_delete_reveals_cannot_be_deleted():
    found = note_set(note("a", "low"), note("a", "high", INTERNAL), taint=INTERNAL)

    with pytest.raises(errors.WriteLevelMismatch):
        plan_edits(found, MEMORY, [DeleteNote("a"), DeleteNote("a")])


@pytest.mark.parametrize("edit", [UpdateNote("a", "x"), DeleteNote("a")])
@pytest.mark.parametrize(("tier", "error"), [(MEMORY, errors.NoteIsAgentNote), (USER, errors.NoteIsUserProfile)])
def test_a_note_of_the_other_tier_is_not_found_and_the_error_says_where_it_is(edit, tier, error):
    (other,) = set(Tier) - {tier}

    with pytest.raises(error):
        plan_edits(note_set(note("a", "text", tier=tier)), other, [edit])


@pytest.mark.parametrize("edit", [AddNote("b", "x"), AddNote("a", "text"), UpdateNote("a", "x")])
def test_a_disabled_tier_takes_neither_additions_nor_updates(edit):
    with pytest.raises(errors.TierDisabled):
        plan_edits(note_set(note("a", "text"), memory_enabled=False), MEMORY, [edit])


def test_a_disabled_tier_takes_deletes_and_leaves_the_other_tier_alone():
    found = note_set(note("a", "text"), memory_enabled=False)

    assert steps(found, DeleteNote("a")) == [DeleteStep("a")]
    assert steps(found, AddNote("b", "x"), tier=USER) == [SaveStep("b", "x", 0)]


def test_an_etag_names_the_version_that_is_seen():
    low, high = note("a", "low"), note("a", "high", INTERNAL)
    found = note_set(low, high, taint=INTERNAL)

    assert steps(found, UpdateNote("a", "x", etag=high.version)) == [SaveStep("a", "x", 0)]
    assert steps(found, DeleteNote("a", etag=high.version)) == [DeleteStep("a")]
    for edit in (UpdateNote("a", "x", etag=low.version), DeleteNote("a", etag=low.version)):
        with pytest.raises(errors.EtagStale):
            plan_edits(found, MEMORY, [edit])


def test_a_version_that_an_edit_wrote_has_no_etag_yet():
    own = note("a", "text")

    with pytest.raises(errors.EtagStale):
        plan_edits(note_set(own), MEMORY, [UpdateNote("a", "new"), UpdateNote("a", "newer", etag=own.version)])


# The budget.


@pytest.mark.parametrize("content", ["x" * 10, "\U0001f600" * 10, "e\u0301" * 5])
def test_exactly_at_the_limit_is_allowed_and_one_over_is_not(content):
    assert used(note_set(memory_char_limit=10), AddNote("a", content)) == 10
    with pytest.raises(errors.BudgetExceeded) as refused:
        plan_edits(note_set(memory_char_limit=9), MEMORY, [AddNote("a", content)])

    assert (refused.value.usage, refused.value.would_be_chars) == (Usage(MEMORY, 0, 9), 10)


def test_the_separator_counts_against_the_limit():
    found = note_set(note("a", "12345"), memory_char_limit=10)

    assert used(found, AddNote("b", "12")) == 10
    with pytest.raises(errors.BudgetExceeded):
        plan_edits(found, MEMORY, [AddNote("b", "123")])


def test_the_budget_applies_to_the_final_state():
    found = note_set(note("a", "x" * 10), memory_char_limit=10)

    assert used(found, AddNote("b", "y" * 10), DeleteNote("a")) == 10


def test_each_tier_has_its_own_budget():
    found = note_set(note("a", "x" * 10), memory_char_limit=10, user_char_limit=5)

    assert used(found, AddNote("b", "12345"), tier=USER) == 5
    with pytest.raises(errors.BudgetExceeded):
        plan_edits(found, USER, [AddNote("b", "123456")])


def test_an_edit_that_does_not_increase_usage_is_allowed_above_the_limit():
    """A high view counts what lower sessions wrote, and a host may lower the limit."""
    found = note_set(note("a", "x" * 20), note("b", "y", INTERNAL), taint=INTERNAL, memory_char_limit=10)

    assert used(found, UpdateNote("a", "x" * 20)) == 24
    assert used(found, UpdateNote("a", "x" * 19)) == 23
    assert used(found, DeleteNote("b"), AddNote("c", "z")) == 24
    with pytest.raises(errors.BudgetExceeded):
        plan_edits(found, MEMORY, [UpdateNote("b", "yy")])


def test_a_delete_is_never_checked_against_the_budget():
    """Not even when it reveals a longer version."""
    found = note_set(note("a", "x" * 20), note("a", "y", INTERNAL), taint=INTERNAL, memory_char_limit=10)

    assert used(found, DeleteNote("a")) == 20


def test_a_note_that_is_in_the_other_tier_above_does_not_count():
    """Nor does what is below it: the session does not see that."""
    hidden = [note("a", "x" * 10), note("a", "y", INTERNAL, tier=USER)]

    assert used(note_set(*hidden, taint=INTERNAL, memory_char_limit=10), AddNote("b", "z" * 10)) == 10


def test_a_limit_of_0_accepts_only_edits_that_reduce_usage():
    found = note_set(note("a", "text"), memory_char_limit=0)

    assert used(found, UpdateNote("a", "tex")) == 3
    assert used(found, DeleteNote("a")) == 0
    with pytest.raises(errors.BudgetExceeded):
        plan_edits(found, MEMORY, [AddNote("b", "x")])


def test_a_refusal_shows_the_ten_largest_notes_largest_first():
    notes = [note(f"n{length:02}", "x" * length) for length in range(1, 13)]

    with pytest.raises(errors.BudgetExceeded) as refused:
        plan_edits(note_set(*notes, memory_char_limit=111), MEMORY, [AddNote("new", "y" * 100)])

    assert [entry.note_id for entry in refused.value.entries] == [f"n{length:02}" for length in range(12, 2, -1)]
    assert [entry.length_chars for entry in refused.value.entries] == list(range(12, 2, -1))


def test_of_notes_of_one_length_the_oldest_is_shown_first():
    notes = [note("b", "xx", minute=1), note("a", "yy", minute=2), note("c", "zz")]

    with pytest.raises(errors.BudgetExceeded) as refused:
        plan_edits(note_set(*notes, memory_char_limit=12), MEMORY, [AddNote("new", "y")])

    assert [entry.note_id for entry in refused.value.entries] == ["c", "b", "a"]


def test_a_refusal_shows_the_notes_as_they_are_with_their_levels():
    """Only what is seen, and only of the tier; a preview has 40 code points."""
    versions = [
        note("low", "\U0001f600" * 41),
        note("own", "shadowed" * 9),
        note("own", "seen", INTERNAL),
        note("user", "x" * 99, tier=USER),
    ]

    with pytest.raises(errors.BudgetExceeded) as refused:
        plan_edits(note_set(*versions, taint=INTERNAL, memory_char_limit=48), MEMORY, [UpdateNote("own", "longer")])

    assert refused.value.entries == (
        BudgetEntry("low", 41, "\U0001f600" * 40, own_level=False, label=PUBLIC),
        BudgetEntry("own", 4, "seen", own_level=True, label=INTERNAL),
    )


# A model, and worlds at random.


@dataclass(frozen=True)
class Refused(Exception):
    """The model's no, by the name of the error."""

    error: str


class Model:
    """Notes as (id, label) -> (tier, text), with everything looked up by going through all of them."""

    def __init__(self, world, taint, enabled, limit):
        self.world, self.taint, self.enabled, self.limit = dict(world), taint, enabled, limit

    def seen(self, note_id):
        levels = [level for name, level in self.world if name == note_id]
        return max(levels, key=lambda label: label.value, default=None)

    def texts(self, tier):
        return [
            text
            for (name, level), (of, text) in self.world.items()
            if level == self.seen(name) and of == tier
        ]  # fmt: skip

    def used(self, tier):
        return len("\n§\n".join(self.texts(tier)))

    def twins(self, tier, text):
        return {name for (name, level), what in self.world.items() if level == self.taint and what == (tier, text)}

    def edit(self, edit, tier):
        """Make the edit; return which notes may have been kept for it."""
        level = self.seen(edit.note_id)
        if not isinstance(edit, DeleteNote) and not self.enabled:
            raise Refused("TierDisabled")
        if isinstance(edit, AddNote):
            return self.add(edit, tier, level)
        if level is None:
            raise Refused("NoteNotFound")
        if self.world[edit.note_id, level][0] != tier:
            raise Refused("NoteIsAgentNote" if tier is USER else "NoteIsUserProfile")
        if isinstance(edit, DeleteNote):
            if level != self.taint:
                raise Refused("WriteLevelMismatch")
            del self.world[edit.note_id, level]
        else:
            self.world[edit.note_id, self.taint] = (tier, edit.content)
        return None

    def add(self, edit, tier, level):
        if level is not None:
            if self.world[edit.note_id, level] != (tier, edit.content):
                raise Refused("NoteExists")
            return {edit.note_id}
        twins = self.twins(tier, edit.content)
        if not twins:
            self.world[edit.note_id, self.taint] = (tier, edit.content)
        return twins or None

    def run(self, tier, edits):
        """Make all edits; return which notes may have been kept, for each. Raises Refused."""
        before = self.used(tier)
        kept = [self.edit(edit, tier) for edit in edits]
        grown = self.used(tier) > self.limit and self.used(tier) > before
        if grown and not all(isinstance(edit, DeleteNote) for edit in edits):
            raise Refused("BudgetExceeded")
        return kept


IDS = st.sampled_from("abcd")
TEXTS = st.sampled_from(["x", "yy", "\U0001f600", "e\u0301", "zzzzzzz", "x" * 12])
WORLDS = st.dictionaries(st.tuples(IDS, st.sampled_from(Label)), st.tuples(st.sampled_from(Tier), TEXTS))
EDITS = st.lists(
    st.one_of(
        st.builds(AddNote, IDS | st.sampled_from("efgh"), TEXTS),
        st.builds(UpdateNote, IDS, TEXTS),
        st.builds(DeleteNote, IDS),
    ),
    min_size=1,
    max_size=6,
)


def outcome_of(call, *arguments):
    """What a call returns, or the error that it raises."""
    try:
        return call(*arguments)
    except (errors.Refusal, Refused) as refusal:
        return refusal


@settings(max_examples=800, deadline=None, derandomize=True)
@given(
    world=WORLDS,
    taint=st.sampled_from(Label),
    tier=st.sampled_from(Tier),
    edits=EDITS,
    limit=st.integers(0, 40),
    enabled=st.sampled_from([True, True, True, False]),
)
@example(
    world={("a", PUBLIC): (MEMORY, "x" * 12), ("a", INTERNAL): (MEMORY, "x")},
    taint=INTERNAL,
    tier=MEMORY,
    edits=[DeleteNote("a"), AddNote("a", "x" * 12)],
    limit=20,
    enabled=True,
)
def test_the_plan_is_that_of_the_model(world, taint, tier, edits, limit, enabled):
    """The same refusal, or steps that make the same notes of the same usage."""
    visible = {where: what for where, what in world.items() if where[1].can_flow_to(taint)}
    model = Model(visible, taint, enabled, limit)
    found = note_set(
        *(note(name, text, level, of) for (name, level), (of, text) in visible.items()),
        taint=taint,
        **{"memory_enabled" if tier is MEMORY else "user_profile_enabled": enabled},
        **{"memory_char_limit" if tier is MEMORY else "user_char_limit": limit},
    )
    before = model.used(tier)
    plan, kept = outcome_of(plan_edits, found, tier, edits), outcome_of(model.run, tier, edits)

    if isinstance(kept, Refused):
        assert type(plan).__name__ == kept.error
    else:
        assert plan.usage == Usage(tier, model.used(tier), limit)
        assert made_of(plan, visible, taint, tier, kept) == model.world
    if isinstance(plan, errors.BudgetExceeded):
        assert (plan.usage, plan.would_be_chars) == (Usage(tier, before, limit), model.used(tier))


def made_of(plan, world, taint, tier, kept):
    """The notes after the steps of *plan*, each taken at its word."""
    world = dict(world)
    for step, choices in zip(plan.steps, kept, strict=True):
        match step:
            case SaveStep(note_id, content):
                assert choices is None
                world[note_id, taint] = (tier, content)
            case DeleteStep(note_id):
                del world[note_id, taint]
            case KeepStep(note_id):
                assert note_id in choices
    return world


@given(st.permutations(range(4)))
def test_the_order_in_which_versions_are_read_does_not_matter(order):
    """Of two notes with the same text, the older is the one that there is."""
    versions = [
        note("b", "twin", minute=1),
        note("a", "twin", minute=2),
        note("c", "other"),
        note("c", "new", INTERNAL),
    ]
    plan = plan_edits(note_set(*[versions[at] for at in order], taint=INTERNAL), MEMORY, [AddNote("new", "twin")])

    assert plan == plan_edits(note_set(*versions, taint=INTERNAL), MEMORY, [AddNote("new", "twin")])
