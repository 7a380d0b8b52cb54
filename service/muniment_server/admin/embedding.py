"""Starts the process that embeds what is stored with a model at an address: see `embedder.remote.reindexing`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from muniment.cli.failures import Failure
from muniment_server.admin.connection import Operator
from muniment_server.domain.classification import Classification
from muniment_server.embedder.remote.configuration import RemoteConfig


@dataclass(frozen=True, slots=True)
class Step:
    """What was done at one level so far: chunks were embedded, or other embeddings removed."""

    level: Classification
    embedded: int = 0
    waiting: int = 0
    """How many chunks are still to be embedded, up to 100,000."""
    removed: int | None = None
    """None while chunks are embedded."""


def embed_stored(operator: Operator, remote: RemoteConfig, *, removes_others: bool) -> Iterator[Step]:
    """Embed, lowest level first, what has no embedding by *remote*. Raises Failure if it gives up."""
    orders = {"conninfo": operator.conninfo, "remote": remote.to_json(), "removes_others": removes_others}
    with subprocess.Popen(
        [sys.executable, "-m", "muniment_server.embedder.remote.reindexing"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C ends it by the end of its input
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{json.dumps(orders)}\n")
            process.stdin.flush()
            for line in process.stdout:
                step = json.loads(line)
                if "error" in step:
                    raise Failure(step["error"], "what is embedded stays: run the command again to go on")
                yield Step(**step | {"level": Classification(step["level"])})
            if process.wait():
                raise Failure("the process that embeds has died", "run the command again to go on")
        finally:
            process.stdin.close()
