"""`versions` of each kind of item, at the terminal and in a pipe."""

from __future__ import annotations

import uuid

import pytest

from tests.support.commands import line_of, objects, on_a_terminal

LEVELS = ("public", "internal")
ID = str(uuid.UUID(int=7, version=4))


@pytest.fixture
def as_session(muniment, agent):
    """Run a command in a session of the test's agent."""
    tokens = {level: line_of(muniment("session", "open", agent, "--taint", level, "--quiet")) for level in LEVELS}
    return lambda level, *words: muniment(*words, MUNIMENT_TOKEN=tokens[level])


def test_the_versions_of_every_kind_are_listed(as_session):
    for level in reversed(LEVELS):
        as_session(level, "memory", "save", "plan", f"of {level}")
        as_session(level, "note", "add", f"of {level}", "--id", ID)
        as_session(level, "block", "update", "plan", f"of {level}")
        as_session(level, "passage", "store", f"of {level}", "--id", ID)

    for kind, name in (("memory", "plan"), ("note", ID), ("block", "plan"), ("passage", ID)):
        listed = objects(as_session("internal", kind, "versions", name, "--json"))
        assert [(each["classification"], each["content"]) for each in listed] == [
            ("PUBLIC", "of public"),
            ("INTERNAL", "of internal"),
        ], kind


def test_what_a_version_has_replaced_is_listed_on_request(as_session):
    for content in ("1", "2", "3"):
        as_session("public", "memory", "save", "plan", content)

    live = as_session("public", "memory", "versions", "plan").stdout
    every = as_session("public", "memory", "versions", "plan", "--revisions").stdout
    newest = as_session("public", "memory", "versions", "plan", "--revisions", "--limit", "2").stdout

    assert [line.split("\t")[0::3] for line in live.splitlines()] == [["PUBLIC", "3"]]
    columns = [line.split("\t")[2:] for line in every.splitlines()]
    assert columns == [["False", "3"], ["True", "2"], ["True", "1"]]
    assert newest.splitlines() == every.splitlines()[:2]


def test_versions_are_a_table_on_a_terminal(dev, agent, as_session):
    as_session("public", "memory", "save", "plan", "ship on Friday")

    status, seen = on_a_terminal(dev.folder, "memory", "versions", "plan", "--agent", agent, "--taint", "public")

    assert status == 0
    assert "classification" in seen
    assert "ship on Friday" in seen


def test_what_is_not_there_is_an_error(as_session):
    assert as_session("public", "memory", "versions", "none").returncode == 1
