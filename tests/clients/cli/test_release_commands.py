"""`muniment release`: what the people see who ask and approve."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from tests.support.commands import Done, line_of, objects, on_a_terminal

LABELS = ("--from", "public", "--to", "public", "--trusted")


@pytest.fixture
def new_desk_key(muniment) -> Callable[[], str]:
    """Make a key for the desk."""
    options = (
        "--ceiling",
        "restricted",
        "--only",
        "releases",
        "--may",
        "endorse",
        "--may",
        "declassify",
        "--quiet",
        "--data-dir",
        ".muniment",
    )

    return lambda: line_of(muniment("host-key", "create", "--tenant", "development", *options))


@pytest.fixture
def new_key(dev, muniment, new_desk_key) -> Callable[[], Callable[..., Done]]:
    """Make a key for the desk, and run commands with it."""

    def made() -> Callable[..., Done]:
        key = new_desk_key()
        return lambda *words: muniment(*words, MUNIMENT_HOST_KEY=key, MUNIMENT_ADDRESS=dev.address)

    return made


def test_two_keys_release_what_one_asked_for(muniment, agent, new_key):
    muniment("memory", "save", "plan", "ship on Friday", "--agent", agent, "--taint", "public")
    asks, approves = new_key(), new_key()

    (asked,) = objects(asks("release", "request", agent, "plan", "ship on Friday", *LABELS, "--json"))
    (shown,) = objects(approves("release", "show", asked["release_id"], "--json"))
    assert (shown["name"], shown["content"], shown["approvals"]) == ("plan", "ship on Friday", "0 of 1")
    approve = ("release", "approve", shown["release_id"], "--hash", shown["content_sha256"], "--json")
    (approved,) = objects(approves(*approve))

    assert approved["state"] == "RELEASED"


@pytest.fixture
def on_terminal(dev, new_desk_key) -> Callable[..., tuple[int, str]]:
    """Runs commands with a key for the desk on a terminal."""
    key = new_desk_key()
    return lambda *words: on_a_terminal(dev.folder, *words, MUNIMENT_HOST_KEY=key, MUNIMENT_ADDRESS=dev.address)


def test_a_terminal_shows_what_is_stored_with_the_text_and_what_is_invisible(muniment, agent, new_key, on_terminal):
    hidden, name = "Ada\U000e0121", str(uuid.uuid4())
    muniment("note", "add", hidden, "--id", name, "--tier", "user", "--agent", agent, "--taint", "public")
    (asked,) = objects(new_key()("release", "request", agent, name, hidden, "--kind", "note", *LABELS, "--json"))

    status, shown = on_terminal("release", "show", asked["release_id"])
    assert status == 0
    assert "USER" in shown
    assert r"Ada\U000e0121" in shown
    assert hidden not in shown


@pytest.mark.parametrize(
    ("level", "effect"),
    [
        ("internal", "it overwrites the one of this name at INTERNAL UNTRUSTED"),
        ("public", "sessions at INTERNAL UNTRUSTED will no longer see the one of this name at PUBLIC UNTRUSTED"),
    ],
)
def test_a_terminal_shows_what_is_replaced(muniment, agent, new_key, on_terminal, level, effect):
    muniment("memory", "save", "plan", "ship on Friday", "--agent", agent, "--taint", "restricted")
    muniment("memory", "save", "plan", "ship on Monday", "--agent", agent, "--taint", level)
    labels = ("--from", "restricted", "--to", "internal")
    (asked,) = objects(new_key()("release", "request", agent, "plan", "ship on Friday", *labels, "--json"))

    _, shown = on_terminal("release", "show", asked["release_id"])

    assert f"! It replaces an item: {effect}." in shown
    assert "ship on Monday" in shown


def test_without_the_right_no_text_is_shown(muniment, agent, new_key):
    muniment("memory", "save", "plan", "ship on Friday", "--agent", agent, "--taint", "public")
    (asked,) = objects(new_key()("release", "request", agent, "plan", "ship on Friday", *LABELS, "--json"))

    done = muniment("release", "show", asked["release_id"])

    assert "ship on Friday" not in done.stdout
    assert "No text: the item has changed, or this key neither asked" in done.stderr
