"""Notes at the terminal."""

from __future__ import annotations

import json
import uuid

import pytest

from tests.support.commands import at, line_of, objects, on_a_terminal


@pytest.fixture
def token(muniment, agent):
    """The token of a session of the test's agent at INTERNAL."""
    return line_of(muniment("session", "open", agent, "--taint", "internal", "--quiet"))


@pytest.fixture
def note(muniment, token):
    """Run a note command in that session."""
    return lambda *words, **options: muniment("note", *words, MUNIMENT_TOKEN=token, **options)


def contents(done):
    """What the notes of an answer say."""
    return [each["content"] for each in objects(done)[0]["notes"]]


def test_a_note_is_added_listed_found_updated_and_deleted(note):
    added = objects(note("add", "ships on Fridays", "--json"))[0]
    assert (added["content"], added["tier"], added["classification"]) == ("ships on Fridays", "MEMORY", "INTERNAL")
    assert added["usage"] == {"tier": "MEMORY", "used_chars": 16, "limit_chars": 2200, "percent": 0}

    found = objects(note("search", "friday", "--json"))[0]
    assert [each["note_id"] for each in found["results"]] == [added["note_id"]]
    changed = objects(note("update", added["note_id"], "ships on Mondays", "--etag", added["etag"], "--json"))[0]
    assert changed["note_id"] == added["note_id"]
    assert note("update", added["note_id"], "too late", "--etag", added["etag"]).returncode == 1

    listed = objects(note("list", "--json"))[0]
    assert ([each["content"] for each in listed["notes"]], listed["classification"]) == (
        ["ships on Mondays"],
        "INTERNAL",
    )
    assert objects(note("delete", added["note_id"], "--json"))[0] == {
        "revealed": None,
        "usage": added["usage"] | {"used_chars": 0},
    }
    assert objects(note("list", "--json"))[0]["notes"] == []


def test_every_command_tells_people_the_usage_beside_the_answer(note):
    content, usage = "x" * 924, "42% — 924/2,200 chars\n"
    added = note("add", given=content)
    note_id, tier, *_ = added.stdout.split("\t")
    assert (tier, added.stderr) == ("MEMORY", usage)
    assert note("list").stderr == usage
    assert note("list").stdout.split("\t")[0::3] == [note_id, f"{content}\n"]
    assert note("search", "nothing").stderr.endswith(usage)  # by words alone, perhaps
    assert note("update", note_id, content).stderr == usage
    assert note("edit", given='{"add": {"content": "' + content + '"}}').stderr == usage
    assert note("delete", note_id).stderr == "Deleted.\n0% — 0/2,200 chars\n"


def test_a_tier_has_its_own_notes_and_its_own_budget(note):
    profile = objects(note("add", "is called Ann", "--tier", "user", "--json"))[0]
    assert profile["usage"] == {"tier": "USER", "used_chars": 13, "limit_chars": 1375, "percent": 0}
    assert contents(note("list", "--json")) == []
    assert contents(note("list", "--tier", "USER", "--json")) == ["is called Ann"]
    wrong = note("update", profile["note_id"], "hush")
    assert (wrong.returncode, "--tier user" in wrong.stderr, "hush" in wrong.stderr) == (1, True, False)


def test_an_id_makes_adding_safe_to_repeat(note):
    note_id = str(uuid.uuid4())
    first, second = (note("add", "once", "--id", note_id, "--json") for _ in range(2))
    assert objects(first) == objects(second)
    other = note("add", "twice", "--id", note_id)
    assert (other.returncode, "--id" in other.stderr) == (1, True)


def test_over_the_budget_it_says_by_how_much_and_what_takes_the_room(muniment, agent):
    """A lower note can be shortened, and only an own one deleted: whose it is stands there."""
    low = objects(muniment("note", "add", "low " * 100, *at(agent, "public"), "--json"))[0]
    own = objects(muniment("note", "add", "mine\n" + "y" * 1700, *at(agent, "internal"), "--json"))[0]

    refused = muniment("note", "add", "z" * 200, *at(agent, "internal"))

    assert (refused.returncode, refused.stdout) == (1, "")
    problem, largest, second, *hint = refused.stderr.splitlines()
    assert problem == "Error: the notes would take 2,311 of 2,200 chars, 111 too many; nothing was changed"
    assert largest.split("\t") == [own["note_id"], "1705", "INTERNAL", "own level", "mine\\n" + "y" * 35]
    assert second.split("\t") == [low["note_id"], "400", "PUBLIC", "another level", "low " * 10]
    assert "muniment note update" in hint[0]
    assert contents(muniment("note", "list", *at(agent, "internal"), "--json")) == [low["content"], own["content"]]


