"""What values are understood on the command line, and in the files that it reads."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest
from grpc import StatusCode

import muniment
from muniment import AddNote, DeleteNote, UpdateNote
from muniment.cli import agents_file, edits
from muniment.cli.agents_file import Declared
from muniment.cli.connect import report_server_errors
from muniment.cli.failures import Failure
from muniment.cli.output import harmless
from muniment.cli.parameters import TIME

ADD, UPDATE, DELETE = (
    '{"add": {"content": "a"}}',
    '{"update": {"note_id": "n", "content": "b"}}',
    '{"delete": {"note_id": "n"}}',
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-11-22", datetime(2026, 11, 22, tzinfo=UTC)),
        ("2026-11-22T09:30:00Z", datetime(2026, 11, 22, 9, 30, tzinfo=UTC)),
        ("2026-11-22t09:30:00z", datetime(2026, 11, 22, 9, 30, tzinfo=UTC)),
        ("2026-11-22T09:30:00.25+02:00", datetime(2026, 11, 22, 7, 30, 0, 250_000, tzinfo=UTC)),
    ],
)
def test_a_time_is_a_moment_with_its_zone_or_the_midnight_of_a_day(written, meant):
    assert TIME.convert(written, None, None) == meant


@pytest.mark.parametrize(
    "written",
    ["", "today", "20261122", "2026-W47-7", "2026-11-22T09:30:00", "2026-11-22 09:30:00Z", "2026-11-22T09:30Z",
     "2026-02-30", "2026-11-22T24:30:00Z", "0001-01-01T00:00:00+01:00", "٢٠٢٦-١١-٢٢"],
)  # fmt: skip
def test_what_is_no_time_is_refused_and_not_repeated(written):
    with pytest.raises(click.BadParameter) as refused:
        TIME.convert(written, None, None)
    assert written == "" or written not in refused.value.message.replace("2026-11-22T09:30:00Z", "")


@pytest.mark.parametrize(
    "written",
    [
        f"{ADD}\n{UPDATE}\n{DELETE}\n",
        f"[{ADD}, {UPDATE}, {DELETE}]",
        f"\n {ADD}\r\n\n[{UPDATE},\n{DELETE}]",
        f"{ADD}{UPDATE}{DELETE}",
    ],
    ids=["lines", "array", "both", "no space"],
)
def test_edits_are_json_lines_or_arrays(written):
    assert edits.read(written) == [AddNote("a"), UpdateNote("n", "b"), DeleteNote("n")]


def test_an_edit_may_name_the_id_of_the_note_it_adds():
    assert edits.read('{"add": {"content": "a", "note_id": "n"}}') == [AddNote("a", "n")]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "no edits"),
        ("[]", "no edits"),
        (f"{ADD}\n{{hush", "line 2"),
        ("[" * 100_000, "line 1"),
        ('{"add": {"content": "hush"}, "add": {"content": "b"}}', "line 1"),
        (f'{ADD}\n"hush"', "edit 2"),
        ('{"hush": {}}', "edit 1 is neither"),
        ('{"add": {}, "delete": {}}', "edit 1"),
        ('{"add": "hush"}', "edit 1 needs content, and may have note_id"),
        ('{"add": {"content": "hush", "tier": "user"}}', "edit 1 needs"),
        ('{"update": {"note_id": "hush"}}', "edit 1 needs content and note_id"),
        ('{"delete": {"note_id": 1}}', "edit 1 has a field that is not text"),
    ],
)  # fmt: skip
def test_what_is_no_edit_is_refused_by_its_number_and_not_repeated(written, why):
    with pytest.raises(Failure, match=why) as refused:
        edits.read(written)
    assert "hush" not in refused.value.message


def test_a_file_of_agents_is_read_in_its_order():
    text = """
    agents:
      bob:
        language: en
        memory_char_limit: 4000
      alice:
        language: pt-BR
        user_profile_enabled: false
        blocks: {personality: "Kind: and brief.", current_state: }
      carol:
    """
    assert agents_file.read(text) == [
        Declared("bob", {"language": "en", "memory_char_limit": 4000}, None),
        Declared(
            "alice",
            {"language": "pt-BR", "user_profile_enabled": False},
            {"personality": "Kind: and brief.", "current_state": ""},
        ),
        Declared("carol", {}, None),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the file must be a mapping"),
        ("agents: [alice]", "agents must be a mapping"),
        ("agents: {}\nagent: {}", "the file has 'agent'; expected: agents"),
        ("agents: {alice: {memroy_enabled: true}}", "agents.alice has 'memroy_enabled'; expected: display_name"),
        ("agents: {alice: {language: no}}", "agents.alice.language must be text: put it in quotes"),
        ("agents: {alice: {display_name: 2026-11-22}}", "agents.alice.display_name must be text"),
        ("agents: {alice: {memory_enabled: 1}}", "agents.alice.memory_enabled must be true or false"),
        ("agents: {alice: {memory_char_limit: true}}", "agents.alice.memory_char_limit must be a whole number"),
        ("agents: {alice: {blocks: {}}}", "agents.alice.blocks must have a block"),
        ("agents: {alice: {blocks: }}", "agents.alice.blocks must be a mapping"),
        ("agents: {alice: {blocks: {personality: false}}}", "agents.alice.blocks.personality must be text"),
        ("agents: {alice: {blocks: text}}", "agents.alice.blocks must be a mapping"),
        ("agents: {42: {}}", "agents: a name must be text: put it in quotes"),
        ("agents: {alice: {no: x}}", "agents.alice: a name must be text: put it in quotes"),
        ("agents: {alice: {blocks: {2026-11-22: x}}}", "agents.alice.blocks: a name must be text"),
        ("agents:\n  alice: {}\n  alice: {}", "line 3, column 3: 'alice' is repeated"),
        ("agents: {alice: {language: en, language: pt}}", "'language' is repeated"),
    ],
)  # fmt: skip
def test_what_a_file_of_agents_says_wrongly_is_refused_by_name(text, why):
    with pytest.raises(Failure) as refused:
        agents_file.read(text)
    assert why in refused.value.message


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("agents: {", "line 1, column 10", "expected"),
        ("agents: hush: hush", "line 1, column 13", "not allowed here"),
        ("agents:\n  a: {}\n--- hush", "line 3, column 1", "another document"),
        ("agents: {a: *hush}", "line 1, column 13", "undefined alias"),
        ("agents: !!python/object:os.hush {}", "line 1, column 9", "could not determine a constructor"),
        ("agents: {[hush]: {}}", "line 1, column 10", "unhashable key"),
    ],
)
def test_what_is_not_yaml_is_refused_by_its_place(text, where, why):
    with pytest.raises(Failure) as refused:
        agents_file.read(text)
    assert refused.value.message.startswith(f"{where}: ")
    assert why in refused.value.message


@pytest.mark.parametrize(
    "text",
    [
        "agents: {}\nhush: \x07",
        "agents: \ud800",
        "agents: {a: 2026-13-45}",
        'agents: {a: "\\UFFFFFFFF"}',
        "agents: {a: {memory_char_limit: 0x_}}",
        f"agents: {{a: {{memory_char_limit: {'1' * 5000}}}}}",
        "agents: " + "[" * 1_000,
        "agents: " + "{a: " * 1_000,
        "- " * 1_000,
    ],
    ids=lambda text: text[:30],
)
def test_what_yaml_cannot_mean_is_refused(text):
    with pytest.raises(Failure, match="contains an invalid value, or is nested too deeply"):
        agents_file.read(text)


@pytest.mark.parametrize("value", ["1.5", "2026-11-22", "[x]", "{x: y}", "~"])
def test_a_value_of_another_kind_is_refused_by_name_and_not_repeated(value):
    for name, kind in (("display_name", "text"), ("memory_char_limit", "a whole number")):
        with pytest.raises(Failure) as refused:
            agents_file.read(f"agents: {{alice: {{{name}: {value}}}}}")
        assert refused.value.message.startswith(f"agents.alice.{name} must be {kind}")
        assert value not in refused.value.message.removeprefix(f"agents.alice.{name}")


def test_what_yaml_takes_for_true_and_false_is_read():
    spellings = {"true": True, "Yes": True, "ON": True, "false": False, "no": False, "Off": False}
    for word, meant in spellings.items():
        (declared,) = agents_file.read(f"agents: {{alice: {{memory_enabled: {word}}}}}")
        assert declared.settings == {"memory_enabled": meant}


def test_a_fault_names_its_request_and_a_refusal_does_not():
    details = muniment.Details(request_id="7f3a")
    messages = []
    for kind, code in ((muniment.InternalError, StatusCode.INTERNAL), (muniment.MemoryNotFound, StatusCode.NOT_FOUND)):
        with pytest.raises(Failure) as failed, report_server_errors():
            raise kind(code, "", "no", details)
        messages.append(failed.value.message)
    assert messages == ["INTERNAL: no (request 7f3a)", "NOT_FOUND: no"]


@pytest.mark.parametrize(
    "hidden", ["\U000e0041", "\ufe00", "\U000e0121", "\U000e0080", "\U000e0fff", "\ufff0", "\u3164", "\u2800", "\u202e"]
)
def test_a_terminal_shows_that_there_is_something_invisible(hidden):
    """Models read it. Whoever approves a release must see it."""
    assert harmless(f"pay{hidden}") == f"pay{hidden.encode('unicode_escape').decode()}"


def test_letters_and_emoji_stay():
    text = "नमस्ते می‌خواهम ❤️ ❤️\u200d🔥 👩‍💻 é"
    assert harmless(text) == text


def test_joiners_and_selectors_in_a_row_join_and_select_nothing():
    """They are the digits of a hidden text."""
    assert harmless("pay\ufe0f\ufe0e\u200d\ufe0f\u200d") == "pay\ufe0f\\ufe0e\\u200d\\ufe0f\u200d"


def test_a_failure_neither_steers_the_terminal_nor_looks_like_two(capsys):
    forged = "x\nError: all is lost\x1b[2J\x07\r\u202e\u2028 C:\\y"
    Failure(forged, forged).show()
    first, hint = capsys.readouterr().err.splitlines()
    assert first == "Error: x\\nError: all is lost\\x1b[2J\\x07\\r\\u202e\\u2028 C:\\y"
    assert hint == first.replace("Error:", " ", 1)


def test_no_two_texts_look_the_same_in_a_column():
    texts = ["a\tb", "a\\tb", "a\nb", "a\\nb", "\x1b", "\\x1b"]

    assert len({harmless(text) for text in texts}) == len(texts)
