"""One embedder embeds for all servers, the lowest level first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from unittest.mock import Mock

import grpc
import pytest

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.ids import TenantNumber
from muniment_server.embedder import queue_metrics
from muniment_server.embedder.main import EmbeddingSchedule, embed_queued_chunks
from muniment_server.embedder.queue_metrics import measure_level
from muniment_server.embedder.remote import embedding_service as remote_embedding
from muniment_server.embedder.remote.configuration import remote_socket
from muniment_server.embedder.remote.embedding_service import RemoteEmbedding
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.process.stop_signal import StopSignal
from muniment_server.search.embeddings import Vector
from muniment_server.telemetry import embedder_metrics as metrics
from muniment_server.telemetry.metrics import REGISTRY
from tests.operations.servers.conftest import Servers, session_of
from tests.support.commands import wait_until
from tests.support.embedders import quick
from tests.support.embedding_server import embedding_server
from tests.support.failures import embeddings_refused
from tests.support.labels import untrusted
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

    def vector(text: str) -> Vector:
        embedded.append(text.partition(": ")[2])
        return quick(text)

    def embed(disk: Disk) -> list[str]:
        embedded.clear()
        embed_queued_chunks(schedule, disk, StopSignal())
        return embedded

    with pools_with_one_away(servers) as pools:
        schedule = EmbeddingSchedule(Databases(servers.placement({}), pools), vector)
        yield embed


@contextmanager
def pools_with_one_away(servers: Servers) -> Iterator[dict[str, RoleDatabase]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(closing(RoleDatabase(conninfo, pool_sizes=SINGLE)))
            for name, conninfo in {
                "a": servers.databases["a"].conninfo,
                "b": servers.databases["b"].conninfo,
                "away": lambda role: servers.databases["a"].conninfo(role).replace("test_", "not_there_"),
            }.items()
        }


def tenant_of_b(servers: Servers) -> TenantNumber:
    """The tenant of the memories that are saved at the server b."""
    with servers.databases["b"].as_owner() as owner:
        (tenant,) = owner.execute("SELECT tenant FROM vault.tenant WHERE name = 'of-b'").fetchone() or (0,)
    return TenantNumber(tenant)


def waiting(servers: Servers) -> list[str]:
    """Where chunks still wait."""
    found = []
    for name, database in servers.databases.items():
        with database.as_owner() as owner:
            for level in (PUBLIC, RESTRICTED):
                if owner.execute(f"SELECT FROM {untrusted(level).role}.meaning WHERE embedder IS NULL").rowcount:
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


@pytest.mark.usefixtures("saved")
def test_what_is_missing_at_a_server_that_was_away_at_the_start_is_found_when_it_is_back(
    servers: Servers, embed: Callable[[Disk], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then, its tenants would find nothing with a new model."""
    embed(Disk(None))
    monkeypatch.setattr(remote_embedding, "_SECONDS_AFTER_ERROR", 0.1)
    monkeypatch.setattr(remote_embedding, "_FIRST_MISSING_SECONDS", 600.0)
    socket = tmp_path / "embedder"
    with (
        embedding_server() as server,
        closing(RoleDatabase(servers.databases["a"].conninfo, pool_sizes=SINGLE)) as a,
        closing(RoleDatabase(servers.databases["b"].conninfo, pool_sizes=SINGLE)) as b,
        servers.databases["b"].as_admin() as admin,
        ExitStack() as stack,
    ):
        admin.execute("ALTER ROLE muniment_public NOLOGIN")
        databases = Databases(servers.placement({tenant_of_b(servers): "b"}), {"a": a, "b": b})
        embedding = RemoteEmbedding(server.config(PUBLIC), server.new_model(), databases, Disk(None))
        stack.enter_context(embedding.running(str(socket)))
        wait_until(Path(remote_socket(str(socket), Label.PUBLIC)).exists, "queries are served")
        admin.execute("ALTER ROLE muniment_public LOGIN")
        wait_until(lambda: len(server.texts) == 2, "the chunks of both are sent")

    assert sorted(server.texts) == ["plan: PUBLIC at a", "plan: PUBLIC at b"]


