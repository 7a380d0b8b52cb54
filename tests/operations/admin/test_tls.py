"""TLS and mutual TLS, with certificates made for the test."""

from __future__ import annotations

import errno
import io
import json
import shutil
import socket

import pytest

import muniment
from muniment_server.runtime.child_log import ChildLog
from tests.support.certificates import make
from tests.support.commands import run, run_process, wait_until

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Pairs of authority, server and client: `NAME.pem` and `NAME.key`."""
    place = tmp_path_factory.mktemp("certificates")
    make(place, "ca", "-addext", "basicConstraints=critical,CA:TRUE")
    for name in ("server", "client"):
        make(place, name, "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
    return place


def pair(certificates):
    return ("--tls-cert", str(certificates / "server.pem"), "--tls-key", str(certificates / "server.key"))


def client(server, data_dir, tls):
    key = json.loads((data_dir / "development.json").read_text())["host_key"]
    return muniment.connect(server.address, host_key=key, tls=tls, timeout=3)


@pytest.fixture
def served(serving, data_dir):
    """Serve in development with the options given."""

    def serve(*options):
        server = serving("--data-dir", ".muniment", "--dev", "--workers", "1", *options)
        server.read_to_the_last_line()
        return server

    return serve


def test_tls_is_used_on_every_address(served, data_dir, certificates, folder):
    server = served(*pair(certificates), "--listen", "0.0.0.0:0")
    port = server.address.rpartition(":")[2]
    trusting = {"MUNIMENT_TLS_CA": str(certificates / "ca.pem"), "MUNIMENT_ADDRESS": f"127.0.0.1:{port}"}
    key = json.loads((data_dir / "development.json").read_text())["host_key"]

    assert run(folder, "agent", "create", "alice", MUNIMENT_HOST_KEY=key, **trusting).returncode == 0
    trusting["MUNIMENT_TLS_CA"] = str(certificates / "client.pem")
    distrusted = run(folder, "agent", "list", MUNIMENT_HOST_KEY=key, **trusting)
    assert (distrusted.returncode, distrusted.stdout) == (1, "")
    assert "Traceback" not in distrusted.stderr


def test_mutual_tls_requires_a_certificate_from_the_caller(served, data_dir, certificates):
    server = served(*pair(certificates), "--tls-client-ca", str(certificates / "ca.pem"))
    ca, own, key = (certificates / name for name in ("ca.pem", "client.pem", "client.key"))

    with client(server, data_dir, muniment.TLS(ca, own, key)) as host:
        assert host.create_agent("alice").agent_id == "alice"
    with client(server, data_dir, muniment.TLS(ca)) as stranger, pytest.raises(muniment.Unavailable):
        list(stranger.list_agents())


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (("--tls-cert", "{}/server.pem", "--tls-key", "{}/client.key"), "certificate and its key"),
        (("--tls-cert", "{}/server.key", "--tls-key", "{}/server.key"), "certificate and its key"),
        (
            ("--tls-cert", "{}/server.pem", "--tls-key", "{}/server.key", "--tls-client-ca", "{}/client.key"),
            "authority of the callers",
        ),
    ],
)
def test_mismatched_files_are_refused_before_anything_starts(folder, certificates, options, advice):
    filled = [option.format(certificates) for option in options]
    done = run_process(folder, "serve", "--listen", "0.0.0.0:0", "--data-dir", "none", *filled)
    assert done.returncode == 1
    assert advice in done.stderr
    assert not (folder / "none").exists()


def test_a_handshake_that_fails_has_a_line_and_repeats_are_summed_up(served, certificates):
    """gRPC's own lines are nowhere: they may quote what was sent."""
    server = served(*pair(certificates), "--tls-client-ca", str(certificates / "ca.pem"))
    host, _, port = server.address.rpartition(":")
    for _ in range(5):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"CANARY in the clear\n" * 10)
            connection.recv(1000)

    wait_until(lambda: "TLS handshake failed again" in server.errors.read_text(), "repeats are reported")
    log = server.errors.read_text()
    assert log.count("TLS handshake failed cause=WRONG_VERSION_NUMBER") == 1
    assert "TLS handshake failed again cause=WRONG_VERSION_NUMBER times=4" in log
    assert ".cc:" not in log
    assert "CANARY" not in log


def test_what_else_a_worker_writes_is_passed_on(tmp_path):
    onto = io.StringIO()
    lines = ["Traceback\n", "I1123 23:18:12.887150   11546 other.cc:3] CANARY\n", "Fatal Python error\n"]
    (tmp_path / "stream").write_text("".join(lines))
    stream = (tmp_path / "stream").open()
    ChildLog(stream, onto)

    wait_until(lambda: stream.closed, "the stream has been read")
    assert onto.getvalue() == "Traceback\nFatal Python error\n"


def test_a_line_for_which_the_disk_has_no_room_does_not_end_the_log(tmp_path):
    class Log(io.StringIO):
        def write(self, line: str) -> int:
            if "too much" in line:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(line)

    onto = Log()
    (tmp_path / "stream").write_text("one\ntoo much\ntwo\n")
    stream = (tmp_path / "stream").open()
    ChildLog(stream, onto)

    wait_until(lambda: stream.closed, "the stream has been read")
    assert onto.getvalue() == "one\ntwo\n"
