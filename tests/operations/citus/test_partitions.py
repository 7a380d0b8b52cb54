"""A network between the nodes of a served cluster that delays, loses, or forgets: nothing acknowledged is lost.

The coordinator reaches each worker through a proxy. The proxy's own kernel acknowledges every packet, so no time-out of
TCP helps here. No other time limit ends a COPY that waits on a worker for rows.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.operations.citus.climbing import ClimbingLoad, broken, summary
from tests.operations.citus.cluster import folder_of_nodes, missing, running
from tests.operations.citus.served import DATABASE, SERVABLE, ServedCluster, serving
from tests.support.commands import wait_until
from tests.support.proxy import ENDINGS, HELD, Direction, Proxy, running_proxy

pytestmark = [
    pytest.mark.proof,
    pytest.mark.deep,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

_KILLS_PER_PARTITION = 110
"""2,000 kills mean 18 partitions here: two of each kind."""
_CHECKPOINT = 6
_LONGEST = 4.0
"""Seconds that bytes are held back. Writers give up after two."""
_SLOWEST_RECOVERY = 90.0
_FORGOTTEN = 10.0
"""Seconds after which a worker notices that a connection is gone, as its keepalives would have it do later."""
_MAX_WRITES = 20
"""How many are acknowledged between a recovery and the next partition, at most."""
_RECOVERY_SECONDS = 30.0
"""Within which Citus ends the transactions that were prepared, once the network is whole."""


class Partitions:
    """Cuts the coordinator off from one worker, or from both, again and again, each time with another end."""

    def __init__(self, load: ClimbingLoad, proxies: tuple[Proxy, ...]) -> None:
        self._load = load
        self._cuts = ((proxies[0],), (proxies[1],), proxies)
        self._dice = random.Random(5)
        self.recoveries: dict[str, list[float]] = {ending: [] for ending in ENDINGS}
        """By ending, the seconds from the end of a partition until every writer was served."""
        self.noticed = 0
        """How many partitions ended for some caller only once the workers had noticed the lost connections."""

    def cycle(self, number: int) -> None:
        """One partition and its recovery. A forgotten one lasts until all are served, or ten seconds."""
        held, ending = HELD[number // len(ENDINGS) % len(HELD)], ENDINGS[number % len(ENDINGS)]
        load, cut = self._load, self._dice.choice(self._cuts)
        enough = len(load.acknowledged) + self._dice.randrange(_MAX_WRITES)
        wait_until(lambda: len(load.acknowledged) >= enough, "writes between partitions", seconds=_SLOWEST_RECOVERY)
        with ExitStack() as ghosts:
            self._cut(cut, held, ending, ghosts)
            over = time.monotonic()
            while time.monotonic() < over + _FORGOTTEN and not load.recovered_since(over):
                time.sleep(0.005)
        self.noticed += not load.recovered_since(over)
        wait_until(lambda: load.recovered_since(over), f"recovery, {held} {ending}", seconds=_SLOWEST_RECOVERY)
        self.recoveries[ending].append(time.monotonic() - over)

    def _cut(self, cut: tuple[Proxy, ...], held: tuple[Direction, ...], ending: str, ghosts: ExitStack) -> None:
        with ExitStack() as holding:
            for proxy in cut:
                holding.enter_context(proxy.holding(*held))
            time.sleep(self._dice.uniform(0.1, _LONGEST))
            for proxy in cut:
                if ending == "lost":
                    proxy.lose()
                if ending == "forgotten":
                    ghosts.enter_context(proxy.ghosts())


@pytest.fixture
def served() -> Iterator[ServedCluster]:
    with (
        folder_of_nodes() as home,
        running(home, **SERVABLE, **{"citus.recover_2pc_interval": "2s"}) as cluster,
        serving(home, cluster) as server,
    ):
        yield server
        print(server.log[-10_000:])


@pytest.fixture
def proxies(served: ServedCluster) -> Iterator[tuple[Proxy, ...]]:
    """One for each worker, which the coordinator knows by the proxy's port."""
    cluster = served.cluster
    with ExitStack() as stack, cluster.admin(cluster.coordinator, DATABASE) as admin:
        made = {port: stack.enter_context(running_proxy(port)) for port in cluster.workers}
        for port, proxy in made.items():
            move = "SELECT citus_update_node(nodeid, nodename, %s) FROM pg_dist_node WHERE nodeport = %s"
            assert admin.execute(move, [proxy.port, port]).rowcount == 1
        yield tuple(made.values())


@pytest.mark.timeout(60 * 60)
def test_what_was_acknowledged_survives_every_partition_between_nodes(
    kills: int, served: ServedCluster, proxies: tuple[Proxy, ...]
) -> None:
    """And is there once; what was not is there at most once; audit rows are the effects; no taint falls."""
    count = max(len(ENDINGS), kills // _KILLS_PER_PARTITION)
    load = ClimbingLoad(served)
    partitions, begun = Partitions(load, proxies), time.monotonic()
    with load.running():
        for number in range(count):
            partitions.cycle(number)
            if (number + 1) % _CHECKPOINT == 0:
                with load.paused():
                    _require_promises(served, load)

    _require_promises(served, load)
    assert load.surprises == []
    assert "calls ERROR fault" not in served.log
    assert "CANCELLED" not in load.codes
    assert len(load.climber.at_public) >= count // 2
    print(f"\npartitions: {count} in {time.monotonic() - begun:.0f} s, {summary(load)}, {dict(load.codes)}")
    print(f"{partitions.noticed} ended for some caller only once the workers had noticed")
    for ending, found in partitions.recoveries.items():
        print(f"{ending}: {len(found)}, recovery {statistics.median(found):.1f} s, slowest {max(found):.1f} s")


def _require_promises(served: ServedCluster, load: ClimbingLoad) -> None:
    wait_until(lambda: served.prepared() == 0, "the recovery of prepared transactions", seconds=_RECOVERY_SECONDS)
    with served.as_owner() as owner:
        assert broken(owner, load) == []
