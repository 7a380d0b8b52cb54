"""One embedder embeds for all servers, the lowest level first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import grpc
import pytest

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
from tests.support.failures import embeddings_refused
from tests.support.services import Caller

PUBLIC, RESTRICTED = Classification.PUBLIC, Classification.RESTRICTED


@pytest.fixture
def saved(servers: Servers, served: Callable[..., grpc.Channel]) -> None:
    """A memory at each of two levels of each server."""
    keys = {name: servers.key(f"of-{name}", name) for name in servers.databases}
    channel = served({int(keys["b"].split("_")[2]): "b"})
    for name, key in keys.items():
        host = Caller(channel, key)
        host.create_agent(agent_id="alice")
        for level in (RESTRICTED, PUBLIC):
            session_of(host, level).save_memory(key="plan", content=f"{level.name} at {name}")


@pytest.fixture
def embed(servers: Servers) -> Iterator[Callable[[Disk], list[str]]]:
    """Embed for two servers, and one that is away, until there is nothing to do now. Returns the texts, in order."""
    embedded: list[str] = []

    def vector(text: str, _: str) -> Vector:
        embedded.append(text.partition(": ")[2])
        return quick(text)

    def embed(disk: Disk) -> list[str]:
        embedded.clear()
        embed_queued_chunks(schedule, disk, StopSignal())
        return embedded

    with ExitStack() as stack:
        pools = {
            name: stack.enter_context(closing(RoleDatabase(conninfo, pool_sizes=SINGLE)))
            for name, conninfo in {
                "a": servers.databases["a"].conninfo,
                "b": servers.databases["b"].conninfo,
                "away": lambda role: servers.databases["a"].conninfo(role).replace("test_", "not_there_"),
            }.items()
        }
        schedule = EmbeddingSchedule(Databases(servers.placement({}), pools), vector)
        yield embed


def waiting(servers: Servers) -> list[str]:
    """Where chunks still wait."""
    found = []
    for name, database in servers.databases.items():
        with database.as_owner() as owner:
            for level in (PUBLIC, RESTRICTED):
                if owner.execute(f"SELECT FROM {level.role}.meaning WHERE embedder IS NULL").rowcount:
                    found.append(f"{level.name} at {name}")
    return found


@pytest.mark.usefixtures("saved")
def test_a_level_of_any_server_comes_before_higher_ones_and_no_server_waits_for_another(
    embed: Callable[[Disk], list[str]],
) -> None:
    embedded = embed(Disk(None))

    assert sorted(embedded[:2]) == ["PUBLIC at a", "PUBLIC at b"]
    assert sorted(embedded[2:]) == ["RESTRICTED at a", "RESTRICTED at b"]


@pytest.mark.usefixtures("saved")
def test_a_failed_statement_of_one_level_pauses_no_other_level_of_its_server(
    servers: Servers, embed: Callable[[Disk], list[str]]
) -> None:
    with embeddings_refused(servers.databases["b"], "55P03", level=PUBLIC):
        embed(Disk(None))

    assert waiting(servers) == ["PUBLIC at b"]


@pytest.mark.usefixtures("saved")
def test_a_full_disk_of_one_server_stops_no_other_server_and_is_reported(
    servers: Servers, embed: Callable[[Disk], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(None)
    with embeddings_refused(servers.databases["b"], "53100", level=PUBLIC):
        embed(disk)

    assert waiting(servers) == ["PUBLIC at b", "RESTRICTED at b"]
    assert "chunks of b stay queued: its disk is full" in caplog.messages
    assert not disk.is_full
