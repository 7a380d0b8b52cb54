"""A server in development, its hosts, and a console for it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from muniment import Classification
from tests.clients.cli.page.conftest import ada, attempt, connected, host, key_of, show
from tests.operations.console.consoles import Console
from tests.support.command_fixtures import dev, folder, made_before, root_folder
from tests.support.commands import Server

__all__ = ["ada", "attempt", "connected", "dev", "folder", "host", "key_of", "made_before", "root_folder", "show"]


@pytest.fixture(scope="package")
def host_key(dev: Server) -> str:
    return str(json.loads((dev.folder / ".muniment" / "development.json").read_text())["host_key"])


@pytest.fixture(scope="package")
def console(dev: Server, host_key: str) -> Iterator[Console]:
    """A console with the key of the server in development, up to RESTRICTED."""
    with Console(dev.folder, dev.address, host_key) as opened:
        yield opened


@pytest.fixture
def of_desk(dev, key_of):
    """A console with a key that has rights at the release desk."""
    with Console(
        dev.folder, dev.address, key_of("development", Classification.CONFIDENTIAL, "--may", "endorse")
    ) as console:
        yield console