@pytest.mark.usefixtures("saved")
def test_the_copy_of_a_tenant_that_another_server_has_is_not_sent(
    servers: Servers, embed: Callable[[Disk], list[str]], tmp_path: Path
) -> None:
    """What a move has left behind: where the tenant is served, more may have been deleted."""
    embed(Disk(None))
    with (
        embedding_server() as server,
        closing(RoleDatabase(servers.databases["a"].conninfo, pool_sizes=SINGLE)) as a,
        closing(RoleDatabase(servers.databases["b"].conninfo, pool_sizes=SINGLE)) as b,
    ):
        databases = Databases(servers.placement({tenant_of_b(servers): "a"}), {"a": a, "b": b})
        embedding = RemoteEmbedding(server.config(PUBLIC), server.new_model(), databases, Disk(None))
        with embedding.running(str(tmp_path / "embedder")):
            wait_until(lambda: server.texts, "the chunk of the tenant at a is sent")
            time.sleep(1)

    assert server.texts == ["plan: PUBLIC at a"]


@pytest.fixture
def measure(servers: Servers) -> Iterator[Callable[[dict[str, tuple[int, int]]], None]]:
    """Measure the queue of PUBLIC at two servers, and at one that is away."""
    with pools_with_one_away(servers) as pools:
        databases = Databases(servers.placement({}), pools)
        yield lambda lengths: measure_level(databases, Label.PUBLIC, 7, lengths)


def measured(name: str) -> float:
    found = REGISTRY.get_sample_value(name, {"level": PUBLIC.name})
    assert found is not None
    return found


@pytest.mark.usefixtures("saved")
def test_the_queues_of_the_servers_that_answer_are_measured_while_another_is_away(
    measure: Callable[[dict[str, tuple[int, int]]], None],
) -> None:
    metrics.EMBEDDING_SINCE.labels(PUBLIC.name).set(1)
    lengths: dict[str, tuple[int, int]] = {}
    measure(lengths)

    assert lengths == {"a": (1, 0), "b": (1, 0)}
    assert measured("muniment_embedding_queue") == 2
    assert measured("muniment_embedding_queue_since_timestamp_seconds") == 1


@pytest.mark.parametrize(("last", "is_empty"), [({"away": (3, 4)}, False), ({"away": (0, 0)}, True), ({}, True)])
def test_a_server_that_is_away_keeps_its_queue(
    last: dict[str, tuple[int, int]], is_empty: bool, measure: Callable[[dict[str, tuple[int, int]]], None]
) -> None:
    """Otherwise one that is away now and then would seem to be without a queue each time, and no alert would fire."""
    for since in (metrics.EMBEDDING_SINCE, metrics.REMOTE_SINCE):
        since.labels(PUBLIC.name).set(1)
    measure(dict(last))

    queues = ("muniment_embedding_queue", "muniment_remote_embedding_queue")
    assert [measured(queue) for queue in queues] == [*last.get("away", (0, 0))]
    assert [measured(f"{queue}_since_timestamp_seconds") > 1 for queue in queues] == [is_empty, is_empty]


def test_a_queue_that_cannot_be_measured_is_logged_and_measured_later(
    measure: Callable[[dict[str, tuple[int, int]]], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The thread ended, and the metrics stayed as they were until the embedder was restarted."""
    metrics.EMBEDDING_QUEUE.labels(PUBLIC.name).set(5)
    with monkeypatch.context() as patched:
        patched.setattr(queue_metrics, "queue_length", Mock(side_effect=ValueError))
        measure({"a": (0, 0)})
    assert measured("muniment_embedding_queue") == 5
    assert [line.split("\n")[0] for line in caplog.messages if "queue" in line] == [
        "the PUBLIC queue of a was not measured: ValueError",
        "the PUBLIC queue of b was not measured: ValueError",
    ]

    measure({})
    assert measured("muniment_embedding_queue") == 0