def test_over_the_budget_a_terminal_gets_a_table(muniment, agent, dev):
    assert muniment("note", "add", given="\x1b[2J" + "x" * 2000, MUNIMENT_TOKEN="").returncode == 1
    assert muniment("note", "add", *at(agent, "internal"), given="\x1b[2J" + "x" * 2000).returncode == 0
    status, shown = on_a_terminal(dev.folder, "note", "add", "y" * 300, *at(agent, "internal"))
    assert status == 1
    assert "preview" in shown
    assert "\x1b[36mINTERNAL" in shown
    assert "\\x1b[2Jxxx" in shown
    assert "\x1b[2J" not in shown


def test_a_tier_that_is_switched_off_says_how_to_switch_it_on(muniment, agent):
    assert muniment("agent", "update", agent, "--no-profile").returncode == 0
    refused = muniment("note", "add", "hush", "--tier", "user", *at(agent, "public"))
    assert (refused.returncode, "--profile" in refused.stderr, "hush" in refused.stderr) == (1, True, False)


def test_edits_are_made_all_or_none(note, dev, agent):
    first = objects(note("add", "first", "--json"))[0]["note_id"]
    lines = [
        {"add": {"content": "second"}},
        {"update": {"note_id": first, "content": "first of all"}},
    ]
    file = dev.folder / f"{agent}.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))

    edited = objects(note("edit", file.name, "--json"))[0]
    assert [each["content"] for each in edited["notes"]] == ["second", "first of all"]
    assert (edited["classification"], edited["usage"]["used_chars"]) == ("INTERNAL", 6 + 3 + 12)

    bad = json.dumps([{"add": {"content": "third"}}, {"delete": {"note_id": str(uuid.uuid4())}}])
    refused = note("edit", given=bad)
    assert (refused.returncode, "third" in refused.stderr) == (1, False)
    assert contents(note("list", "--json")) == ["first of all", "second"]


def test_edits_that_are_only_validated_write_nothing(note):
    added = json.dumps({"add": {"content": "x" * 220}})
    checked = note("edit", "--validate-only", given=added)
    assert (checked.returncode, checked.stdout) == (0, "")
    assert checked.stderr == "Nothing was written. The usage would be 10% — 220/2,200 chars\n"
    assert objects(note("edit", "-", "--validate-only", "--json", given=added))[0]["usage"]["used_chars"] == 220
    assert contents(note("list", "--json")) == []
    too_much = note("edit", "--validate-only", given=json.dumps({"add": {"content": "x" * 2201}}))
    assert (too_much.returncode, "1 too many" in too_much.stderr) == (1, True)


def test_a_missing_or_binary_file_is_reported(note):
    assert "no-such-file: No such file" in note("edit", "no-such-file").stderr
    assert "not in UTF-8" in note("edit", given=b"\xff").stderr
    assert "there are no edits" in note("edit").stderr


def test_a_lower_version_is_seen_again(muniment, agent):
    low = objects(muniment("note", "add", "low", *at(agent, "public"), "--json"))[0]["note_id"]
    assert muniment("note", "update", low, "high", *at(agent, "internal")).returncode == 0
    assert contents(muniment("note", "list", *at(agent, "internal"), "--json")) == ["high"]
    deleted = muniment("note", "delete", low, *at(agent, "internal"))
    assert deleted.stderr.startswith("Deleted; the version at PUBLIC is now visible.\n")
    again = muniment("note", "delete", low, *at(agent, "internal"))
    assert (again.returncode, "own level" in again.stderr) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "my", "hush"),
        ("add", "-hush"),
        ("add", "hush" * 20_000),
        ("update", "hush", "hush"),
        ("delete", "id", "hush"),
        ("search", "hush", "again"),
        ("list", "hush"),
    ],
    ids=lambda words: " ".join(words)[:20],
)
def test_an_error_repeats_no_content(note, arguments):
    failed = note(*arguments)
    assert failed.returncode in {1, 2}
    assert failed.stdout == ""
    assert "hush" not in failed.stderr
    assert "Error: " in failed.stderr
    assert "Traceback" not in failed.stderr
