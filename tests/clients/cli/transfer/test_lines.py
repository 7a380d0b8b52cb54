"""Our own format: what is written is read again, and nothing that was lost goes unnoticed."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment import Classification, Integrity, Tier
from muniment.cli.transfer import lines
from muniment.cli.transfer.items import BlockItem, MemoryItem, NoteItem, PassageItem, Unreadable
from tests.clients.cli.transfer.samples import HOSTILE

NOTE = "5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77"
LATER = datetime(2099, 1, 1, 12, 30, 0, 123456, UTC)
EVERY_KIND = (
    MemoryItem("", Classification.PUBLIC, key="plan", content=HOSTILE, tags=("é", "b c"), expire_time=LATER),
    MemoryItem("", Classification.RESTRICTED, key="plan", content="x"),
    NoteItem("", Classification.INTERNAL, tier=Tier.USER, note_id=NOTE, content=HOSTILE),
    BlockItem("", Classification.CONFIDENTIAL, label="persönlich", content=""),
    PassageItem(
        "",
        Classification.PUBLIC,
        passage_id=NOTE,
        content=HOSTILE,
        tags=("t",),
        thread="chat 1",
        author="Ada",
        event_time=datetime(1, 1, 1, tzinfo=UTC),
        expire_time=LATER,
    ),
)
HEADER = '{"format": "muniment", "version": 1}\n'


EDITED = "it was edited check its integrity and the level of each item, then give --edited"


def written(items, integrity=Integrity.UNTRUSTED):
    return "".join(lines.written("alice", items, integrity)).encode()


def refusal(source, *, edited=True):
    with pytest.raises(Unreadable) as caught:
        lines.read(source if isinstance(source, bytes) else source.encode(), edited=edited)
    return f"{caught.value.message} {caught.value.hint}"


def test_what_is_written_is_read_again():
    assert lines.read(written(EVERY_KIND)).items == EVERY_KIND


def test_text_for_a_terminal_is_the_same_in_ascii():
    plain = "".join(lines.written("alice", EVERY_KIND, ascii_only=True))
    assert plain.isascii()
    assert lines.read(plain.encode()).items == EVERY_KIND


def test_an_item_is_one_line_and_people_can_read_it():
    text = written(EVERY_KIND).decode()
    assert text.count("\n") == len(EVERY_KIND) + 1
    assert "é" in text
    assert json.loads(text.split("\n")[2]) == {
        "kind": "memory",
        "level": "restricted",
        "key": "plan",
        "content": "x",
    }


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1))
def test_any_content_survives(content):
    item = NoteItem("", Classification.INTERNAL, tier=Tier.MEMORY, note_id=NOTE, content=content)
    assert lines.read(written([item])).items == (item,)


def test_a_file_that_was_cut_is_refused():
    whole = written(EVERY_KIND)
    assert "promises 5 items, and there are 4" in refusal(whole[: whole.rstrip().rindex(b"\n") + 1], edited=False)
    assert "line 6: is not JSON" in refusal(whole[:-20])


def test_a_file_may_be_written_by_hand():
    by_hand = "\ufeff" + HEADER + '\n{"kind": "memory", "level": "Public", "key": " k"}\r\n'.replace('" k"', '"k"')
    assert "line 3: content must be a string" in refusal(by_hand)
    assert len(lines.read(by_hand.replace('"k"', '"k", "content": "c"').encode(), edited=True).items) == 1


def test_a_file_that_was_edited_is_refused_unless_it_is_said():
    edited = written(EVERY_KIND[1:2]).replace(b'"level": "restricted"', b'"level": "public"')
    assert refusal(edited, edited=False) == EDITED
    assert {item.level for item in lines.read(edited, edited=True).items} == {Classification.PUBLIC}


def test_an_integrity_that_was_edited_is_refused():
    untrusted, trusted = (written(EVERY_KIND, integrity) for integrity in Integrity)
    assert lines.read(trusted).integrity is Integrity.TRUSTED
    vouched = untrusted.replace(b"}\n", b', "integrity": "trusted"}\n', 1)
    for edited in (vouched, trusted.replace(b', "integrity": "trusted"', b"")):
        assert refusal(edited, edited=False) == EDITED


def test_a_file_of_before_there_was_integrity_is_read():
    item = '{"kind": "memory", "level": "internal", "key": "plan", "content": "x"}'
    sha256 = "4e298c6b55a5130222a695db92f9f153a462d17ed49f078e67fa0f59ae2a5c3f"
    header = f'{{"format": "muniment", "version": 2, "item_count": 1, "sha256": "{sha256}"}}'
    assert lines.read(f"{header}\n{item}\n".encode()).integrity is Integrity.UNTRUSTED


def test_a_file_without_a_hash_is_refused_unless_it_is_said():
    """One of version 1, or one whose hash was removed."""
    assert "no hash shows that its items were not edited" in refusal(HEADER, edited=False)


def test_other_spaces_and_another_order_of_fields_are_no_edit():
    header, *items = written(EVERY_KIND).decode().removesuffix("\n").split("\n")
    other = [json.dumps(dict(reversed(json.loads(item).items())), separators=(",", ":")) for item in items]
    assert lines.read("\n".join([header, *other]).encode()).items == EVERY_KIND


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("hush", "is not JSON"),
        (
            '{"kind": "memory", "level": "restricted", "level": "public", "key": "k", "content": "hush"}',
            "has a name twice in one object",
        ),
        ('{"kind": "hush", "level": "public"}', "kind must be one of"),
        ('{"kind": "memory", "key": "hush", "content": "x"}', "level must be a string"),
        ('{"kind": "memory", "level": "hush", "key": "k", "content": "x"}', "level must be public"),
        ('{"kind": "memory", "level": 1, "key": "k", "content": "x"}', "level must be a string"),
        ('{"kind": "memory", "level": "public", "key": "k", "content": "x", "tag": "hush"}', "has 1 unknown field(s)"),
        ('{"kind": "memory", "level": "public", "key": "k", "content": "x", "tags": "hush"}', "tags must be a list"),
        (
            f'{{"kind": "memory", "level": "public", "key": "k", "content": "{"hush" * 300_000}"}}',
            "is too large for one request",
        ),
        (
            '{"kind": "memory", "level": "public", "key": "k", "content": "x", "expire_time": "2099-01-01"}',
            "expire_time must be a time",
        ),
        (f'{{"kind": "note", "level": "public", "note_id": "{NOTE}", "content": "x", "tier": "hush"}}', "tier must be"),
    ],
)
def test_a_bad_line_is_reported_by_number_and_never_shown(line, rule):
    refused = refusal(HEADER + '{"kind": "memory", "level": "public", "key": "a", "content": "x"}\n' + line)
    assert "line 3: " in refused
    assert rule in refused
    assert "hush" not in refused


def test_the_same_name_twice_at_one_level_is_refused():
    assert "line 3: the same memory at the same level as in line 2" in refusal(written([EVERY_KIND[0], EVERY_KIND[0]]))


@pytest.mark.parametrize(
    "header",
    [
        "",
        "{}",
        '{"format": "muniment", "version": 1, "version": 1}',
        '{"format": "muniment"}',
        '{"format": "muniment", "version": 3}',
        '{"format": "x"}',
    ],
)
def test_a_file_of_no_version_that_is_known_is_refused(header):
    assert refusal(header + "\n")


def test_names_are_read_as_the_server_keeps_them():
    """Else a second import would not know the first again."""
    written = (
        {"kind": "memory", "level": "public", "key": "cafe\u0301", "content": "x", "tags": [" a ", "a", "e\u0301"]},
        {"kind": "note", "level": "public", "tier": "user", "note_id": NOTE.upper(), "content": "x"},
    )
    memory, note = lines.read((HEADER + "\n".join(map(json.dumps, written))).encode(), edited=True).items
    assert memory == MemoryItem("", Classification.PUBLIC, key="caf\u00e9", content="x", tags=("a", "\u00e9"))
    assert note.name == NOTE
