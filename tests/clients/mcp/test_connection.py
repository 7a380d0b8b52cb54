"""How the server of a model reaches Muniment: TLS with an authority of one's own, or a unix socket."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from muniment.mcp import session_of
from tests.clients.mcp.conftest import talking, talking_over_stdio
from tests.clients.python.scripted import ScriptedServer, serve
from tests.support.certificates import make
from tests.support.examples import TOKEN

WITHOUT_OPENSSL = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    make(tmp_path, "ca", "-addext", "basicConstraints=critical,CA:TRUE")
    make(tmp_path, "server", "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
    return tmp_path


@pytest.fixture
def secured(certificates: Path) -> Iterator[str]:
    """The address of a server that speaks TLS only."""
    pair = ((certificates / "server.key").read_bytes(), (certificates / "server.pem").read_bytes())
    server, port = serve(ScriptedServer(), "127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


@WITHOUT_OPENSSL
@pytest.mark.anyio
async def test_tls_with_an_authority_of_ones_own(secured, certificates):
    async with talking_over_stdio(secured, TOKEN, ca=str(certificates / "ca.pem")) as model:
        assert (await model.does("memory_get", key="tea"))["content"] == "Assam, no sugar"


@pytest.mark.anyio
async def test_a_unix_socket(tmp_path):
    address = f"unix:{tmp_path}/muniment.sock"
    server, _ = serve(ScriptedServer(), address)
    with session_of({"MUNIMENT_ADDRESS": address, "MUNIMENT_TOKEN": TOKEN}) as session:
        async with talking(session) as model:
            assert (await model.does("memory_get", key="tea"))["content"] == "Assam, no sugar"
    server.stop(None).wait()


def test_elsewhere_than_here_it_is_never_in_the_clear(monkeypatch):
    """Without an authority those of gRPC are trusted; whether TLS is spoken is decided by the address alone."""
    made = []
    monkeypatch.setattr("muniment.mcp.connect", lambda address, *, token, tls: made.append((address, tls)))

    for address in ("muniment.example:443", "10.0.0.1:50051", "127.0.0.1:50051", "unix:/run/muniment.sock"):
        session_of({"MUNIMENT_ADDRESS": address, "MUNIMENT_TOKEN": TOKEN})

    assert made == [
        ("muniment.example:443", True),
        ("10.0.0.1:50051", True),
        ("127.0.0.1:50051", False),
        ("unix:/run/muniment.sock", False),
    ]
