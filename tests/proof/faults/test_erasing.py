"""kill -9 while an agent is erased: the next start goes on to the end."""

from __future__ import annotations

import pytest

import muniment
from tests.proof.faults.processes import ServerProcess, wait_until

pytestmark = pytest.mark.proof

_PASSAGES = 20_000
_SLOWEST = 300.0
_FILL = """
INSERT INTO muniment_restricted.item (tenant, agent, kind, name, item_id, change_id, content, event_time)
SELECT agent.tenant, agent.agent, 4, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'whale', now()
  FROM vault.agent
       CROSS JOIN generate_series(1, %s)
 WHERE agent.agent_id = 'large'
"""
_LEFT = "SELECT count(*) FROM muniment_restricted.item WHERE content = 'whale'"
_DELETED = "SELECT count(*) FROM vault.agent WHERE delete_time IS NOT NULL"


def counted(server: ServerProcess, query: str) -> int:
    with server.as_owner() as owner:
        (count,) = owner.execute(query.encode()).fetchone() or (0,)
        return int(count)


def test_a_server_that_was_killed_goes_on_erasing(server: ServerProcess) -> None:
    with muniment.connect(server.address, host_key=server.host_key) as host:
        host.create_agent("large")
        with server.as_owner() as owner:
            owner.execute(_FILL, [_PASSAGES])
        host.delete_agent("large")
        host.create_agent("large")
        wait_until(lambda: counted(server, _LEFT) < _PASSAGES, "the erasing begins")
        left = counted(server, _LEFT)
        server.kill()
        server.start()
        wait_until(lambda: counted(server, _DELETED) == 0, "the agent is erased", seconds=_SLOWEST)

        assert 0 < left < _PASSAGES
        assert counted(server, _LEFT) == 0
        assert host.get_agent("large").agent_id == "large"
