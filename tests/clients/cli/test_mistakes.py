"""A mistake about TLS is reported as what it is, by the command, and never as a server that is not running."""

from __future__ import annotations

import re

import grpc
import pytest

from tests.clients.python.scripted import ScriptedServer, serve
from tests.support.certificates import make
from tests.support.commands import run, run_process


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """The folder of an authority, and the addresses of a plaintext, a TLS and a mutual TLS server."""
    papers = tmp_path_factory.mktemp("papers")
    make(papers, "ca")
    make(papers, "server", "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
    pair = ((papers / "server.key").read_bytes(), (papers / "server.pem").read_bytes())
    kinds = (
        None,
        grpc.ssl_server_credentials([pair]),
        grpc.ssl_server_credentials([pair], (papers / "ca.pem").read_bytes(), require_client_auth=True),
    )
    running = [serve(ScriptedServer(), "127.0.0.1:0", credentials) for credentials in kinds]
    yield papers, *(port for _, port in running)
    for server, _ in running:
        server.stop(None).wait()


CASES = {
    "plaintext to TLS": ("127.0.0.1:{1}", (), "expects TLS", "give --tls, or --tls-ca FILE if the authority"),
    "TLS to plaintext": ("127.0.0.1:{0}", ("--tls",), "does not use TLS", "omit --tls and --tls-ca, and unset"),
    "unknown authority": ("127.0.0.1:{1}", ("--tls",), "an authority that is not trusted here", "--tls-ca FILE (MUNI"),
    "other name": ("localhost:{1}", ("--tls-ca", "ca.pem"), "is for other names", "connect by a name or address that"),
    "mutual TLS": (
        "127.0.0.1:{2}",
        ("--tls-ca", "ca.pem"),
        "expects a certificate",
        "give --tls-cert FILE and --tls-k",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_about_tls_says_what_is_wrong_and_which_option_helps(servers, monkeypatch, case):
    monkeypatch.setattr("muniment.retries.FIRST_PAUSE", 60)  # nothing is tried again
    papers, *ports = servers
    address, options, what, hint = CASES[case]
    given = {"MUNIMENT_ADDRESS": address.format(*ports), "MUNIMENT_HOST_KEY": "mun_h_1_x"}

    failed = run(papers, "agent", "list", *options, **given)

    assert (failed.returncode, failed.stdout) == (1, "")
    message, advice = failed.stderr.splitlines()
    assert message.startswith("Error: UNAVAILABLE: ")
    assert what in message
    assert hint in advice
    assert "is it running" not in failed.stderr


def test_grpc_writes_nothing_of_its_own(servers):
    """Seen from outside. A mistake about TLS is said at once."""
    papers, plaintext, *_ = servers
    given = {"MUNIMENT_ADDRESS": f"127.0.0.1:{plaintext}", "MUNIMENT_HOST_KEY": "mun_h_1_x"}

    failed = run_process(papers, "agent", "list", "--tls", **given)

    message, advice = failed.stderr.splitlines()
    assert message == f"Error: UNAVAILABLE: 127.0.0.1:{plaintext} does not use TLS"
    assert advice.startswith("  omit --tls")


def test_a_name_that_does_not_exist_is_said_not_to(tmp_path, monkeypatch):
    monkeypatch.setattr("muniment.retries.FIRST_PAUSE", 60)
    given = {"MUNIMENT_ADDRESS": "no-such-name.invalid:443", "MUNIMENT_HOST_KEY": "mun_h_1_x"}

    failed = run(tmp_path, "agent", "list", "--tls", **given)

    assert "there is no such name: correct MUNIMENT_ADDRESS, or --address" in failed.stderr
    assert "is it running" not in failed.stderr


def test_where_no_server_listens_a_command_waits_two_seconds(tmp_path):
    given = {"MUNIMENT_ADDRESS": "127.0.0.1:1", "MUNIMENT_HOST_KEY": "mun_h_1_x"}

    failed = run_process(tmp_path, "agent", "list", **given)

    waiting, message, advice = failed.stderr.splitlines()
    assert re.fullmatch(r"no connection to the server yet: trying for [12] s more", waiting)
    assert message.startswith("Error: UNAVAILABLE: failed to connect")
    assert advice.startswith("  is it running? start it")
