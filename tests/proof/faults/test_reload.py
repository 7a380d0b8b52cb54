"""SIGHUP reads files again; certificates that are renewed are used at once."""

from __future__ import annotations

import shutil
import signal
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

import muniment
from tests.proof.faults.processes import ServerProcess, running, wait_until
from tests.support.certificates import make

pytestmark = pytest.mark.proof


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """A directory with an authority, and a pair of server.pem and server.key that it signed."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    make(tmp_path, "ca", "-addext", "basicConstraints=critical,CA:TRUE")
    _renew(tmp_path)
    return tmp_path


@pytest.fixture
def server(certificates: Path) -> Iterator[ServerProcess]:
    """A server that uses them."""
    pair = ("--tls-cert", str(certificates / "server.pem"), "--tls-key", str(certificates / "server.key"))
    with running(ServerProcess(*pair, words_alone=True)) as server:
        yield server


def _renew(certificates: Path) -> None:
    make(certificates, "server", "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")


def _reload(server: ServerProcess, *, ends: str) -> None:
    """Reload, and wait until the log says how it ended."""
    before = server.log.count(ends)
    server.send(signal.SIGHUP)
    wait_until(lambda: server.log.count(ends) > before, "the reload ends")


def test_renewed_certificates_are_used_and_invalid_ones_change_nothing(
    server: ServerProcess, certificates: Path
) -> None:
    """By the processes that serve, over the connections that are opened from then on."""
    certificate, key = certificates / "server.pem", certificates / "server.key"
    first, begun, valid_key = _served_certificate(server), server.workers(), key.read_text()
    trusting = muniment.TLS(certificates / "ca.pem")
    with muniment.connect(server.address, host_key=server.host_key, tls=trusting) as before:
        before.create_agent("alice")

        key.write_text("no key")
        _reload(server, ends="the reload failed; nothing changes")
        assert "are not a certificate and its key" in server.log
        assert {_served_certificate(server) for _ in range(20)} == {first}
        assert "the certificates of before stay in use" in server.log

        key.write_text(valid_key)
        _renew(certificates)
        _reload(server, ends="INFO reloaded")
        assert {_served_certificate(server) for _ in range(20)} == {certificate.read_text().strip()} != {first}
        assert server.workers() == begun
        with muniment.connect(server.address, host_key=server.host_key, tls=trusting) as host:
            assert host.get_agent("alice") == before.get_agent("alice")


def _served_certificate(server: ServerProcess) -> str:
    host, _, port = server.address.rpartition(":")
    return ssl.get_server_certificate((host, int(port))).strip()
