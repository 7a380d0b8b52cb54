"""Every client plays every scenario, and all see the same."""

from __future__ import annotations

import os
import shutil
from functools import cache

import pytest

from tests.conformance import scenarios
from tests.conformance.clients import CLIENTS, Client
from tests.conformance.servers import TRANSPORTS, data_folder, serving
from tests.conformance.suite import Suite

pytestmark = pytest.mark.proof
_REQUIRED = os.environ.get("REQUIRE_ALL_CLIENTS") == "1"


@pytest.fixture(scope="module")
def folder():
    with data_folder() as made:
        yield made


@pytest.fixture(scope="module", params=TRANSPORTS)
def target(request, folder):
    if request.param == "tls" and shutil.which("openssl") is None:
        _not_run("TLS", "there is no openssl to make certificates with")
    with serving(request.param, folder) as server:
        yield server


@pytest.fixture(scope="module")
def suite():
    return Suite(scenarios.load())


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_sees_what_the_scenarios_say_and_what_the_others_see(client, target, suite):
    _make(client)

    played = suite.play(client, target)

    assert played.failures == []
    assert played.differences == []
    assert played.left_out == ()


@cache
def _make(client: Client) -> None:
    """Build the runner anew, if it was built before: the first time takes minutes, and is for `make test-clients`."""
    if client.missing:
        _not_run(client.name.upper(), f"there is no {', '.join(client.missing)} on the PATH")
    if not (client.is_built or _REQUIRED):
        _not_run(client.name.upper(), "its runner was never built; `make test-clients` builds it")
    client.make()


def _not_run(what: str, why: str) -> None:
    if _REQUIRED:
        pytest.fail(f"{what} is required, and {why}")
    pytest.skip(f"{what} NOT RUN: {why}")
