"""The adapters in Java, each beside what its framework brings, on a real server."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.conformance.toolchains import not_run
from tests.support.services import Service

TARGET = Path(__file__).parents[3] / "clients/java/target"
CLASSPATH = TARGET / "conformance.classpath"
SAID = {
    "ChatMemories": "The chat memories answer like those of their frameworks.\n",
    "AdkMemories": "The memory service answers like ADK's own.\n",
    "TwoWorlds": "The two worlds look the same, and each leak was found.\n",
}
"""What each program says when everything in it was as it should be."""


@pytest.mark.proof
@pytest.mark.parametrize("program", SAID)
def test_the_adapters_in_java(service: Service, mcp: str, program: str) -> None:
    java = shutil.which("java")
    if java is None or not (TARGET / f"test-classes/muniment/{program}.class").exists():
        not_run("JAVA", "there is no Java, or the client was never built: `make test-java`")
        return
    environment = os.environ | {
        "MUNIMENT_ADDRESS": service.address,
        "MUNIMENT_HOST_KEY": service.host().token,
        "MUNIMENT_MCP": mcp,
        "MUNIMENT_TLS_CA": "",
    }
    classes = f"{TARGET}/test-classes:{TARGET}/classes:{CLASSPATH.read_text(encoding='utf-8')}"
    command = [java, "-cp", classes, f"muniment.{program}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (0, SAID[program]), done.stderr
