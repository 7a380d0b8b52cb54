"""A mistake in the address or about TLS is reported as what it is, by both clients, against real servers."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

import muniment
from muniment import TLS, NewPassage, TLSMismatch, aio
from muniment.errors import REMEDIES
from tests.clients.python.scripted import ScriptedServer, error_info, serve, status
from tests.support.certificates import make
from tests.support.examples import TOKEN

WITHOUT_A_PORT = "has no port: give HOST:PORT, such as 127.0.0.1:50051, or unix:PATH"


@dataclass(frozen=True)
class Servers:
    """A server of each kind."""

    plaintext: str
    tls: str
    mutual: str


class Papers:
    """An authority, and a certificate by it for 127.0.0.1."""

    def __init__(self, folder: Path, *options: str) -> None:
        make(folder, "ca")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=CA:FALSE")
        make(folder, "server", *signed, "-addext", "subjectAltName=IP:127.0.0.1", *options)
        self.ca = folder / "ca.pem"
        self.pair = ((folder / "server.key").read_bytes(), (folder / "server.pem").read_bytes())


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def servers(papers: Papers) -> Iterator[Servers]:
    kinds = (
        None,
        grpc.ssl_server_credentials([papers.pair]),
        grpc.ssl_server_credentials([papers.pair], papers.ca.read_bytes(), require_client_auth=True),
    )
    running = [serve(ScriptedServer(), "127.0.0.1:0", credentials) for credentials in kinds]
    yield Servers(*(f"127.0.0.1:{port}" for _, port in running))
    for server, _ in running:
        server.stop(None).wait()


Case = tuple[str, Callable[[Servers], str], Callable[[Papers], bool | TLS], str]

CASES: dict[str, Case] = {
    "plaintext to TLS": ("tls_expected", lambda servers: servers.tls, lambda _: False, "{} expects TLS"),
    "plaintext to mutual TLS": ("tls_expected", lambda servers: servers.mutual, lambda _: False, "{} expects TLS"),
    "TLS to plaintext": (
        "no_tls",
        lambda servers: servers.plaintext,
        lambda papers: TLS(ca=papers.ca),
        "{} does not use TLS",
    ),
    "an unknown authority": (
        "unknown_authority",
        lambda servers: servers.tls,
        lambda _: True,
        "the certificate of {} is signed by an authority that is not trusted here",
    ),
    "another name": (
        "other_name",
        lambda servers: servers.tls.replace("127.0.0.1", "localhost"),
        lambda papers: TLS(ca=papers.ca),
        "the certificate of {} is for other names",
    ),
    "no certificate of the client": (
        "certificate_expected",
        lambda servers: servers.mutual,
        lambda papers: TLS(ca=papers.ca),
        "{} expects a certificate of the client",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_about_tls_says_at_once_what_is_wrong_and_what_to_do(connect, servers, papers, case, monkeypatch):
    """At once: a second attempt would be too late for this test."""
    monkeypatch.setattr("muniment.retries.FIRST_PAUSE", 600)
    monkeypatch.setattr("muniment.retries.LONGEST_PAUSE", 600)
    mismatch, server, tls, what = CASES[case]
    address = server(servers)

    with connect(address, token=TOKEN, tls=tls(papers), timeout=3600) as session:
        for call in (lambda: session.get_memory("tea"), lambda: session.import_passages([NewPassage("booked")])):
            with pytest.raises(TLSMismatch) as caught:
                call()

            assert caught.value.mismatch == mismatch
            assert caught.value.message == what.format(address)
            assert str(caught.value) == f"UNAVAILABLE: {caught.value.message}: {REMEDIES[mismatch]}"
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_certificate_that_is_no_good_for_servers_is_said_to_be(connect, tmp_path):
    """So would be an expired one, with another reason of gRPC's."""
    unfit = Papers(tmp_path, "-addext", "extendedKeyUsage=clientAuth")
    server, port = serve(ScriptedServer(), "127.0.0.1:0", grpc.ssl_server_credentials([unfit.pair]))

    with (
        connect(f"127.0.0.1:{port}", token=TOKEN, tls=TLS(ca=unfit.ca), retries=False) as session,
        pytest.raises(TLSMismatch, match=r"is not accepted, unsupported certificate purpose: give the server another"),
    ):
        session.get_memory("tea")

    server.stop(None).wait()


def test_a_server_that_expects_tls_is_known_over_ipv6_too(connect, papers):
    """gRPC's message has the address as a URI, with its brackets escaped."""
    server, port = serve(ScriptedServer(), "[::1]:0", grpc.ssl_server_credentials([papers.pair]))

    with (
        connect(f"[::1]:{port}", token=TOKEN, retries=False) as session,
        pytest.raises(TLSMismatch, match=rf"\[::1\]:{port} expects TLS"),
    ):
        session.get_memory("tea")

    server.stop(None).wait()


def test_what_the_server_says_is_not_taken_for_a_mistake(server, session):
    words = "WRONG_VERSION_NUMBER"
    server.script("EditBlock", status(grpc.StatusCode.UNAVAILABLE, error_info("UNAVAILABLE"), message=words))

    with pytest.raises(muniment.Unavailable) as caught:
        session.append_to_block("personality", "dry")

    assert not isinstance(caught.value, TLSMismatch)


def test_a_file_of_authorities_needs_a_certificate(connect, tmp_path):
    key = tmp_path / "ca.key"
    key.write_text("-----BEGIN PRIVATE KEY-----")

    with pytest.raises(ValueError, match=r"^ca contains no certificate in PEM$"):
        connect("127.0.0.1:1", token=TOKEN, tls=TLS(ca=key.read_bytes()))
    with pytest.raises(ValueError, match=rf"^{re.escape(str(key))} contains no certificate in PEM$"):
        connect("127.0.0.1:1", token=TOKEN, tls=TLS(ca=key))


@pytest.mark.parametrize("tls", [False, True])
def test_where_no_server_listens_it_is_no_mistake_about_tls(connect, tls):
    with (
        connect("127.0.0.1:1", token=TOKEN, tls=tls, retries=False) as session,
        pytest.raises(muniment.Unavailable, match="Connection refused") as caught,
    ):
        session.get_memory("tea")

    assert not isinstance(caught.value, TLSMismatch)


@pytest.mark.parametrize("connect_to", [muniment.connect, aio.connect], ids=["synchronous", "asyncio"])
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("http://127.0.0.1:52000", "an address has no http://: give HOST:PORT, such as 127.0.0.1:52000"),
        (
            "HTTPS://muniment.example:443/v1",
            "an address has no HTTPS://: give HOST:PORT, such as muniment.example:443, and tls",
        ),
        ("https://me:secret@muniment.example", "an address has no https://: give HOST:PORT, such as 127.0.0.1:50051, "),
        ("grpc://localhost", "an address has no grpc://: give HOST:PORT, such as localhost"),
        ("127.0.0.1", f"127.0.0.1 {WITHOUT_A_PORT}"),
        ("muniment.example", f"muniment.example {WITHOUT_A_PORT}"),
        ("127.0.0.1:0", "127.0.0.1:0 has no port between 1 and 65535"),
        ("127.0.0.1:80000", "127.0.0.1:80000 has no port between 1 and 65535"),
        ("::1:50051", "the address ::1:50051 needs brackets: give [HOST]:PORT, such as [::1]:50051"),
    ],
)
def test_a_mistake_in_the_address_is_found_at_once(connect_to: Any, address, tls, what):
    with pytest.raises(ValueError, match=re.escape(what)) as caught:
        connect_to(address, token=TOKEN, tls=tls)

    assert "secret" not in str(caught.value)
