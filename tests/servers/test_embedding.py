"""One embedder embeds for all servers, the lowest level first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing

import grpc

from muniment_server.domain.classification import Classification
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.runtime.embedder import EmbeddingSchedule, embed_queued_chunks
from muniment_server.runtime.stop_signal import StopSignal
from muniment_server.search.embeddings import Vector
from tests.servers.conftest import Servers, session_of
from tests.support.embedders import quick
from tests.support.services import Caller

PUBLIC, RESTRICTED = Classification.PUBLIC, Classification.RESTRICTED


def test_a_level_of_any_server_comes_before_higher_ones_and_no_server_waits_for_another(
    servers: Servers, served: Callable[..., grpc.Channel]
) -> None:
    embedded: list[str] = []

    def embed(text: str, _: str) -> Vector:
        embedded.append(text.partition(": ")[2])
        return quick(text)

    keys = {name: servers.key(f"of-{name}", name) for name in servers.databases}
    channel = served({int(keys["b"].split("_")[2]): "b"})
    for name, key in keys.items():
        host = Caller(channel, key)
        host.create_agent(agent_id="alice")
        for level in (RESTRICTED, PUBLIC):
            session_of(host, level).save_memory(key="plan", content=f"{level.name} at {name}")

    with ExitStack() as stack:
        pools = {
            name: stack.enter_context(closing(RoleDatabase(conninfo, pool_sizes=SINGLE)))
            for name, conninfo in {
                "a": servers.databases["a"].conninfo,
                "b": servers.databases["b"].conninfo,
                "away": lambda role: servers.databases["a"].conninfo(role).replace("test_", "not_there_"),
            }.items()
        }
        schedule = EmbeddingSchedule(Databases(servers.placement({}), pools), embed)
        embed_queued_chunks(schedule, Disk(None), StopSignal())

    assert sorted(embedded[:2]) == ["PUBLIC at a", "PUBLIC at b"]
    assert sorted(embedded[2:]) == ["RESTRICTED at a", "RESTRICTED at b"]
