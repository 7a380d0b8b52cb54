"""A certificate that is replaced while a gateway runs, as cert-manager and Kubernetes replace it."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.operations.http.gateways import Gateway
from tests.support.commands import wait_until

_OFTEN = "from muniment_http import listening; listening._RENEWAL_SECONDS = 0.2; "


class _WithTls(Gateway):
    """A gateway with the certificate of a folder."""

    def __init__(self, server: str, folder: Path) -> None:
        self.files = folder
        options = ("--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "tls.key"))
        super().__init__(server, *options, before=_OFTEN)

    def _listens(self) -> bool:
        try:
            return bool(self.shown())
        except OSError:
            return False

    def shown(self) -> str:
        """The certificate that it shows."""
        return ssl.get_server_certificate(("127.0.0.1", self.port), timeout=10)


def _write(folder: Path) -> str:
    """Write a new certificate and its key into *folder*; return the certificate."""
    folder.mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-keyout", "tls.key", "-out", "tls.crt"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return (folder / "tls.crt").read_text()


def _link(mounted: Path, folder: Path) -> None:
    """Show *folder* at *mounted*, as the kubelet does: by a link that it replaces."""
    coming = mounted.with_name("coming")
    coming.symlink_to(folder)
    coming.rename(mounted)


@pytest.fixture
def mounted(tmp_path):
    _write(tmp_path / "first")
    _link(tmp_path / "tls", tmp_path / "first")
    return tmp_path / "tls"


def test_new_connections_get_the_renewed_certificate_and_a_request_under_way_is_answered(dev, mounted, tmp_path):
    first = (mounted / "tls.crt").read_text()
    second = _write(tmp_path / "second")
    with _WithTls(dev.address, mounted) as gateway:
        assert gateway.shown() == first
        body = b'{"page_size": 1}'
        with _connection(gateway) as slow:
            slow.sendall(
                b"POST /muniment.v1.AgentService/ListAgents HTTP/1.1\r\nhost: localhost\r\n"
                b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
            )
            _link(mounted, tmp_path / "second")
            for file in (tmp_path / "first").iterdir():
                file.unlink()
            wait_until(
                lambda: {gateway.shown() for _ in range(20)} == {second}, "it shows the renewed certificate alone"
            )
            slow.sendall(body)
            answer = http.client.HTTPResponse(slow)
            answer.begin()

            assert (answer.status, b"unauthenticated" in answer.read()) == (401, True)


def _connection(gateway: Gateway) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", gateway.port), timeout=30))


def test_files_that_do_not_belong_together_change_nothing_until_they_do(dev, mounted, tmp_path):
    first = (mounted / "tls.crt").read_text()
    second = _write(tmp_path / "second")
    with _WithTls(dev.address, mounted) as gateway:
        (mounted / "tls.crt").write_text(second)
        with pytest.raises(AssertionError):
            wait_until(lambda: gateway.shown() != first, "never", seconds=3)
        (mounted / "tls.key").write_bytes((tmp_path / "second" / "tls.key").read_bytes())
        wait_until(lambda: gateway.shown() == second, "it shows the renewed certificate")
