"""Law 2: what a session observes is a function of operations at or below its taint."""

from __future__ import annotations

import os

from tests.noninterference.reachable import missing
from tests.noninterference.runner import run_programs
from tests.noninterference.worlds import two_worlds

PROGRAMS = int(os.environ.get("MUNIMENT_NI_PROGRAMS", "96"))
SEED = int(os.environ.get("MUNIMENT_NI_SEED", "1"))


def test_two_worlds_that_differ_above_look_the_same_below(postgres, capsys):
    """Every program, byte for byte, in both worlds; and each answer is the one that the model foretells."""
    with two_worlds(postgres) as worlds:
        report = run_programs(worlds, SEED, PROGRAMS)

    with capsys.disabled():
        print(f"\n{report.pairs:,} pairs compared and equal in {report.programs} programs, {report.calls:,} calls")
    assert report.pairs >= 90 * PROGRAMS
    assert missing(set(report.coverage)) == []
