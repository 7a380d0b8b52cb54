"""The chat memories in Java, each beside the one that its framework brings, on a real server."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conformance.toolchains import not_run
from tests.support.services import Service

TARGET = Path(__file__).parents[3] / "clients/java/target"
CLASSPATH = TARGET / "conformance.classpath"


@pytest.mark.proof
def test_the_chat_memories_in_java(service: Service) -> None:
    java = shutil.which("java")
    if java is None or not (TARGET / "test-classes/muniment/ChatMemories.class").exists():
        not_run("JAVA", "there is no Java, or the client was never built: `make test-java`")
        return
    environment = os.environ | {
        "MUNIMENT_ADDRESS": service.address,
        "MUNIMENT_HOST_KEY": service.host().token,
        "MUNIMENT_TLS_CA": "",
    }
    classes = f"{TARGET}/test-classes:{TARGET}/classes:{CLASSPATH.read_text(encoding='utf-8')}"
    command = [java, "-cp", classes, "muniment.ChatMemories"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (0, "The chat memories answer like those of their frameworks.\n"), (
        done.stderr
    )
