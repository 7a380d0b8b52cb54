"""The database's clock is set forward and back, by hours, under load: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest

from muniment_server.domain.classification import Classification
from tests.proof.faults import promises
from tests.proof.faults.load import Load
from tests.proof.faults.processes import wait_until
from tests.support.clock import Clock
from tests.support.databases import Database
from tests.support.labels import untrusted
from tests.support.services import Service, new_host_key

_STEPS = tuple(timedelta(seconds=seconds) for seconds in (-10_800, -60, -1, 1, 60, 10_800))
_FARTHEST = timedelta(hours=6)
"""A session lasts longer than twice as long, so none expires."""
_CHECKPOINT = 10
_MAX_WRITES = 20
"""How many are acknowledged between two steps, at most."""
_SET_BACK = """
SELECT count(*)::int AS versions
  FROM {level}.revision AS earlier
       JOIN {level}.revision AS later USING (tenant, agent, item_id)
 WHERE later.revision = earlier.revision + 1
   AND later.update_time < earlier.update_time
"""


@pytest.mark.proof
def test_what_was_acknowledged_survives_every_step_of_the_clock(
    kills: int, database: Database, service: Service
) -> None:
    """And is there once; audit rows are the effects; no taint falls; no session ends; no answer is a surprise."""
    load = Load(service.address, new_host_key(database, "acme", Classification.RESTRICTED), conversations=5)
    clock, dice, ahead = Clock(database), random.Random(5), timedelta()
    with load.running(), database.as_owner() as owner:
        for number in range(kills):
            _wait_for_writes(load, dice.randrange(1, _MAX_WRITES))
            step = dice.choice([step for step in _STEPS if abs(ahead + step) <= _FARTHEST])
            clock.advance(seconds=step.total_seconds())
            ahead += step
            if (number + 1) % _CHECKPOINT == 0:
                with load.paused():
                    assert promises.broken(owner, load) == []

    with database.as_owner() as owner:
        assert promises.broken(owner, load) == []
        queries = [_SET_BACK.replace("{level}", untrusted(level).role) for level in Classification]
        set_back = [versions for query in queries for (versions,) in owner.execute(query.encode()).fetchall()]
    assert load.surprises == []
    assert any(set_back), "no version is older than the one before it: the steps were not seen"
    acknowledged = dict(Counter(save.kind.name.lower() for save in load.acknowledged))
    raises = load.raiser.codes["OK"]
    print(f"\n{kills} steps: {acknowledged} acknowledged, {len(load.unknown)} not, {raises} raises, {dict(load.codes)}")
    print(f"{sum(set_back)} versions are older than the one before")


def _wait_for_writes(load: Load, more: int) -> None:
    enough = len(load.acknowledged) + more
    wait_until(lambda: len(load.acknowledged) >= enough, "writes between steps")
