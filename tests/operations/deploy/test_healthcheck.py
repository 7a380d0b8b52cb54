"""The health check of the images, by which a container's engine decides whether to restart it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from tests.operations.deploy.containers import DEPLOY
from tests.support.certificates import make as make_certificate


@pytest.fixture
def check() -> ModuleType:
    """The program as a module."""
    loader = SourceFileLoader("healthcheck", str(DEPLOY / "healthcheck.py"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[str]:
    """The address of something that answers by HTTPS, with an authority that has no `keyUsage`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    make_certificate(tmp_path, "ca", "-addext", "basicConstraints=critical,CA:TRUE")
    issued = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=DNS:localhost")
    make_certificate(tmp_path, "server", *issued)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    server = ThreadingHTTPServer(("localhost", 0), Handler)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://localhost:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_it_trusts_each_authority_that_clients_trust(check, gateway, tmp_path, monkeypatch):
    """Also with the defaults of Python 3.13, the base of the Dockerfile."""
    create = ssl.create_default_context

    def strict(cafile: str | None = None) -> ssl.SSLContext:
        context = create(cafile=cafile)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    monkeypatch.setattr(check, "_GATEWAY", gateway)
    monkeypatch.setenv("MUNIMENT_TLS_CA", str(tmp_path / "ca.pem"))

    check.ask_gateway()


def test_it_fails_for_a_certificate_of_another_authority(check, gateway, tmp_path, monkeypatch):
    make_certificate(tmp_path, "other", "-addext", "basicConstraints=critical,CA:TRUE")
    monkeypatch.setattr(check, "_GATEWAY", gateway)
    monkeypatch.setenv("MUNIMENT_TLS_CA", str(tmp_path / "other.pem"))

    with pytest.raises(SystemExit, match="CERTIFICATE_VERIFY_FAILED"):
        check.ask_gateway()
