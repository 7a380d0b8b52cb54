"""Searching at the terminal."""

from __future__ import annotations

from functools import partial

import pytest
from rich.text import Text

from muniment.cli.content import print_how_found
from muniment.cli.highlight import highlight
from tests.support.commands import line_of, objects, on_a_terminal, wait_until


@pytest.fixture
def session(muniment, agent):
    """Run a command in a session of the test's agent at INTERNAL."""
    token = line_of(muniment("session", "open", agent, "--taint", "internal", "--quiet"))
    return lambda *words, **options: muniment(*words, MUNIMENT_TOKEN=token, **options)


def test_one_search_finds_memories_notes_and_passages(session):
    session("memory", "save", "plan", "the whale ships on Friday")
    session("note", "add", "whales are mammals")
    session("note", "add", "she likes whales", "--tier", "user")
    session("passage", "store", "we saw a whale near Porto", "--author", "Ann", "--thread", "trip")
    session("memory", "save", "other", "nothing of the kind")

    found = objects(session("search", "Where are the whales?", "--json"))
    assert [each["kind"] for each in found] == ["memory", "memory note", "user note", "passage"]
    assert {each["classification"] for each in found} == {"INTERNAL"}
    assert found[0]["name"] == "plan"
    assert [each["content"] for each in found] == [
        "the whale ships on Friday",
        "whales are mammals",
        "she likes whales",
        "we saw a whale near Porto",
    ]
    assert (found[3]["author"], found[3]["thread"]) == ("Ann", "trip")
    assert session("search", "whale").stdout.split("\n")[0].split("\t")[:3] == ["memory", "plan", "INTERNAL"]


def test_on_a_terminal_what_was_found_is_marked(dev, session, agent):
    session("memory", "save", "plan", "the whale ships on Friday")
    status, shown = on_a_terminal(dev.folder, "search", "whales", "--agent", agent, "--taint", "internal")

    assert status == 0
    assert "\x1b[1;35mwhale\x1b[0m" in shown


@pytest.mark.parametrize("command", ["search", "memory search", "note search", "passage search"])
def test_a_search_that_finds_nothing_says_so_beside_its_answer(session, command):
    done = session(*command.split(), "whale")

    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing found\n" in done.stderr


def test_a_semantic_search_prints_no_notice(session):
    session("memory", "save", "plan", "the whale ships on Friday")
    session("note", "add", "whales are mammals")
    session("passage", "store", "we saw a whale near Porto")

    def compares_embeddings(command: str) -> bool:
        return "only words were compared" not in session(*command.split(), "whale").stderr

    for command in ("search", "memory search", "note search", "passage search"):
        wait_until(partial(compares_embeddings, command), f"{command} compares embeddings")


def test_a_search_by_words_alone_says_so(capsys):
    print_how_found(["whale"], semantic=False)

    assert capsys.readouterr().err == "only words were compared, no embeddings\n"


@pytest.mark.parametrize(
    ("snippet", "query", "marked"),
    [
        ("It ships on Friday.", "what ships when?", ["ships"]),
        ("WHALING, whales; whale-watching", "whale", ["whales", "whale"]),
        ("the team drinks tea", "TEA", ["tea"]),
        ("café préféré", "cafe", ["café"]),
        ("東京都庁の展望台に行った", "展望台はいつ", ["展望", "望台"]),
        ("நாய்களுக்கு சோறு", "நாய்", ["நாய்களுக்கு"]),
        ("anything", "", []),
        ("", "whale", []),
        ("100% of C++ \\x1b", "C++ (100%)", ["100", "C"]),
    ],
)
def test_what_is_marked(snippet, query, marked):
    text = Text(snippet)
    highlight(text, query)

    assert sorted(snippet[span.start : span.end] for span in text.spans) == sorted(marked)
