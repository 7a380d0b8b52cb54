"""kill -9 of every node of a served cluster in turn: nothing acknowledged is lost or doubled, and no taint falls."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator

import pytest

from tests.operations.citus.climbing import ClimbingLoad, broken, summary
from tests.operations.citus.cluster import folder_of_nodes, missing, running
from tests.operations.citus.served import SERVABLE, ServedCluster, serving
from tests.support.commands import wait_until

pytestmark = [
    pytest.mark.proof,
    pytest.mark.deep,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

_KILLS_PER_CYCLE = 40
"""A kill of a node takes some 40 times as long as one of a server's process, so 2,000 kills mean 50 here."""
_CHECKPOINT = 10
_SLOWEST_RECOVERY = 90.0
_MAX_WRITES = 20
"""How many are acknowledged between a recovery and the next kill, at most."""


class NodeKiller:
    """Kills one node after the other, starts it again, and waits until every caller is served."""

    def __init__(self, load: ClimbingLoad) -> None:
        self._load = load
        self._nodes = dict(zip(("coordinator", "worker 1", "worker 2"), load.served.cluster.nodes, strict=True))
        self._dice = random.Random(5)
        self.recoveries: dict[str, list[float]] = {name: [] for name in self._nodes}
        """By node, the seconds from its start until every writer was served."""
        self.in_doubt = 0
        """How many transactions were prepared right after a start, and neither committed nor rolled back."""

    def cycle(self) -> None:
        """One kill and its recovery."""
        load = self._load
        enough = len(load.acknowledged) + self._dice.randrange(_MAX_WRITES)
        wait_until(lambda: len(load.acknowledged) >= enough, "writes between the kills", seconds=_SLOWEST_RECOVERY)
        name = self._dice.choice(list(self._nodes))
        self._nodes[name].kill()
        time.sleep(self._dice.uniform(0, 2))
        self._nodes[name].start()
        started = time.monotonic()
        self.in_doubt += load.served.prepared()
        wait_until(lambda: load.recovered_since(started), f"recovery of the {name}", seconds=_SLOWEST_RECOVERY)
        self.recoveries[name].append(time.monotonic() - started)


@pytest.fixture
def served() -> Iterator[ServedCluster]:
    with (
        folder_of_nodes() as home,
        running(home, **SERVABLE, **{"citus.recover_2pc_interval": "2s"}) as cluster,
        serving(home, cluster) as server,
    ):
        yield server
        print(server.log[-10_000:])


@pytest.mark.timeout(3 * 60 * 60)
def test_what_was_acknowledged_survives_every_kill_of_a_node(
    kills: int, served: ServedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """And is there once; what was not is there at most once; audit rows are the effects; no taint falls."""
    cycles = max(3, kills // _KILLS_PER_CYCLE)
    load = ClimbingLoad(served)
    killer, begun = NodeKiller(load), time.monotonic()
    with load.running():
        for number in range(cycles):
            killer.cycle()
            if (number + 1) % _CHECKPOINT == 0:
                with load.paused():
                    wait_until(lambda: served.prepared() == 0, "the recovery of prepared transactions")
                    with served.as_owner() as owner:
                        assert broken(owner, load) == []
                with capsys.disabled():
                    print(
                        f"\n{number + 1} kills in {time.monotonic() - begun:.0f} s, {summary(load)}",
                        end="",
                        flush=True,
                    )

    wait_until(lambda: served.prepared() == 0, "the recovery of prepared transactions")
    with served.as_owner() as owner:
        assert broken(owner, load) == []
    assert load.surprises == []
    assert "calls ERROR fault" not in served.log
    assert len(load.climber.at_public) >= cycles
    print(f"\nkills: {cycles} in {time.monotonic() - begun:.0f} s, {summary(load)}, {dict(load.codes)}")
    print(f"{killer.in_doubt} transactions were in doubt after a start")
    for name, found in killer.recoveries.items():
        if found:
            print(f"{name}: {len(found)} kills, recovery {statistics.median(found):.1f} s, slowest {max(found):.1f} s")
