"""Every client plays every scenario, and all see the same."""

from __future__ import annotations

import shutil

import pytest

from tests.clients.conformance import scenarios
from tests.clients.conformance.clients import CLIENTS
from tests.clients.conformance.servers import TRANSPORTS, data_folder, serving
from tests.clients.conformance.suite import Suite
from tests.clients.conformance.toolchains import make, not_run

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def folder():
    with data_folder() as made:
        yield made


@pytest.fixture(scope="module", params=TRANSPORTS)
def target(request, folder):
    if request.param == "tls" and shutil.which("openssl") is None:
        not_run("TLS", "there is no openssl to make certificates with")
    with serving(request.param, folder) as server:
        yield server


@pytest.fixture(scope="module")
def suite():
    return Suite(scenarios.load())


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_sees_what_the_scenarios_say_and_what_the_others_see(client, target, suite):
    make(client)

    played = suite.play(client, target)

    assert played.failures == []
    assert played.differences == []
    assert played.left_out == ()
