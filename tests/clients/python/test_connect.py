"""The way in: addresses, credentials, TLS."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import assert_type

import grpc
import pytest

import muniment
from muniment import TLS, HostClient, SessionClient
from muniment._channel import is_local
from tests.clients.python.scripted import ScriptedServer, serve
from tests.support.examples import HOST_KEY, TOKEN

LOCAL = [
    "127.0.0.1:50051",
    "127.8.8.8:50051",
    "localhost:50051",
    "LocalHost:50051",
    "[::1]:50051",
    "dns:///localhost:50051",
    "dns:///127.0.0.1:50051",
    "unix:/run/muniment.sock",
    "unix:///run/muniment.sock",
    "unix-abstract:muniment",
]
NOT_LOCAL = [
    "muniment.example:443",
    "10.0.0.1:50051",
    "0.0.0.0:50051",
    "[::]:50051",
    "[fe80::1]:50051",
    "127.0.0.1.example:50051",
    "localhost.example:50051",
    "127.0.0.1@example:50051",
    "127.0.0.1:50051\n",
    "127.1:50051",
    "dns://8.8.8.8/localhost:50051",
    "ipv4:127.0.0.1:1,10.0.0.1:1",
    "xds:///localhost",
    "",
]


@dataclass(frozen=True)
class Papers:
    """An authority, and a certificate of it for 127.0.0.1."""

    ca: Path
    certificate: Path
    key: Path


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    folder = tmp_path_factory.mktemp("papers")
    made = Papers(folder / "ca.pem", folder / "certificate.pem", folder / "key.pem")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    subject = ("-subj", "/CN=muniment", "-addext", "subjectAltName=IP:127.0.0.1")
    authority = ("-CA", made.ca, "-CAkey", folder / "ca.key", "-addext", "basicConstraints=CA:FALSE")
    openssl("req", "-x509", *curve, "-subj", "/CN=ca", "-keyout", folder / "ca.key", "-out", made.ca)
    openssl("req", "-x509", *curve, *subject, *authority, "-keyout", made.key, "-out", made.certificate)
    return made


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.fixture(params=[False, True], ids=["server only", "mutual"])
def secured(request: pytest.FixtureRequest, papers: Papers) -> Iterator[tuple[ScriptedServer, str, bool]]:
    pair = (papers.key.read_bytes(), papers.certificate.read_bytes())
    credentials = grpc.ssl_server_credentials([pair], papers.ca.read_bytes(), require_client_auth=request.param)
    scripted = ScriptedServer()
    server, port = serve(scripted, "127.0.0.1:0", credentials)
    yield scripted, f"127.0.0.1:{port}", request.param
    server.stop(None).wait()


def test_the_credential_decides_the_client(running):
    host = muniment.connect(running.address, host_key=HOST_KEY)
    session = muniment.connect(running.address, token=TOKEN)

    assert_type(host, HostClient)
    assert_type(session, SessionClient)
    with host, session:
        host.get_agent("ada")
        session.get_memory("tea")

    sent = [each.metadata["authorization"] for each in running.scripted.asked]
    assert [f"Bearer {HOST_KEY}", f"Bearer {TOKEN}"] == sent


def test_a_unix_socket_is_accepted(connect, tmp_path):
    scripted = ScriptedServer()
    server, _ = serve(scripted, f"unix:{tmp_path}/s")

    with connect(f"unix:{tmp_path}/s", token=TOKEN) as session:
        assert session.get_memory("tea").key == "tea"

    server.stop(None).wait()


@pytest.mark.parametrize("address", LOCAL)
def test_plaintext_stays_on_this_machine(connect, address):
    assert is_local(address)
    connect(address, token=TOKEN).disconnect()


@pytest.mark.parametrize("address", NOT_LOCAL)
def test_plaintext_never_leaves_this_machine(connect, address):
    assert not is_local(address)
    with pytest.raises(ValueError, match=r"tls|address"):
        connect(address, token=TOKEN)


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("address", ["localhost", "127.0.0.1", "[::1]", "dns:///localhost", "muniment.example"])
def test_an_address_without_a_port_is_refused_at_once(connect, address, tls):
    with pytest.raises(ValueError, match=r"has no port: give HOST:PORT"):
        connect(address, token=TOKEN, tls=tls)


@pytest.mark.parametrize("address", ["muniment.example:443", "10.0.0.1:50051", "127.0.0.1:50051"])
def test_tls_may_go_anywhere(connect, address):
    connect(address, token=TOKEN, tls=True).disconnect()


def test_a_proxy_of_the_environment_never_sees_a_plaintext_call(connect, running, monkeypatch):
    """gRPC would send even loopback calls to it, credential and all."""
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("no_grpc_proxy", raising=False)

    with connect(running.address, token=TOKEN) as session:
        assert session.get_memory("tea").key == "tea"


@pytest.mark.parametrize("credentials", [{}, {"host_key": HOST_KEY, "token": TOKEN}, {"token": ""}])
def test_there_is_exactly_one_credential(connect, credentials):
    with pytest.raises(ValueError, match="exactly one credential"):
        connect("127.0.0.1:1", **credentials)


def test_a_credential_needs_an_address(connect):
    with pytest.raises(ValueError, match="address"):
        connect(token=TOKEN)


@pytest.mark.parametrize("damage", ["{}\n", " {}", "{} {}", "{}\x00", "{}é"])
def test_a_damaged_credential_is_refused_without_being_shown(connect, damage):
    with pytest.raises(ValueError, match="visible ASCII") as caught:
        connect("127.0.0.1:1", token=damage.format(TOKEN, TOKEN))

    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("as_bytes", [False, True], ids=["paths", "bytes"])
def test_tls_trusts_the_authority_it_is_given(connect, secured, papers, as_bytes):
    scripted, address, mutual = secured
    read = Path.read_bytes if as_bytes else str
    own = {"certificate": read(papers.certificate), "key": read(papers.key)} if mutual else {}

    with connect(address, token=TOKEN, tls=TLS(ca=read(papers.ca), **own)) as session:
        assert session.get_memory("tea").key == "tea"

    assert f"Bearer {TOKEN}" == scripted.asked[0].metadata["authorization"]


@pytest.mark.parametrize("secured", [False], indirect=True)
def test_the_environment_may_name_an_authority(secured, papers, monkeypatch):
    scripted, address, _ = secured
    monkeypatch.delenv("MUNIMENT_HOST_KEY", raising=False)
    monkeypatch.setenv("MUNIMENT_ADDRESS", address)
    monkeypatch.setenv("MUNIMENT_TOKEN", TOKEN)
    monkeypatch.setenv("MUNIMENT_TLS_CA", str(papers.ca))

    with muniment.connect() as session:
        assert isinstance(session, SessionClient)
        assert session.get_memory("tea").key == "tea"

    assert f"Bearer {TOKEN}" == scripted.asked[0].metadata["authorization"]
    with muniment.connect(tls=False, retries=False) as session:
        assert isinstance(session, SessionClient)
        with pytest.raises(muniment.Unavailable):
            session.get_memory("tea")
    with pytest.raises(ValueError, match="without tls"):
        muniment.connect("muniment.example:443", token=TOKEN)


def test_tls_does_not_trust_others(connect, secured):
    scripted, address, _ = secured

    with (
        connect(address, token=TOKEN, tls=True, retries=False) as session,
        pytest.raises(muniment.Unavailable),
    ):
        session.get_memory("tea")

    assert scripted.asked == []


def test_certificate_and_key_come_together(papers):
    with pytest.raises(ValueError, match="require each other"):
        TLS(certificate=papers.certificate)
    with pytest.raises(ValueError, match="require each other"):
        TLS(key=papers.key)


def test_an_address_without_a_server_is_unavailable(connect):
    with (
        connect("127.0.0.1:1", token=TOKEN, retries=False) as session,
        pytest.raises(muniment.Unavailable) as caught,
    ):
        session.get_memory("tea")

    assert caught.value.reason == ""
