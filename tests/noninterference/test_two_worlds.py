"""Law 2: what a session observes is a function of operations at or below its taint."""

from __future__ import annotations

from tests.noninterference.reachable import missing
from tests.noninterference.runner import run_programs
from tests.noninterference.worlds import two_worlds

_MEET_EVERYTHING = 96
"""So many programs together make every call with every outcome that `reachable.py` lists."""


def test_two_worlds_that_differ_above_look_the_same_below(postgres, programs, seed, capsys):
    """Every program, byte for byte, in both worlds; and each answer is the one that the model foretells."""
    with two_worlds(postgres) as worlds:
        report = run_programs(worlds, seed, programs)

    with capsys.disabled():
        print(f"\n{report.pairs:,} pairs compared and equal in {report.programs} programs, {report.calls:,} calls")
    assert report.pairs >= 90 * programs
    if programs >= _MEET_EVERYTHING:
        assert missing(set(report.coverage)) == []
