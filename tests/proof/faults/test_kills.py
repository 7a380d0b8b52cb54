"""kill -9 in mid-write, of every part of a server in turn: 5.7 of the threats, law 9."""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from collections import Counter

import pytest

from muniment_server.domain.items import ItemKind
from tests.proof.faults import promises
from tests.proof.faults.load import Load
from tests.proof.faults.processes import WORKERS, ServerProcess, is_running, wait_until

_VICTIMS = ("worker", "supervisor", "postmaster", "backend")
_CHECKPOINT = 10
_SLOWEST_RECOVERY = 60.0
_MAX_WRITES = 40
"""How many are acknowledged between a recovery and the next kill, at most."""


class Killer:
    """Kills one part after the other, and waits until every caller is served again."""

    def __init__(self, server: ServerProcess, load: Load) -> None:
        self._server = server
        self._load = load
        self._dice = random.Random(5)
        self.recoveries: dict[str, list[float]] = {victim: [] for victim in _VICTIMS}

    def cycle(self, number: int) -> None:
        """One kill and its recovery."""
        victim = _VICTIMS[number % len(_VICTIMS)]
        self._let_them_write()
        killed = time.monotonic()
        self._kill(victim)
        wait_until(self._whole, f"every part after the {victim}", seconds=_SLOWEST_RECOVERY)
        whole = time.monotonic()
        wait_until(lambda: self._load.recovered_since(whole), f"recovery of the {victim}", seconds=_SLOWEST_RECOVERY)
        self.recoveries[victim].append(time.monotonic() - killed)

    def _let_them_write(self) -> None:
        enough = len(self._load.acknowledged) + self._dice.randrange(_MAX_WRITES)
        wait_until(lambda: len(self._load.acknowledged) >= enough, "writes between the kills")

    def _kill(self, victim: str) -> None:
        if victim == "supervisor":
            self._server.kill()
            self._server.start()
            return
        parts = {
            "worker": self._server.workers,
            "postmaster": lambda: self._server.postgres()[:1],
            "backend": self._server.backends,
        }
        wait_until(parts[victim], f"a {victim}")
        chosen = self._dice.choice(parts[victim]())
        os.kill(chosen, signal.SIGKILL)
        wait_until(lambda: chosen not in parts[victim](), f"the end of the {victim}")

    def _whole(self) -> bool:
        return len(self._server.workers()) == WORKERS and self._server.postmaster() is not None


@pytest.mark.proof
def test_what_was_acknowledged_survives_every_kill(
    kills: int, server: ServerProcess, load: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    """And is there once; what was not is there at most once; audit rows are the effects; no taint falls."""
    killer = Killer(server, load)
    begun = time.monotonic()
    with load.running():
        for number in range(kills):
            killer.cycle(number)
            if (number + 1) % _CHECKPOINT == 0:
                with load.paused(), server.as_owner() as owner:
                    assert promises.broken(owner, load) == []
                with capsys.disabled():
                    print(
                        f"\n{number + 1} kills in {time.monotonic() - begun:.0f} s, {_count(load)}", end="", flush=True
                    )

    with server.as_owner() as owner:
        assert promises.broken(owner, load) == []
    assert load.surprises == []
    print(f"\nkills: {kills} in {time.monotonic() - begun:.0f} s, {_count(load)}, {dict(load.codes)}")
    print(f"recovery, seconds: {_seconds(killer.recoveries)}")


@pytest.mark.proof
def test_a_worker_whose_supervisor_dies_while_it_loads_does_not_stay(
    kills: int, server: ServerProcess, load: Load
) -> None:
    """It shares the port with the next server's workers: what it took and never answered would be lost callers."""
    with load.running():
        for _ in range(max(1, kills // 10)):
            _orphan_one_that_loads(server, load)


def _orphan_one_that_loads(server: ServerProcess, load: Load) -> None:
    before = server.workers()
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: set(server.workers()) - set(before), "a worker that loads")
    orphans = server.workers()
    server.kill()
    server.start()
    started = time.monotonic()
    wait_until(lambda: load.recovered_since(started), "recovery", seconds=_SLOWEST_RECOVERY)
    wait_until(lambda: not any(map(is_running, orphans)), "the end of the workers of before")


@pytest.mark.proof
def test_every_taint_is_the_same_after_a_restart(server: ServerProcess, load: Load) -> None:
    with load.running():
        wait_until(lambda: sum(load.raiser.acknowledged.values()) > 110, "some raises")
    with server.as_owner() as owner:
        before = promises.taints(owner)

    server.kill()
    server.start()

    with server.as_owner() as owner:
        assert promises.taints(owner) == before
    assert set(Counter(before.values())) >= {1, 2, 3}


def _count(load: Load) -> str:
    each = dict(Counter(save.kind.name.lower() for save in load.acknowledged))
    return (
        f"{each} acknowledged, {len(load.unknown)} not, "
        f"{len(load.deleted)} notes deleted, {load.raiser.codes['OK']} raises"
    )


def _seconds(recoveries: dict[str, list[float]]) -> str:
    every = [seconds for found in recoveries.values() for seconds in found]
    each = (f"{victim} {statistics.median(found):.2f}" for victim, found in recoveries.items() if found)
    return f"median {statistics.median(every):.2f}, slowest {max(every):.2f}; medians: {', '.join(each)}"


@pytest.mark.proof
def test_what_is_lost_or_falls_would_show(server: ServerProcess, load: Load) -> None:
    """The checks above on a database from which versions of every kind, audit rows and a raise are taken."""
    with load.running():
        wait_until(lambda: sum(load.raiser.acknowledged.values()) > 105, "some raises")
        wait_until(lambda: load.writers[0].deleted, "a full budget", seconds=60)
    with server.as_owner() as owner:
        assert promises.broken(owner, load) == []
        owner.execute("DELETE FROM muniment_public.revision WHERE name = 'shared' AND revision = 2")
        owner.execute("DELETE FROM muniment_public.revision WHERE kind = 2 AND content LIKE '0.%'")
        owner.execute("DELETE FROM muniment_public.revision WHERE kind = 3 AND revision = 2")
        owner.execute("DELETE FROM muniment_public.item WHERE kind = 4 AND content LIKE '0.% passage'")
        owner.execute("DELETE FROM muniment_confidential.audit WHERE revision = 3 OR method = 'DeleteNote'")
        owner.execute("UPDATE muniment_public.item SET delete_time = NULL WHERE kind = 2")
        owner.execute("UPDATE vault.agent SET memory_char_limit = 1")
        owner.execute("UPDATE vault.conversation SET taint = 1 WHERE taint = 2")
        found = " ".join(promises.broken(owner, load))

    for symptom in (
        *(f"acknowledged and lost: Save(level=<Classification.PUBLIC: 1>, kind={kind!r}" for kind in ItemKind),
        "a gap", "a version without its audit row", "an audited write without its effect", "told 2",
        "a deletion without its audit row", "a note that was deleted is there", "a tier over its budget",
    ):  # fmt: skip
        assert symptom in found
