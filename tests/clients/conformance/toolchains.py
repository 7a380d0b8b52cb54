"""What cannot be run here: skipped, or a failure if all clients are required."""

from __future__ import annotations

import os
from functools import cache

import pytest

from tests.clients.conformance.clients import Client

_REQUIRED = os.environ.get("REQUIRE_ALL_CLIENTS") == "1"


@cache
def make(client: Client) -> None:
    """Build the runner anew, if it was built before: the first time takes minutes, and is for `make test-clients`."""
    if client.missing:
        not_run(client.name.upper(), f"there is no {', '.join(client.missing)} on the PATH")
    if not (client.is_built or _REQUIRED):
        not_run(client.name.upper(), "its runner was never built; `make test-clients` builds it")
    client.make()


def not_run(what: str, why: str) -> None:
    if _REQUIRED:
        pytest.fail(f"{what} is required, and {why}")
    pytest.skip(f"{what} NOT RUN: {why}")
