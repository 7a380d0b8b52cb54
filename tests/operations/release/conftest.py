"""Fixtures for the tests of what `make dist` builds."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operations.release.elsewhere import Elsewhere, copy_of_dist
from tests.support.commands import Server


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[Elsewhere]:
    """A place with the packages, on disk: what is compiled there is large."""
    if os.geteuid() != 0:
        pytest.skip("PACKAGES NOT TESTED: only root can hide the repository")
    with tempfile.TemporaryDirectory(prefix="muniment-dist-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)  # Postgres runs as another account
        copy_of_dist(Path(name, "dist"))
        yield Elsewhere(Path(name))


@pytest.fixture(scope="session")
def installed(elsewhere: Elsewhere) -> Path:
    """The programs of an environment into which the wheels were installed."""
    return elsewhere.install("installed")


@pytest.fixture(scope="session")
def server(elsewhere: Elsewhere, installed: Path) -> Iterator[dict[str, str]]:
    """How to reach a server that the wheels brought: the environment of a host."""
    with elsewhere.serving(installed, "--dev", "--data-dir", "data") as served:
        served.read_to_the_last_line()
        yield host_of(served)


def host_of(server: Server) -> dict[str, str]:
    """What `muniment serve --dev` wrote, as variables."""
    written = json.loads((server.folder / "data" / "development.json").read_text())
    return {"MUNIMENT_ADDRESS": written["address"], "MUNIMENT_HOST_KEY": written["host_key"]}
