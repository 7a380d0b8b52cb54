"""The measurement of `make timing` from end to end: it finds channels that are planted."""

from __future__ import annotations

import pytest

from tests.proof.faults.processes import ServerProcess
from tests.proof.timing import credentials
from tests.proof.timing.measuring import RELATIONS, Parties, measure
from tests.proof.timing.planted import SECONDS, plant

_SLOTS = 160
_CALLS = 100


@pytest.mark.proof
@pytest.mark.alone
def test_planted_channels_are_found(tmp_path):
    tmp_path.chmod(0o755)
    server = ServerProcess(code=plant(tmp_path))
    try:
        server.start()
        parties = Parties(server)
        found = measure(parties, RELATIONS[0], "one save", _SLOTS, SECONDS, loaded=False, seed=7)
        refusals = credentials.measure(server, _CALLS, seed=7)
    finally:
        server.destroy()

    print(found, refusals)
    assert found.calls > _SLOTS / 4
    assert found.capacity.low > 0
    assert found.capacity.feature.startswith("get")
    assert found.shuffled < 0.15
    assert refusals[credentials.NO_TENANT][0].low > 0.2
