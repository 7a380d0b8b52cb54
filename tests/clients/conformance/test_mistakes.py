"""A mistake in an address, or about TLS, ends a call at once, with a message that names it."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.clients.conformance.clients import CLIENTS
from tests.clients.conformance.servers import data_folder, serving
from tests.clients.conformance.toolchains import make, not_run
from tests.clients.conformance.transcripts import Broken
from tests.support.certificates import make as make_certificate

pytestmark = pytest.mark.proof

_DEADLINE_MS = 24 * 3600 * 1000
"""A day: a client that retried the call would run until the suite stops it."""
_CLIENTS = [client for client in CLIENTS if client.name in ("go", "typescript", "java", "rust")]
"""Those of Python have tests of their own."""


@pytest.fixture(scope="module")
def encrypted():
    if shutil.which("openssl") is None:
        not_run("TLS", "there is no openssl to make certificates with")
    with data_folder() as folder, serving("tls", folder) as server:
        yield server


@pytest.fixture(scope="module")
def plaintext():
    with data_folder() as folder, serving("plaintext", folder) as server:
        yield server


@pytest.fixture(params=_CLIENTS, ids=lambda client: client.name)
def client(request):
    make(request.param)
    return request.param


def _refusal(client, environment):
    """What the client says, that cannot connect as the environment says."""
    step = {"as": "host", "call": "AgentService.ListAgents", "request": {}, "deadline_ms": _DEADLINE_MS}
    with pytest.raises(Broken) as broken:
        client.play(json.dumps({"scenarios": [{"name": "one call", "steps": [step]}]}), environment)
    return str(broken.value)


def test_plaintext_to_a_port_of_tls(client, encrypted):
    environment = encrypted.environment(encrypted.keys())
    del environment["MUNIMENT_TLS_CA"]

    refusal = _refusal(client, environment)

    assert f"the server at {encrypted.address} expects TLS: turn TLS on by" in refusal


def test_tls_to_a_port_in_plaintext(client, encrypted, plaintext):
    authority = encrypted.environment(encrypted.keys())["MUNIMENT_TLS_CA"]

    refusal = _refusal(client, plaintext.environment(plaintext.keys()) | {"MUNIMENT_TLS_CA": authority})

    assert f"the server at {plaintext.address} does not speak TLS: connect without" in refusal


def test_an_authority_that_is_not_trusted(client, encrypted, tmp_path):
    make_certificate(tmp_path, "other")

    refusal = _refusal(
        client, encrypted.environment(encrypted.keys()) | {"MUNIMENT_TLS_CA": str(tmp_path / "other.pem")}
    )

    assert f"the certificate of {encrypted.address} is signed by an authority that is not trusted: name" in refusal


def test_a_url(client, plaintext):
    environment = plaintext.environment(plaintext.keys())

    refusal = _refusal(client, environment | {"MUNIMENT_ADDRESS": f"http://{plaintext.address}"})

    assert f"an address has no scheme such as http://: give host:port alone, such as {plaintext.address}" in refusal


def test_a_host_without_a_port(client, plaintext):
    refusal = _refusal(client, plaintext.environment(plaintext.keys()) | {"MUNIMENT_ADDRESS": "127.0.0.1"})

    assert "127.0.0.1 has no port: give host:port, such as 127.0.0.1:50051" in refusal
