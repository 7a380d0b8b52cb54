"""SIGHUP: other processes take over, with the code and the TLS files of now, and no call fails."""

from __future__ import annotations

import shutil
import signal
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import muniment
import muniment_server
from muniment_server.postgres.migrate import newest_version
from tests.faults.processes import WORKERS, ServerProcess, runs, wait_until
from tests.faults.rounds import Rounds
from tests.support.certificates import make
from tests.support.methods import METHODS
from tests.support.raw_http2 import Unnoticing

_SLOWEST_RELOAD = 240.0
"""Each of two workers leaves once its connections are a minute old."""
_SLOWEST_ROUNDS = 120.0
"""Longer than a call's deadline, so that a call without an answer is what fails the test."""
_LONGER_THAN_A_STOP = 2.0
_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_MIGRATION = "COMMENT ON TABLE vault.agent IS 'of the next version';\n"


@pytest.fixture
def serving() -> Iterator[Callable[..., ServerProcess]]:
    """Start a server with the options given."""
    servers: list[ServerProcess] = []

    def serve(*options: str, code: Path | None = None) -> ServerProcess:
        servers.append(ServerProcess(*options, code=code))
        servers[-1].start()
        return servers[-1]

    yield serve
    for server in servers:
        print(server.log[-10_000:])
        server.destroy()


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A directory with a copy of the server's code."""
    shutil.copytree(Path(muniment_server.__file__).parent, tmp_path / "muniment_server")
    return tmp_path


def _upgrade(code: Path, migration: str) -> None:
    """Put the code of the next version in the place of that which runs."""
    folder = code / "muniment_server" / "postgres" / "migrations"
    (folder / f"{newest_version() + 1:04}_later.sql").write_text(migration)


def _schema_version(server: ServerProcess) -> int:
    with server.as_owner() as owner:
        return int(owner.execute("SELECT max(version) AS version FROM vault.migration").fetchall()[0].version)


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """A directory with an authority, and a pair of server.pem and server.key that it signed."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    make(tmp_path, "ca", "-addext", "basicConstraints=critical,CA:TRUE")
    _renew(tmp_path)
    return tmp_path


def _renew(certificates: Path) -> None:
    make(certificates, "server", "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")


def _processes(server: ServerProcess) -> set[int]:
    return {*server.workers(), *server.embedders()}


def _reload(server: ServerProcess, *, ends: str = "INFO reloaded", seconds: float = 60.0) -> float:
    """Reload, and wait until the log says how it ended."""
    before = server.log.count(ends)
    server.send(signal.SIGHUP)
    return wait_until(lambda: server.log.count(ends) > before, "the reload ends", seconds=seconds)


@pytest.mark.proof
def test_renewed_certificates_are_used_and_invalid_ones_change_nothing(
    serving: Callable[..., ServerProcess], certificates: Path
) -> None:
    pair = (certificates / "server.pem", certificates / "server.key")
    server = serving("--tls-cert", str(pair[0]), "--tls-key", str(pair[1]))
    first, begun = _served_certificate(server), _processes(server)

    valid_key = pair[1].read_text()
    pair[1].write_text("no key")
    _reload(server, ends="the reload failed")
    assert (_served_certificate(server), _processes(server)) == (first, begun)
    assert "are not a certificate and its key" in server.log

    pair[1].write_text(valid_key)
    _renew(certificates)
    _reload(server)
    assert _served_certificate(server) == pair[0].read_text().strip() != first
    assert len(_processes(server)) == len(begun)
    assert not _processes(server) & begun
    with muniment.connect(server.address, host_key=server.host_key, tls=muniment.TLS(certificates / "ca.pem")) as host:
        assert host.create_agent("alice").agent_id == "alice"


def test_a_new_worker_whose_gate_is_closed_does_not_serve(server: ServerProcess) -> None:
    begun = server.workers()
    with server.as_owner() as owner:
        owner.execute("GRANT SELECT ON muniment_restricted.item TO muniment_public")
    server.send(signal.SIGHUP)
    listening = []

    def has_failed() -> bool:
        listening.append(server.listening())
        return "the reload failed" in server.log

    wait_until(has_failed, "the reload fails")
    assert "the gate is closed: the worker to replace goes on" in server.log
    assert server.workers() == begun
    assert set(listening) == {WORKERS}


@pytest.mark.proof
def test_an_upgrade_migrates_first_if_the_running_workers_can_go_on(
    serving: Callable[..., ServerProcess], code: Path
) -> None:
    server = serving(code=code)
    begun, version = _processes(server), newest_version()

    _upgrade(code, _MIGRATION)
    _reload(server, ends="the reload failed")
    assert "stop and start the server" in server.log
    assert (_schema_version(server), _processes(server)) == (version, begun)

    _upgrade(code, f"-- oldest server: {version}\n{_MIGRATION}")
    _reload(server)
    assert _schema_version(server) == version + 1
    assert not _processes(server) & begun
    with muniment.connect(server.address, host_key=server.host_key) as host:
        assert host.create_agent("alice").agent_id == "alice"


@pytest.mark.proof
def test_a_worker_that_leaves_serves_callers_that_do_not_know(server: ServerProcess) -> None:
    """And SIGTERM stops a server that reloads."""
    connections = [Unnoticing(server.address) for _ in range(10)]
    assert all(connection.is_answered(_HEALTH_CHECK) for connection in connections)
    server.send(signal.SIGHUP)
    server.send(signal.SIGHUP)
    wait_until(lambda: "no new connections" in server.log, "a worker leaves")
    time.sleep(_LONGER_THAN_A_STOP)
    assert all(connection.is_answered(_HEALTH_CHECK) for connection in connections)

    every = _processes(server)
    assert len(every) > WORKERS
    assert server.terminate() == 0
    assert [pid for pid in every if runs(pid)] == []
    for connection in connections:
        connection.close()


def _served_certificate(server: ServerProcess) -> str:
    host, _, port = server.address.rpartition(":")
    return ssl.get_server_certificate((host, int(port))).strip()


@pytest.mark.proof
@pytest.mark.sampled
@pytest.mark.parametrize("what", ["on a unix socket", "upgrade"])
def test_under_load_no_call_fails_and_nothing_is_written_twice(
    what: str, serving: Callable[..., ServerProcess], code: Path
) -> None:
    socket = f"unix:{code}/socket"
    server = serving(*(["--listen", socket] if what == "on a unix socket" else []), code=code)
    rounds = Rounds(socket if what == "on a unix socket" else server.address, server.host_key)
    begun = _processes(server)
    with rounds.running():
        wait_until(lambda: rounds.rounds["_bare"] > 10, "rounds before")
        if what == "upgrade":
            _upgrade(code, f"-- oldest server: {newest_version()}\n{_MIGRATION}")
        took = _reload(server, seconds=_SLOWEST_RELOAD)
        before = rounds.rounds["_bare"]
        wait_until(lambda: rounds.wrong or rounds.rounds["_bare"] > before + 6, "rounds after", seconds=_SLOWEST_ROUNDS)

    print(f"{what}: a reload of {took:.0f} s: {rounds.called.total()} calls of bare stubs, {dict(rounds.rounds)}")
    assert rounds.wrong == []
    assert [method for method in METHODS if method not in rounds.called] == []
    assert not _processes(server) & begun
