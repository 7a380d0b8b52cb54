"""RenderPrompt: what a session's prompt is made of. The format itself: tests/calls/domain/test_prompt.py."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from muniment_server.domain import prompt
from muniment_server.domain.budgets import DEFAULT_MEMORY_SETTINGS, Tier
from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.ids import ItemId
from muniment_server.domain.items import PAGE_BYTES, Version
from muniment_server.domain.notes import Note, NoteSet
from muniment_server.domain.prompt import PROMPT_BYTES
from muniment_server.items.rows import ListedBlock
from muniment_server.prompts import rendering, repository, servicer
from tests.support import prompt_parser
from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED, UP, events, invalid
from tests.support.labels import untrusted
from tests.support.prompt_attacks import ATTACKS
from tests.support.prompt_parser import ParsedPrompt, ParsedTier
from tests.support.services import Caller

BLOCK, MEMORY_SECTION, USER_SECTION = 1, 2, 3
MEMORY, USER = 1, 2
A, B, C = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
FIRST_BLOCKS = ("current_state", "personality", "relationships")
RULER = "═" * 48


@pytest.fixture
def bare(at):
    """A session at PUBLIC of `alice`, who has no blocks."""
    for label in FIRST_BLOCKS:
        at(PUBLIC).delete_block(label=label)
    return at(PUBLIC)


def render(session, *sections, **fields):
    return session.render_prompt(sections=sections, **fields)


def blocks(response):
    """The blocks in the text of a response, label and content."""
    return prompt_parser.parse(response.text).blocks


def notes(response, heading=prompt_parser.MEMORY):
    """The notes in the text of a response."""
    tier = prompt_parser.parse(response.text).tiers.get(heading)
    return tier.notes if tier else []


def set_memory(host, **settings):
    host.update_agent(agent_id="alice", memory_settings=settings)


# The text.


def test_the_text_is_the_published_one(bare):
    bare.update_block(label="personality", content="Calm.\nBrief.")
    bare.update_block(label="empty")
    bare.add_note(content="first entry")
    bare.add_note(content="second\nentry")
    bare.add_note(content="Likes tea", tier=USER)

    assert render(bare).text == "\n".join(
        [
            "### empty",
            "",
            "### personality",
            "Calm.",
            "Brief.",
            "",
            RULER,
            "MEMORY (agent notes) [1% — 26/2,200 chars]",
            RULER,
            "first entry",
            "§",
            "second",
            "entry",
            "",
            RULER,
            "USER PROFILE (who the user is) [0% — 9/1,375 chars]",
            RULER,
            "Likes tea",
        ]
    )


def test_a_new_agent_has_its_three_first_blocks(at):
    response = render(at(PUBLIC))

    assert response.text == "### current_state\n\n### personality\n\n### relationships"
    assert [section.label for section in response.sections] == list(FIRST_BLOCKS)


def test_an_agent_with_nothing_has_an_empty_prompt(bare):
    response = render(bare)

    assert (response.text, list(response.sections), response.classification) == ("", [], PUBLIC)
    assert [usage.used_chars for usage in response.usage] == [0, 0]
    assert response.etag != ""
    assert not response.not_modified


def test_the_usage_may_be_left_out(bare):
    """Then the text says what the items say, and nothing that moves with them."""
    bare.add_note(content="note")

    assert render(bare, omit_usage=True).text == f"{RULER}\nMEMORY (agent notes)\n{RULER}\nnote"


def test_notes_are_in_the_order_in_which_they_are_listed(bare, session):
    bare.add_note(content="first", note_id=C)
    bare.add_note(content="second", note_id=A)
    session(INTERNAL).update_note(content="first, from above", note_id=C)

    assert notes(render(bare)) == ["first", "second"]
    assert notes(render(session(INTERNAL))) == ["first, from above", "second"]


def test_every_attack_reads_back_as_the_item_it_is(bare, host):
    """No text in a block or a note passes for structure, whichever comes before and after it."""
    set_memory(host, memory_char_limit=100_000, user_char_limit=100_000)
    for number, attack in enumerate(ATTACKS.values()):
        bare.update_block(label=f"b{number:02}", content=attack)
    for tier in (MEMORY, USER):
        bare.edit_notes(edits=[{"add": {"content": attack}} for attack in ATTACKS.values()], tier=tier)
    used = len("\n§\n".join(map(prompt.escape, ATTACKS.values())))

    assert prompt_parser.parse(render(bare).text) == ParsedPrompt(
        blocks=[(f"b{number:02}", attack) for number, attack in enumerate(ATTACKS.values())],
        tiers={
            heading: ParsedTier((used // 1000, used, 100_000), list(ATTACKS.values()))
            for heading in (prompt_parser.MEMORY, prompt_parser.USER_PROFILE)
        },
    )


@pytest.mark.parametrize("label", ["நிலை", "_x", "a.b-c", "1", "x" * 64])
def test_labels_of_any_script_are_rendered_as_they_are(bare, label):
    bare.update_block(label=label, content="text")

    assert render(bare).text == f"### {label}\ntext"


@pytest.mark.parametrize("content", ["நினைவு", "👩\u200d💻", "میخواهم\u200cها", "§ 5 BGB", "a # b", "--- x"])
def test_ordinary_text_is_rendered_byte_for_byte(bare, content):
    bare.update_block(label="a", content=content)
    bare.add_note(content=content)

    assert render(bare, omit_usage=True).text.count(f"\n{content}") == 2


# What is in it.


@pytest.mark.parametrize(("low", "high"), UP)
def test_each_item_is_rendered_at_its_highest_visible_version(at, low, high):
    at(low).update_block(label="plan", content="low block")
    at(low).add_note(content="low note", note_id=A)
    at(high).update_block(label="plan", content="high block")
    at(high).update_note(content="high note", note_id=A)

    for level, word in ((low, "low"), (high, "high")):
        response = render(at(level))
        assert (dict(blocks(response))["plan"], notes(response)) == (f"{word} block", [f"{word} note"])


@pytest.mark.parametrize(("low", "high"), UP)
def test_c30_a_prompt_is_the_same_bytes_whatever_is_above(at, low, high):
    at(low).update_block(label="plan", content="low")
    at(low).add_note(content="low", note_id=A)
    before = at(low).observe("RenderPrompt")
    at(high).update_block(label="plan", content="high")
    at(high).update_block(label="other", content="high")
    at(high).update_note(content="high", note_id=A)
    at(high).add_note(content="high", tier=USER)

    assert at(low).observe("RenderPrompt") == before


def test_the_same_items_make_the_same_answer_in_every_session_and_every_time(at, session):
    at(PUBLIC).update_block(label="plan", content="text")
    for number in range(5):
        at(PUBLIC).add_note(content=f"note {number}")
        at(PUBLIC).add_note(content=f"user {number}", tier=USER)

    found = {each.observe("RenderPrompt") for each in (at(PUBLIC), at(PUBLIC), session(PUBLIC), session(PUBLIC))}

    assert len(found) == 1


def test_nothing_of_the_old_session_is_rendered_after_a_reset(host, session):
    """Not even when the new one names the text of the old."""
    old = session(CONFIDENTIAL)
    old.update_block(label="personality", content="whale block")
    old.add_note(content="whale note")
    old.add_note(content="whale user", tier=USER)
    before = render(old)
    new = Caller(host.channel, host.reset_session(session_id=old.session_id).token)

    after = render(new, if_none_match=before.etag)

    assert "whale" in before.text
    assert "whale" not in after.text + str(after.sections)
    assert (after.not_modified, after.classification) == (False, PUBLIC)
    assert [usage.used_chars for usage in after.usage] == [0, 0]


@pytest.mark.parametrize(("low", "high"), UP)
def test_what_a_raised_session_sees_it_renders_at_once(host, session, low, high):
    session(high).add_note(content="from above")
    own = session(low)
    assert notes(render(own)) == []
    host.raise_taint(session_id=own.session_id, taint=high)

    assert notes(render(own)) == ["from above"]


def test_neither_memories_nor_passages_nor_other_agents_items_are_rendered(bare, session):
    bare.save_memory(key="whale", content="whale")
    bare.store_passage(content="whale")
    session(PUBLIC, agent_id="bob").add_note(content="whale")
    session(PUBLIC, agent_id="bob").update_block(label="whale", content="whale")

    assert render(bare).text == ""


# Shared blocks.


@pytest.fixture
def team(host, session):
    """Shares the block `team` of `bob` with `alice`; returns a session of bob at a level."""
    session(PUBLIC)
    sessions = {level: session(level, agent_id="bob") for level in LEVELS}
    host.create_shared_block(owner_agent_id="bob", label="team", content="PUBLIC")
    host.attach_block(owner_agent_id="bob", label="team", agent_id="alice")
    return sessions.__getitem__


@pytest.mark.parametrize("level", LEVELS)
def test_a_shared_block_is_rendered_at_the_consumers_own_taint(at, team, level):
    for above in (INTERNAL, RESTRICTED):
        team(above).update_block(label="team", content=above.name)
    expected = "RESTRICTED" if level == RESTRICTED else "INTERNAL" if level >= INTERNAL else "PUBLIC"

    response = render(at(level), BLOCK)

    assert dict(blocks(response))["team"] == expected
    assert response.classification == {"PUBLIC": PUBLIC, "INTERNAL": INTERNAL, "RESTRICTED": RESTRICTED}[expected]


def test_of_a_shared_block_the_owner_is_named_in_the_section_and_not_in_the_text(at, team):
    response = render(at(PUBLIC), BLOCK)
    found = {section.label: section.owner_agent_id for section in response.sections}

    assert found == dict.fromkeys(FIRST_BLOCKS, "alice") | {"team": "bob"}
    assert "bob" not in response.text


def test_a_shared_block_of_which_nothing_is_visible_is_not_rendered(at, team):
    team(CONFIDENTIAL).update_block(label="team", content="above")
    team(PUBLIC).delete_block(label="team")

    assert "team" not in dict(blocks(render(at(INTERNAL))))
    assert dict(blocks(render(at(CONFIDENTIAL))))["team"] == "above"


def test_of_one_label_the_own_block_is_rendered_first_then_by_owner(at, host, session, team):
    session(PUBLIC, agent_id="adam")
    host.create_shared_block(owner_agent_id="adam", label="team", content="adam")
    host.attach_block(owner_agent_id="adam", label="team", agent_id="alice")
    at(PUBLIC).update_block(label="team", content="own")

    response = render(at(PUBLIC), BLOCK)

    assert [content for label, content in blocks(response) if label == "team"] == ["own", "adam", "PUBLIC"]
    assert [section.owner_agent_id for section in response.sections][3:] == ["alice", "adam", "bob"]


def test_a_block_that_is_no_longer_shared_is_not_rendered(at, host, team):
    host.detach_block(owner_agent_id="bob", label="team", agent_id="alice")

    assert [label for label, _ in blocks(render(at(PUBLIC)))] == list(FIRST_BLOCKS)


# Sections.


def test_the_sections_say_what_the_text_is_made_of(bare, session):
    bare.update_block(label="plan", content="text")
    session(INTERNAL).update_block(label="state", content="text")
    bare.add_note(content="one", note_id=B)
    session(CONFIDENTIAL).add_note(content="two", note_id=A)
    bare.add_note(content="three", note_id=C, tier=USER)

    found = [
        (section.kind, section.label, section.owner_agent_id, list(section.note_ids), section.classification)
        for section in render(session(RESTRICTED)).sections
    ]

    assert found == [
        (BLOCK, "plan", "alice", [], PUBLIC),
        (BLOCK, "state", "alice", [], INTERNAL),
        (MEMORY_SECTION, "", "", [B, A], CONFIDENTIAL),
        (USER_SECTION, "", "", [C], PUBLIC),
    ]


@pytest.fixture
def full(bare):
    """A session with one block, one note and one line about the user."""
    bare.update_block(label="plan", content="block")
    bare.add_note(content="memory")
    bare.add_note(content="user", tier=USER)
    return bare


@pytest.mark.parametrize(
    ("asked", "kinds", "words"),
    [
        ([], [1, 2, 3], ["block", "memory", "user"]),
        ([1], [1], ["block"]),
        ([2], [2], ["memory"]),
        ([3], [3], ["user"]),
        ([3, 1], [1, 3], ["block", "user"]),
        ([3, 2, 1], [1, 2, 3], ["block", "memory", "user"]),
    ],
)
def test_what_is_asked_for_is_rendered_in_the_one_order(full, asked, kinds, words):
    response = render(full, *asked)

    assert [section.kind for section in response.sections] == kinds
    assert [word for word in response.text.splitlines() if word in ("block", "memory", "user")] == words


@pytest.mark.parametrize(
    ("sections", "field"), [([0], "sections[0]"), ([4], "sections[0]"), ([1, -1], "sections[1]"), ([1, 1], "sections")]
)
def test_a_section_that_is_unknown_or_twice_is_refused(at, sections, field):
    assert invalid(at(PUBLIC).render_prompt, sections=sections) == [field]


def test_four_sections_are_refused(at):
    assert "sections" in invalid(at(PUBLIC).render_prompt, sections=[1, 2, 3, 1])


@pytest.mark.parametrize("sections", [[], [1], [2], [3]])
def test_the_usage_is_that_of_both_tiers_whatever_is_rendered(full, sections):
    found = [(usage.tier, usage.used_chars, usage.limit_chars) for usage in render(full, *sections).usage]

    assert found == [(MEMORY, 6, 2200), (USER, 4, 1375)]


@pytest.mark.parametrize(
    ("setting", "rendered"),
    [("memory_enabled", [1, 3]), ("user_profile_enabled", [1, 2])],
)
def test_a_tier_that_is_off_is_not_rendered(full, host, setting, rendered):
    set_memory(host, **{setting: False})

    response = render(full)

    assert [section.kind for section in response.sections] == rendered
    assert ("memory" in response.text.splitlines(), "user" in response.text.splitlines()) == (
        2 in rendered, 3 in rendered
    )  # fmt: skip
    (off,) = {1, 2, 3} - set(rendered)
    assert render(full, off).text == ""


def test_a_high_view_is_rendered_with_its_honest_usage(at, host):
    at(INTERNAL).add_note(content="x" * 20)
    at(PUBLIC).add_note(content="y" * 20)
    set_memory(host, memory_char_limit=20)

    assert "MEMORY (agent notes) [215% — 43/20 chars]" in render(at(INTERNAL)).text
    assert "MEMORY (agent notes) [100% — 20/20 chars]" in render(at(PUBLIC)).text


# Classification.


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("where", ["block", "memory", "user"])
def test_c09_the_classification_is_the_join_of_what_is_in_the_text(at, level, where):
    if where == "block":
        at(level).update_block(label="plan", content="text")
    else:
        at(level).add_note(content="text", tier=MEMORY if where == "memory" else USER)

    assert render(at(RESTRICTED)).classification == level


def test_c09_what_is_not_in_the_text_does_not_count(at, host):
    """Sections not asked for, shadowed versions, tiers that are off."""
    at(CONFIDENTIAL).add_note(content="memory")
    at(INTERNAL).add_note(content="user", tier=USER)
    asked = [render(at(RESTRICTED), *sections).classification for sections in ([], [1], [2], [3])]
    set_memory(host, memory_enabled=False)

    assert asked == [CONFIDENTIAL, PUBLIC, CONFIDENTIAL, INTERNAL]
    assert render(at(RESTRICTED)).classification == INTERNAL


# Etags.


def test_a_text_that_is_not_modified_is_not_sent_again(full):
    first = render(full)
    again = render(full, if_none_match=first.etag)

    assert (again.text, list(again.sections), again.not_modified, again.etag) == ("", [], True, first.etag)
    assert (list(again.usage), again.classification) == (list(first.usage), first.classification)


@pytest.mark.parametrize("level", LEVELS)
def test_c09_a_text_that_is_not_modified_keeps_its_label(at, level):
    """The caller has the text already: its level must not look lower the second time."""
    at(level).update_block(label="own", content="text")
    first = render(at(level))
    again = render(at(level), if_none_match=first.etag)

    assert (again.not_modified, again.classification) == (True, level)


@pytest.mark.parametrize("etag", ["x", "*", "நினைவு", "e" * 64])
def test_a_text_that_is_another_is_sent(full, etag):
    response = render(full, if_none_match=etag)

    assert (response.text, response.not_modified) == (render(full).text, False)


def test_an_etag_that_is_too_long_is_refused(at):
    assert invalid(at(PUBLIC).render_prompt, if_none_match="e" * 65) == ["if_none_match"]


def test_an_etag_is_of_the_text_alone(full, session):
    """Stable from call to call and session to session; another for any other text; the same when a text comes back."""
    (note,) = full.list_notes().notes
    first = render(full).etag
    others = [render(full, omit_usage=True).etag, render(full, BLOCK).etag, render(full, MEMORY_SECTION).etag]
    full.update_note(note_id=note.note_id, content="Memory")
    others.append(render(full).etag)
    full.update_note(note_id=note.note_id, content="memory")

    assert len({first, *others}) == 5
    assert render(full).etag == render(session(PUBLIC)).etag == render(session(RESTRICTED)).etag == first


def test_without_the_usage_a_text_stays_the_same_while_the_budget_moves(full, host):
    before = [render(full).etag, render(full, omit_usage=True).etag]
    set_memory(host, memory_char_limit=1000)
    after = [render(full).etag, render(full, omit_usage=True).etag]

    assert before[0] != after[0]
    assert before[1] == after[1]


# Size.


@pytest.fixture
def filled(bare):
    """Makes blocks so that the prompt takes so many bytes, were there no limit."""

    def fill(size):
        number = 0
        while size > 0:
            content = min(65_536, size - len("### b00\n"))
            bare.update_block(label=f"b{number:02}", content="x" * content)
            size -= len("### b00\n") + content + len("\n\n")
            number += 1

    return fill


def left_out(response):
    """What the text names as left out, which must be what the field names."""
    named = [
        *(f"block {section.label}" for section in response.left_out if section.kind == BLOCK),
        *(f"note {note_id}" for section in response.left_out for note_id in section.note_ids),
    ]
    lines = prompt_parser.parse(response.text).left_out
    assert [line for line in lines if line != "and others"] == named
    return lines


def test_a_prompt_of_2_mib_is_rendered_and_of_one_byte_more_the_largest_is_left_out(bare, filled):
    """Of several of one size, the last."""
    filled(PROMPT_BYTES)
    assert (len(render(bare).text), left_out(render(bare))) == (PROMPT_BYTES, [])
    bare.add_note(content="x", tier=USER)

    response = render(bare)

    assert left_out(response) == ["block b30"]
    assert [label for label, _ in blocks(response)] == [f"b{number:02}" for number in (*range(30), 31)]
    assert [section.label for section in response.sections] == [*(label for label, _ in blocks(response)), ""]
    assert notes(response, prompt_parser.USER_PROFILE) == ["x"]


def test_no_number_of_large_blocks_displaces_a_short_text(bare):
    """Wherever they are in the order."""
    bare.update_block(label="personality", content="Calm.")
    bare.add_note(content="note")
    for number in range(40):
        bare.update_block(label=f"{'a' if number % 2 else 'z'}{number}", content="x" * 65_536)

    response = render(bare)

    assert dict(blocks(response))["personality"] == "Calm."
    assert notes(response) == ["note"]
    assert len(left_out(response)) == 9
    assert len(response.text.encode()) <= PROMPT_BYTES


def test_a_text_from_which_something_is_left_out_has_an_etag(bare, filled):
    filled(PROMPT_BYTES + 1)
    first = render(bare)
    again = render(bare, if_none_match=first.etag)

    assert (again.not_modified, again.text, list(again.left_out)) == (True, "", [])


def test_blocks_that_are_too_large_do_not_affect_a_prompt_without_blocks(bare, filled):
    filled(PROMPT_BYTES + 1)
    bare.add_note(content="note")

    response = render(bare, MEMORY_SECTION)

    assert (notes(response), left_out(response)) == (["note"], [])


def test_what_is_shown_in_place_of_hidden_characters_counts(bare):
    """0.9 MiB of blocks, 2.3 MiB of text."""
    for number in range(14):
        bare.update_block(label=f"b{number:02}", content="\u202e" * 21_845)
    bare.update_block(label="plain", content="x" * 60_000)

    response = render(bare)

    assert left_out(response) == ["block b11", "block b12", "block b13"]
    assert dict(blocks(response))["plain"] == "x" * 60_000


def test_notes_of_both_tiers_at_all_levels_and_blocks_together_obey_the_limit(at, host):
    """A budget is of what a session sees as it writes: what is added below comes on top of it."""
    at(PUBLIC).update_block(label="large", content="x" * 65_536)
    set_memory(host, memory_char_limit=100_000, user_char_limit=100_000)
    for level in reversed(LEVELS):
        for tier in (MEMORY, USER):
            for number in range(6):
                at(level).add_note(content=f"{number}{'🂡' * 16_000}", tier=tier)

    response = render(at(RESTRICTED))

    assert [usage.used_chars for usage in response.usage] == [4 * 6 * 16_001 + 23 * len("\n§\n")] * 2
    assert len(response.text.encode()) <= PROMPT_BYTES
    assert left_out(response)[0] == "block large"
    assert [len(section.note_ids) for section in response.left_out] == [0, 16]
    assert len(blocks(response)) == len(FIRST_BLOCKS)


def test_what_is_left_out_classifies_the_text_that_names_it(bare, session):
    for number in range(33):
        session(CONFIDENTIAL).update_block(label=f"b{number:02}", content="x" * 65_536)
    session(RESTRICTED).update_block(label="z", content="y" * 65_536)

    response = render(session(RESTRICTED))

    assert left_out(response) == ["block b31", "block b32", "block z"]
    assert response.classification == RESTRICTED


def test_c30_what_is_left_out_is_the_same_whatever_is_above(at, filled):
    filled(PROMPT_BYTES + 1)
    before = at(PUBLIC).observe("RenderPrompt")
    at(RESTRICTED).update_block(label="b00", content="short")
    at(RESTRICTED).update_block(label="other", content="x" * 65_536)

    assert at(PUBLIC).observe("RenderPrompt") == before


def test_of_many_blocks_the_first_are_rendered(bare, monkeypatch):
    monkeypatch.setattr(repository, "_MAX_BLOCKS", 2)
    for number in range(2):
        bare.update_block(label=f"b{number}", content="")
    assert left_out(render(bare)) == []

    bare.update_block(label="b2", content="")
    response = render(bare)

    assert ([label for label, _ in blocks(response)], left_out(response)) == (["b0", "b1"], ["and others"])


def test_of_what_is_left_out_the_first_are_named(bare, filled, monkeypatch):
    monkeypatch.setattr(rendering, "_MAX_NAMED", 2)
    filled(PROMPT_BYTES + 200_000)

    assert left_out(render(bare)) == ["block b31", "block b32", "and others"]


def test_a_label_counts_too(bare):
    """The text is measured as it is sent."""
    for number in range(32):
        bare.update_block(label=f"{number:02}" + "க" * 62, content="x" * 65_400)

    response = render(bare)

    assert left_out(response) == [f"block 31{'க' * 62}"]
    assert len(response.text.encode()) <= PROMPT_BYTES


def test_no_prompt_is_larger_than_a_response():
    """Of 10,000 blocks and notes, what it says of them would be."""
    now, level = datetime.now(UTC), Classification.RESTRICTED
    rows = [
        ListedBlock(
            "𒀀" * 64,
            "𒀀" * 64,
            f"{number:05}" + "𒀀" * 59,
            "",
            untrusted(level),
            ItemId(uuid.UUID(int=number)),
            1,
            now,
            now,
            Label.PUBLIC,
            now,
            0,
        )
        for number in range(10_000)
    ]
    many = [
        Note(str(uuid.UUID(int=n)), Tier.MEMORY, "🂡", untrusted(level), Version(ItemId(uuid.UUID(int=n)), 2), now, now)
        for n in range(10**5)
    ]
    parts = repository.PromptParts(
        repository.Contents(rows, {Tier.MEMORY: many}),
        NoteSet(untrusted(level), DEFAULT_MEMORY_SETTINGS, many),
        more=True,
    )

    response = servicer.response_of(parts, omit_usage=False)

    assert response.ByteSize() <= PAGE_BYTES
    assert len(left_out(response)) == 101


# What is recorded.


@pytest.mark.parametrize("level", LEVELS)
def test_a_rendering_is_recorded_from_confidential_up_with_exactly_what_it_showed(at, host, level):
    """Not counted: shadowed versions, what was not asked for, a tier that is off."""
    at(PUBLIC).update_block(label="plan", content="below")
    at(PUBLIC).add_note(content="below", note_id=A)
    at(PUBLIC).add_note(content="user", tier=USER)
    if level > PUBLIC:
        at(level).update_block(label="plan", content="above")
        at(level).update_note(content="above", note_id=A)
    at(level).add_note(content="two")
    session = at(level)

    etag = render(session).etag
    for sections in ([BLOCK], [MEMORY_SECTION], [USER_SECTION], [MEMORY_SECTION, USER_SECTION]):
        render(session, *sections)
    render(session, if_none_match=etag)
    set_memory(host, memory_enabled=False)
    render(session)
    render(session, MEMORY_SECTION)

    found = [event for event in events(host) if event.method == "RenderPrompt"]

    expected = [7, 4, 2, 1, 3, 7, 5, 0] if level >= CONFIDENTIAL else []
    assert [event.result_count for event in found] == expected
    assert {(event.classification, event.outcome, event.session_id) for event in found} == (
        {(level, "OK", session.session_id)} if level >= CONFIDENTIAL else set()
    )


def test_a_rendering_of_one_item_names_its_version(at, host):
    at(CONFIDENTIAL).add_note(content="one", note_id=A)
    at(CONFIDENTIAL).update_note(content="two", note_id=A)
    render(at(CONFIDENTIAL), MEMORY_SECTION)

    *_, written, read = events(host)

    assert (read.method, read.item_id, read.revision) == ("RenderPrompt", written.item_id, 2)


def test_a_rendering_of_several_items_names_none(at, host):
    render(at(CONFIDENTIAL))

    assert (events(host)[-1].item_id, events(host)[-1].result_count) == ("", 3)


def test_shared_blocks_are_recorded_as_read_by_the_consumer(at, host, team):
    render(at(CONFIDENTIAL), BLOCK)

    last = events(host)[-1]

    assert (last.method, last.agent_id, last.result_count) == ("RenderPrompt", "alice", 4)


def test_a_rendering_that_cannot_be_recorded_is_not_sent(service):
    session = service.session(CONFIDENTIAL)
    session.add_note(content="whale")
    with service.database.as_owner() as owner:
        owner.execute("REVOKE INSERT ON muniment_confidential.audit FROM muniment_confidential")

    assert session.observe("RenderPrompt").code.name == "INTERNAL"
