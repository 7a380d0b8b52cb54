"""The adapters of this package, and how each is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from . import environments

ENVIRONMENTS: dict[str, str | None] = {
    "toy": None,
    "muniment-grpc": None,
    "muniment-server": None,
    "muniment-mcp": None,
    "langgraph-memory": "langgraph",
    "langgraph-sqlite": "langgraph",
    "langgraph-postgres": "langgraph",
    "mem0": "mem0",
    "server-memory": "server-memory",
}
"""The environment of each adapter. None: the one that runs this tool."""

_ADDRESSES = {"muniment-server": "MUNIMENT_ADDRESS"}
"""The variables that name the servers of adapters that start none."""

FOLDER = Path(__file__).parents[len(__name__.split(".")) - 1]
"""From here, the name of this package can be imported."""


def command(adapter: str, folder: Path) -> list[str]:
    """The command of an adapter, whose environment is in *folder*. It is run in FOLDER."""
    environment = ENVIRONMENTS[adapter]
    interpreter = environments.python(environment, folder) if environment else sys.executable
    return [str(interpreter), "-m", f"{__package__}.adapters.{adapter.replace('-', '_')}"]


def can_run(adapter: str, folder: Path) -> bool:
    """Whether its environment is installed, or its server is named."""
    environment = ENVIRONMENTS[adapter]
    if adapter in _ADDRESSES:
        return _ADDRESSES[adapter] in os.environ
    return environment is None or environments.installed(environment, folder)


def remedy(adapter: str) -> str:
    """What must be done so that it can run."""
    if adapter in _ADDRESSES:
        return f"set {_ADDRESSES[adapter]} and the credential of a host"
    return f"run this with --install {ENVIRONMENTS[adapter]} first"
