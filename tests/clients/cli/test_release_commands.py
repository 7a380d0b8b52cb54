"""`muniment release`: what the people see who ask and approve."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from tests.support.commands import Done, line_of, objects, on_a_terminal

LABELS = ("--from", "public", "--to", "public", "--trusted")


@pytest.fixture
def new_key(dev, muniment) -> Callable[[], Callable[..., Done]]:
    """Make a key for the desk, and run commands with it."""
    options = (
        "--ceiling",
        "restricted",
        "--only",
        "releases",
        "--may",
        "endorse",
        "--quiet",
        "--data-dir",
        ".muniment",
    )

    def made() -> Callable[..., Done]:
        key = line_of(muniment("host-key", "create", "--tenant", "development", *options))
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


def test_a_terminal_shows_what_is_stored_with_the_text_and_what_is_invisible(dev, muniment, agent, new_key):
    hidden, name = "Ada\U000e0121", str(uuid.uuid4())
    muniment("note", "add", hidden, "--id", name, "--tier", "user", "--agent", agent, "--taint", "public")
    (asked,) = objects(new_key()("release", "request", agent, name, hidden, "--kind", "note", *LABELS, "--json"))

    status, shown = on_a_terminal(dev.folder, "release", "show", asked["release_id"])
    assert status == 0
    assert "USER" in shown
    assert r"Ada\U000e0121" in shown
    assert hidden not in shown
