"""Passages at the terminal."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.commands import at, objects


@pytest.fixture
def passage(muniment, agent):
    """Run a passage command of sessions at INTERNAL."""
    return lambda *words, **options: muniment("passage", *words, *at(agent, "internal"), **options)


@pytest.fixture
def days(passage):
    """Three passages of a thread, on three days in November."""
    for day, tags in ((21, ("a",)), (22, ("a", "b")), (23, ())):
        stated = [f"--tag={tag}" for tag in tags]
        stored = passage("store", f"day {day}", "--event-time", f"2026-11-{day}", "--thread", "chat", *stated)
        assert stored.returncode == 0, stored.stderr


def contents(done):
    """What the passages of an answer say."""
    return [each["content"] for each in objects(done)]


def test_a_passage_is_stored_got_listed_found_and_deleted(passage):
    stored = objects(
        passage(
            "store", "We moved to Porto.", "--tag", "home", "--thread", "chat-42", "--author", "Ann",
            "--event-time", "2026-11-22T10:30:00+01:00", "--expires-in", "30d", "--json",
        )
    )[0]  # fmt: skip
    assert (stored["classification"], stored["tags"]) == ("INTERNAL", ["home"])
    assert (stored["thread"], stored["author"], stored["event_time"]) == ("chat-42", "Ann", "2026-11-22T09:30:00+00:00")
    lives = datetime.fromisoformat(stored["expire_time"]) - datetime.now(UTC)
    assert timedelta(days=29) < lives < timedelta(days=31)

    assert passage("get", stored["passage_id"]).stdout == "We moved to Porto."
    assert objects(passage("get", stored["passage_id"], "--json")) == [stored]
    assert objects(passage("list", "--json")) == [stored]
    found = objects(passage("search", "porto", "--max-results", "1", "--json"))[0]
    assert (found["passage_id"], set(found) - set(stored)) == (stored["passage_id"], {"relevance", "score", "snippet"})
    assert passage("search", "porto").stdout.split("\t")[1:3] == [stored["passage_id"], "INTERNAL"]
    assert passage("delete", stored["passage_id"]).stderr == "Deleted.\n"
    gone = passage("get", stored["passage_id"])
    assert (gone.returncode, "muniment passage list" in gone.stderr) == (1, True)


@pytest.mark.usefixtures("days")
def test_passages_are_deleted_by_tag_and_by_thread(passage):
    assert passage("delete", "--tag", "b").stderr == "1 passage deleted.\n"
    assert contents(passage("list", "--json")) == ["day 23", "day 21"]
    assert passage("delete", "--thread", "chat").stderr == "2 passages deleted.\n"
    for wrong in ((), (str(uuid.uuid4()), "--tag", "a")):
        assert "name one PASSAGE_ID, or --tag, --thread or both" in passage("delete", *wrong).stderr


def test_content_goes_in_and_out_byte_for_byte(passage):
    content = "no line end\r\n\ttab \x1b[31m \u202e é\\n".encode() + b"x" * 200_000
    stored = objects(passage("store", "--json", given=content))[0]["passage_id"]
    assert passage("get", stored).stdout.encode() == content


def test_a_row_is_one_line_whatever_is_in_it(passage):
    assert passage("store", given="a\nb\tc").returncode == 0
    row = passage("list").stdout.removesuffix("\n").split("\t")
    assert (len(row), row[-1]) == (7, "a\\nb\\tc")


def test_an_id_makes_storing_safe_to_repeat(passage):
    passage_id = str(uuid.uuid4())
    first, second = (passage("store", "once", "--id", passage_id, "--json") for _ in range(2))
    assert objects(first) == objects(second)
    other = passage("store", "twice", "--id", passage_id)
    assert (other.returncode, "--id" in other.stderr) == (1, True)


@pytest.mark.usefixtures("days")
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((), ["day 23", "day 22", "day 21"]),
        (("--since", "2026-11-22"), ["day 23", "day 22"]),
        (("--until", "2026-11-22"), ["day 21"]),
        (("--since", "2026-11-21T00:00:01Z", "--until", "2026-11-22T00:00:01Z"), ["day 22"]),
        (("--tag", "a", "--tag", "b"), ["day 22"]),
        (("--tag", "a", "--tag", "b", "--any-tag"), ["day 22", "day 21"]),
        (("--thread", "chat", "--tag", "b"), ["day 22"]),
        (("--thread", "another"), []),
    ],
    ids=lambda words: " ".join(words),
)
def test_lists_and_searches_are_narrowed_alike(passage, filters, expected):
    assert contents(passage("list", *filters, "--json")) == expected
    assert sorted(contents(passage("search", "day", *filters, "--json"))) == sorted(expected)


@pytest.mark.parametrize(
    "arguments",
    [
        ("store", "my", "hush"),
        ("store", "-hush"),
        ("store", "hush", "--event-time", "hush"),
        ("store", "hush", "--expires-in", "999999w"),
        ("store", "hush", "--expires-in", "hush"),
        ("store", "hush" * 70_000),
        ("store", "hush", "--id", "hush"),
        ("get", "hush"),
        ("list", "hush"),
        ("list", "--since", "hush"),
        ("search", "hush", "again"),
        ("delete", "hush"),
    ],
    ids=lambda words: " ".join(words)[:30],
)
def test_an_error_repeats_no_content(passage, arguments):
    long = len(arguments[-1]) > 100_000  # Linux takes no argument of that length
    failed = passage(arguments[0], given=arguments[-1]) if long else passage(*arguments)
    assert failed.returncode in {1, 2}
    assert failed.stdout == ""
    assert "hush" not in failed.stderr
    assert "Error: " in failed.stderr
    assert "Traceback" not in failed.stderr
