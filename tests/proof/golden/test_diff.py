"""`make diff` finds an answer that differs, and says which differences are not meant."""

from __future__ import annotations

import os
import subprocess
import sys
from unittest.mock import Mock

import pytest

from tests.proof.golden import meant, record
from tests.proof.golden.checkouts import ROOT
from tests.proof.golden.stage import Stage

TEXT = """# Answers that are meant to change

## Since 0123abcd

* `notes` 0123456789ab, `blocks` ba9876543210: a reason.

## Since 4567abcd

* `audit` 0123456789ab: another.
"""


def test_the_newest_section_counts():
    assert meant.read(TEXT) == meant.Meant("0123abcd", {"notes": "0123456789ab", "blocks": "ba9876543210"})


def test_changed_md_can_be_read():
    assert meant.read(meant.CHANGED.read_text(encoding="utf-8")).base


def test_a_difference_that_is_named_is_fine():
    assert [*meant.errors({"notes": "0123456789ab"}, {"notes": "0123456789ab"})] == []


@pytest.mark.parametrize("names", [{}, {"notes": "ba9876543210"}], ids=["without a name", "with another name"])
def test_a_difference_that_is_not_named_is_an_error(names):
    _, line = meant.errors({"notes": "0123456789ab"}, names)

    assert line.startswith("* `notes` 0123456789ab: ")


def test_a_name_without_a_difference_is_an_error():
    (line,) = meant.errors({}, {"notes": "0123456789ab"})

    assert line == "changed.md names a difference in `notes`, where there is none: remove the name."


@pytest.mark.parametrize("now", [b"other", b"an"])
def test_transcripts_are_compared_by_scene(tmp_path, now):
    for side, transcript in (("before", b"answer"), ("now", now)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "same.txt").write_bytes(b"answer")
        (tmp_path / side / "notes.txt").write_bytes(transcript)

    found = meant.differing(tmp_path / "before", tmp_path / "now")

    assert found == {"notes": meant.name_of(now)}


@pytest.fixture
def checkout(tmp_path):
    """A checkout of HEAD."""
    folder = tmp_path / "checkout"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder, "HEAD"], cwd=ROOT, check=True)
    yield folder
    subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


@pytest.mark.proof
def test_an_answer_that_changed_is_found(checkout):
    for path in (checkout / "service").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('"the agent id is taken"', '"taken"'), encoding="utf-8")

    path = os.pathsep.join(str(checkout / part) for part in ("clients/python/src", "service", "."))
    compared = subprocess.run(
        [sys.executable, "-m", "tests.proof.golden", "--base", "HEAD", "agents"],
        cwd=checkout, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert compared.returncode == 1, compared.stderr
    assert "-message: the agent id is taken\n+message: taken\n" in compared.stdout
    assert "\nScenes with other answers: agents\n" in compared.stdout


def test_a_scene_that_cannot_go_on_ends_early():
    """What it lacks is a difference. The scenes after it are played."""
    stage = Stage(Mock(), "notes")

    record.play(lambda _: pytest.fail("no session"), stage)

    assert stage.transcript == "# The scene ended here: Failed\n\n"
