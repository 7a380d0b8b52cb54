"""A background job that brings deleted data back: bytedance/deer-flow, issue 3364.

There, a delayed update of a deleted agent's memory recreated the agent. Promised: an embedding that was begun before a
deletion leaves nothing after it, and an agent that is made again under the same name begins empty.
"""

from __future__ import annotations

import pytest

from muniment_server.process.stop_signal import StopSignal
from tests.support.answers import PUBLIC, keys
from tests.support.embedders import embed_by, quick
from tests.support.erasing import erase_all
from tests.support.invariants import broken_invariants
from tests.support.services import serving


@pytest.mark.parametrize("loss", ["deleted", "replaced", "agent deleted", "agent erased"])
def test_an_embedding_that_is_late_brings_nothing_back(database, loss):
    with serving(database, embed=quick) as service:
        session = service.session(PUBLIC)
        session.save_memory(key="plan", content="dog")

        def lose():
            if loss == "deleted":
                session.delete_memory(key="plan")
            elif loss == "replaced":
                session.save_memory(key="plan", content="zebra")
            else:
                service.host().delete_agent(agent_id="alice")
                if loss == "agent erased":
                    erase_all(database)

        losses = iter([lose])

        def embed_late(text):
            for act in losses:
                act()
            return quick(text)

        embed_by(database, embed_late, StopSignal())
        again = service.session(PUBLIC)

        assert keys(again.search_memories(query="dog")) == []
        assert keys(again.list_memories()) == (["plan"] if loss == "replaced" else [])
        assert broken_invariants(database) == []
