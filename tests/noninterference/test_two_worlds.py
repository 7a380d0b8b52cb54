"""Law 2: what a session observes is a function of operations at or below its taint."""

from __future__ import annotations

import os

import pytest

from muniment_server.domain.classification import Classification
from tests.noninterference.probes import Probed
from tests.noninterference.runner import REACHABLE, run_programs
from tests.noninterference.worlds import two_worlds, world

PROGRAMS = int(os.environ.get("MUNIMENT_NI_PROGRAMS", "56"))
SEED = int(os.environ.get("MUNIMENT_NI_SEED", "1"))


def test_two_worlds_that_differ_above_look_the_same_below(postgres, capsys):
    """Every program, byte for byte, in both worlds; and each answer is the one that the model foretells."""
    with two_worlds(postgres) as worlds:
        report = run_programs(worlds, SEED, PROGRAMS)

    with capsys.disabled():
        print(f"\n{report.pairs:,} pairs compared and equal in {report.programs} programs, {report.calls:,} calls")
    assert report.pairs >= 90 * PROGRAMS
    assert sorted(REACHABLE - set(report.coverage)) == []


@pytest.mark.parametrize("rpc", ["GetSession", "CloseSession"])
# product bug: a closed session that the worker remembers is told NOT_FOUND here. `_check_own` refuses before any
# statement, and FollowTaint does not confirm a SessionNotFound: it is missing in FollowTaint._UNCONFIRMED.
@pytest.mark.xfail(reason="product bug: FollowTaint does not confirm SessionNotFound", strict=True)
def test_a_closed_session_that_names_another_is_unauthenticated(postgres, rpc):
    """Closed is closed, whatever else is wrong with the call and whatever the worker remembers."""
    with world(postgres) as one:
        probed = Probed(one)
        token, session_id = probed.session(Classification.PUBLIC)
        _, other_id = probed.session(Classification.PUBLIC)
        probed.call(token, "GetSession")
        probed.call(probed.host, "CloseSession", session_id=session_id)

        assert probed.call(token, rpc, session_id=other_id).code.name == "UNAUTHENTICATED"
