"""What every RPC answers at every level, byte for byte as it was, but for the texts of errors that are listed."""

from __future__ import annotations

import pytest

from tests.golden.comparison import FOLDER, Changes, changed_texts, committed, differences
from tests.golden.contract import LEVELS, METHODS, REASONS, RESTRICTED, callers_of
from tests.golden.playing import calls_of, play
from tests.golden.scenes import SCENES

pytestmark = pytest.mark.xdist_group("golden")

WHO = {(rpc, kind, level) for rpc in METHODS for kind in callers_of(rpc) for level in LEVELS.values()}
"""Every RPC, with whoever may call it: at each level or up to each ceiling."""


@pytest.fixture(scope="module")
def transcripts(postgres):
    """The transcripts as they are now, by scene."""
    return play(postgres)


@pytest.fixture(scope="module")
def calls():
    """Every call of the committed transcripts."""
    return [call for scene in SCENES for call in calls_of(committed(scene))]


@pytest.mark.parametrize("scene", SCENES)
def test_every_answer_is_as_it_was(transcripts, scene):
    difference = differences(scene, transcripts[scene], changed_texts(), set())

    assert difference == "", (
        f"{difference}\nIf the change is meant: a new text of an error goes into tests/golden/changed_texts.txt; "
        "for all else take the transcripts anew with `python -m tests.golden`, and read their diff"
    )


def test_every_changed_text_is_met(transcripts):
    """A list with more in it would let through what no one meant."""
    used: Changes = set()
    for scene, transcript in transcripts.items():
        differences(scene, transcript, changed_texts(), used)

    assert changed_texts() == used


def test_every_transcript_has_its_scene():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(SCENES)


FOR_THE_HIGHEST = {("GetAuditCheckpoint", "host", level) for level in LEVELS.values() if level != LEVELS[RESTRICTED]}
"""What only a host with the highest ceiling may call."""


def test_every_rpc_succeeds_at_every_level(calls):
    missing = WHO - FOR_THE_HIGHEST - {(call.rpc, call.kind, call.level) for call in calls if call.code == "OK"}

    assert missing == set(), _advice("succeed", missing)


def test_every_rpc_is_refused_at_every_level(calls):
    """Beside those who may call it, whoever may not."""
    refused = {(call.rpc, call.kind, call.level) for call in calls if call.code != "OK"}
    others = {
        (rpc, kind, level)
        for rpc in METHODS
        for kind in {"host", "session"} - callers_of(rpc)
        for level in LEVELS.values()
    }

    missing = (WHO | others) - refused

    assert missing == set(), _advice("are refused", missing)


def _advice(how, missing):
    return (
        f"add calls that {how} at every level to tests/golden/scenes/<noun>.py, then take the transcripts anew with "
        f"`python -m tests.golden`: {sorted(missing)}"
    )


def test_every_reason_of_the_contract_is_given(calls):
    assert REASONS - {call.reason for call in calls} == set()
