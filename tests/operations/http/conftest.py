"""A server in development, and a gateway to it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.operations.http.gateways import Gateway
from tests.support.command_fixtures import dev, folder, made_before, root_folder
from tests.support.commands import Server

__all__ = ["dev", "folder", "made_before", "root_folder"]


@pytest.fixture(scope="package")
def host_key(dev: Server) -> str:
    return str(json.loads((dev.folder / ".muniment" / "development.json").read_text())["host_key"])


@pytest.fixture(scope="package")
def gateway(dev: Server) -> Iterator[Gateway]:
    with Gateway(dev.address, "--origin", "https://app.example") as opened:
        yield opened
