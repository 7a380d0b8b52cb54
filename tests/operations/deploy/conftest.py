"""Fixtures for all tests of what is deployed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operations.deploy.containers import Host, block, host, missing


@pytest.fixture(scope="session")
def build(request: pytest.FixtureRequest) -> Path:
    """The folder that keeps root file systems from one run to the next."""
    return request.config.cache.mkdir("deploy")


@pytest.fixture(scope="session")
def machine(build: Path) -> Iterator[Host]:
    """A host with the images, built as the page says."""
    absent = missing()
    if absent and os.environ.get("REQUIRE_DEPLOYMENT") == "1":
        pytest.fail(f"deployment is required, and there is no {', '.join(absent)}")
    if absent:
        pytest.skip(f"DEPLOYMENT NOT RUN: there is no {', '.join(absent)}")
    with host() as made:
        made.shell(block("build").replace(" build\n", f" {build}\n"))
        yield made
