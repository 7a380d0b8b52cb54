"""The scenes call every RPC at every level, and nothing in them is left to chance. `make diff` compares the answers."""

from __future__ import annotations

import difflib

import pytest

from tests.proof.golden.contract import LEVELS, METHODS, REASONS, RESTRICTED, callers_of
from tests.proof.golden.internals import running_postgres
from tests.proof.golden.playing import calls_of, play

WHO = {(rpc, kind, level) for rpc in METHODS for kind in callers_of(rpc) for level in LEVELS.values()}
"""Every RPC, with whoever may call it: at each level or up to each ceiling."""


@pytest.fixture(scope="module")
def transcripts(postgres):
    """What is answered, by scene."""
    return play(postgres)


@pytest.fixture(scope="module")
def calls(transcripts):
    """Every call of the scenes."""
    return [call for transcript in transcripts.values() for call in calls_of(transcript)]


@pytest.mark.proof
@pytest.mark.sampled
def test_another_play_has_the_same_answers(transcripts):
    """`make diff`, which CI runs each time, would show most of what chance changes too: it plays on two checkouts."""
    _assert_same_answers(transcripts)


@pytest.mark.skipif("not config.getoption('cluster')", reason="the test above shows it of one engine")
def test_both_engines_give_the_same_answers(transcripts):
    _assert_same_answers(transcripts)


def _assert_same_answers(transcripts):
    """On plain Postgres, the scenes are answered as before."""
    with running_postgres() as plain:
        others = play(plain)

    differences = [
        line
        for scene, transcript in transcripts.items()
        if transcript != others[scene]
        for line in difflib.unified_diff(others[scene].split("\n"), transcript.split("\n"), "other", scene, lineterm="")
    ]
    assert differences == [], "\n".join(differences)


FOR_THE_HIGHEST = {("GetAuditCheckpoint", "host", level) for level in LEVELS.values() if level != LEVELS[RESTRICTED]}
"""What only a host with the highest ceiling may call."""


def test_every_rpc_succeeds_at_every_level(calls):
    """And for no one else."""
    succeeded = {(call.rpc, call.kind, call.level) for call in calls if call.code == "OK" and call.kind != "nobody"}

    missing = WHO - FOR_THE_HIGHEST - succeeded
    assert missing == set(), _advice("succeed", missing)
    assert succeeded == WHO - FOR_THE_HIGHEST


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
    return f"add calls that {how} at every level to tests/proof/golden/scenes/<noun>.py: {sorted(missing)}"


def test_every_reason_of_the_contract_is_given(calls):
    missing = sorted(REASONS - {call.reason for call in calls})

    assert missing == [], f"add calls that are refused with each to tests/proof/golden/scenes: {missing}"
