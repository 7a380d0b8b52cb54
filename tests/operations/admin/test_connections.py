"""How many connections a server opens, and what several servers of one database may open together."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import muniment
from muniment import Classification
from muniment_server.domain.classification import Label
from muniment_server.postgres import roles
from muniment_server.runtime.configuration import ConfigError, DatabaseConfig, ServerConfig
from tests.support.commands import SYSTEM_POSTGRES, Server, line_of, run, run_process
from tests.support.external_postgres import admin_url

DATABASE = DatabaseConfig(Path("unused"))


@pytest.mark.parametrize("workers", [1, 2, 4, 9, 16, 64])
@pytest.mark.parametrize("threads", [1, 4, 32])
def test_a_server_keeps_to_the_connections_it_may_open(workers: int, threads: int) -> None:
    """And each worker has one for each role, however many there are."""
    config = ServerConfig(DATABASE, workers=workers, threads=threads)

    assert config.connections <= max(90, 14 * workers + 16)
    assert set(config.worker_connections) == set(roles.SERVING)
    assert min(config.worker_connections.values()) >= 1
    assert config.worker_connections[roles.ERASER] == 2, "calls that erase do not stop the erasing of deleted agents"
    assert config.worker_connections[roles.AUDITOR] >= 2, "the sealer does not stop hosts from listing audit events"
    parts = {config.worker_connections[role] for role in roles.LABELS if role not in roles.OF_TRUSTED}
    assert len(parts) == 1, "each untrusted label has the same part"
    trusted = {config.worker_connections[role] for role in roles.OF_TRUSTED}
    assert len(trusted) == 1
    assert trusted <= set(range(1, max(parts) + 1))


def test_with_enough_connections_each_thread_has_its_own() -> None:
    config = ServerConfig(DATABASE, workers=2, max_connections=200)

    assert config.worker_connections == config.limits.connections(1000)
    assert {config.worker_connections[label.role] for label in Label} == {7}


def test_too_few_connections_are_refused() -> None:
    with pytest.raises(ConfigError, match="4 workers need at least 72 connections: raise --max-connections"):
        ServerConfig(DATABASE, workers=4, max_connections=71)
    assert ServerConfig(DATABASE, workers=4, max_connections=72).connections <= 72


@pytest.mark.skipif(not SYSTEM_POSTGRES, reason="NO SYSTEM POSTGRES in /usr/lib/postgresql: not tested")
def test_two_servers_that_may_exhaust_the_database_are_warned_of(
    serving: Callable[..., Server], folder: Path, url: str, passfile: Path
) -> None:
    """And the first serves many calls at once with the fewest connections."""
    options = ("--database-url", url, "--passfile", str(passfile), "--workers", "1")
    small = serving(*options, "--max-connections", "30")
    assert "together" not in small.errors.read_text()
    as_admin = {"MUNIMENT_DATABASE_URL": admin_url(url)}
    key = line_of(
        run(folder, "host-key", "create", "--tenant", "few", "--ceiling", "restricted", "--quiet", **as_admin)
    )
    with muniment.connect(small.address, host_key=key, retries=False) as host:
        host.create_agent("alice")
        sessions = [host.open_session("alice", level) for level in Classification]
        with ThreadPoolExecutor(16) as threads:
            saved = list(threads.map(lambda n: sessions[n % 4].save_memory(f"{n}", "text"), range(100)))
    assert len(saved) == 100

    large = serving(*options, "--max-connections", "90", "--threads", "20")

    assert "2 servers may open " in large.errors.read_text()
    assert "2 servers may open " in run_process(folder, "doctor", *options[:4]).stdout
