"""What a model would see, at the terminal."""

from __future__ import annotations

import pytest

from tests.support.commands import at, line_of, objects, on_a_terminal

RULER = "═" * 48
BLOCK = "### mood\nfine\x1b[31m"
NOTES = f"{RULER}\nMEMORY (agent notes) [42% — 924/2,200 chars]\n{RULER}\n{'x' * 924}"
SHOWN_BLOCK = "### mood\nfine\\u{1B}[31m"


@pytest.fixture
def furnished(muniment):
    """An agent with one block at PUBLIC, a note at INTERNAL and one of its user at CONFIDENTIAL."""
    made = objects(muniment("agent", "create", "--block", "mood=fine\x1b[31m", "--json"))[0]["agent_id"]
    assert muniment("note", "add", "x" * 924, *at(made, "internal")).returncode == 0
    assert muniment("note", "add", "is called Ann", "--tier", "user", *at(made, "confidential")).returncode == 0
    return made


def test_in_a_pipe_it_is_the_prompt_byte_for_byte(muniment, furnished):
    seen = muniment("prompt", furnished, "--taint", "internal")
    assert (seen.returncode, seen.stdout, seen.stderr) == (0, f"{SHOWN_BLOCK}\n\n{NOTES}", "")
    assert muniment("prompt", furnished, "--taint", "public").stdout == SHOWN_BLOCK
    assert "USER PROFILE" in muniment("prompt", furnished, "--taint", "confidential").stdout


def test_a_token_is_accepted(muniment, furnished):
    token = line_of(muniment("session", "open", furnished, "--taint", "public", "--quiet"))
    assert muniment("prompt", MUNIMENT_TOKEN=token).stdout == SHOWN_BLOCK


def test_sections_are_chosen_and_the_usage_left_out(muniment, furnished):
    def seen(*options):
        return muniment("prompt", furnished, "--taint", "confidential", *options).stdout

    assert seen("--section", "memory") == NOTES
    assert seen("--section", "memory", "--section", "memory", "--omit-usage") == NOTES.replace(
        " [42% — 924/2,200 chars]", ""
    )
    both = seen("--section", "user-profile", "--section", "block")
    assert both.startswith(SHOWN_BLOCK)
    assert both.endswith("is called Ann")
    assert "MEMORY" not in both


def test_json_says_everything(muniment, furnished):
    rendered = objects(muniment("prompt", furnished, "--taint", "internal", "--json"))[0]
    assert rendered["text"] == f"{SHOWN_BLOCK}\n\n{NOTES}"
    assert rendered["classification"] == "INTERNAL"
    assert [(each["kind"], each["label"], each["classification"]) for each in rendered["sections"]] == [
        ("BLOCK", "mood", "PUBLIC"),
        ("MEMORY", None, "INTERNAL"),
    ]
    assert {each["tier"]: each["percent"] for each in rendered["usage"]} == {"MEMORY": 42, "USER": 0}
    assert rendered["etag"]


def test_a_terminal_gets_an_overview_and_nothing_that_steers_it(dev, furnished):
    status, shown = on_a_terminal(dev.folder, "prompt", furnished, "--taint", "internal")
    assert status == 0
    assert "\x1b" not in shown
    assert shown.splitlines()[-1] == "INTERNAL; memory 42% — 924/2,200 chars; user 0% — 0/1,375 chars"


def test_an_agent_and_a_taint_come_together(muniment, furnished):
    assert "AGENT and --taint LEVEL require each other" in muniment("prompt", furnished).stderr
    assert "give AGENT and --taint LEVEL" in muniment("prompt").stderr
    assert muniment("prompt", "nobody", "--taint", "public").returncode == 1
