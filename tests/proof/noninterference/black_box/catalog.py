"""The adapters of this package, and how each is started."""

from __future__ import annotations

import sys
from pathlib import Path

from . import environments

ENVIRONMENTS: dict[str, str | None] = {
    "toy": None,
    "muniment-grpc": None,
    "muniment-mcp": None,
    "langgraph-memory": "langgraph",
    "langgraph-sqlite": "langgraph",
    "langgraph-postgres": "langgraph",
    "mem0": "mem0",
    "server-memory": "server-memory",
}
"""The environment of each adapter. None: the one that runs this tool."""

FOLDER = Path(__file__).parents[len(__name__.split(".")) - 1]
"""From here, the name of this package can be imported."""


def command(adapter: str, folder: Path) -> list[str]:
    """The command of an adapter, whose environment is in *folder*. It is run in FOLDER."""
    environment = ENVIRONMENTS[adapter]
    interpreter = environments.python(environment, folder) if environment else sys.executable
    return [str(interpreter), "-m", f"{__package__}.adapters.{adapter.replace('-', '_')}"]


def can_run(adapter: str, folder: Path) -> bool:
    """Whether its environment is installed."""
    environment = ENVIRONMENTS[adapter]
    return environment is None or environments.installed(environment, folder)
