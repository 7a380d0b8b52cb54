"""The adapters in TypeScript, each beside the one that its framework brings and in two worlds, on a real server."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from muniment._langgraph_names import may_stay
from tests.clients.conformance.toolchains import not_run
from tests.support.services import Service

CLIENT = Path(__file__).parents[3] / "clients/typescript"
BUILT = CLIENT / "dist/test/live"

CHARACTERS = [code for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
MAY_STAY = """
import("./dist/src/unicode.js").then(({ mayStay }) => {
  const hash = require("node:crypto").createHash("sha256");
  for (let code = 0; code < 0x110000; code += 1) {
    if (code < 0xd800 || code > 0xdfff) hash.update(mayStay(String.fromCodePoint(code)) ? "1" : "0");
  }
  process.stdout.write(hash.digest("hex"));
});
"""


def stays(code: int) -> str:
    return "1" if may_stay(chr(code)) else "0"


@pytest.mark.proof
def test_the_adapters_in_typescript(service: Service, mcp: str) -> None:
    node = shutil.which("node")
    if node is None or not BUILT.exists():
        not_run("TYPESCRIPT", "there is no Node.js, or the client was never built: `make build-typescript`")
        return
    environment = os.environ | {
        "MUNIMENT_ADDRESS": service.address,
        "MUNIMENT_HOST_KEY": service.host().token,
        "MUNIMENT_MCP": mcp,
        "MUNIMENT_TLS_CA": "",
    }
    compared = subprocess.run([node, "-e", MAY_STAY], cwd=CLIENT, capture_output=True, text=True, check=True)
    assert compared.stdout == hashlib.sha256("".join(map(stays, CHARACTERS)).encode()).hexdigest()

    command = [node, "--test", "--test-reporter=spec", *map(str, sorted(BUILT.glob("*.test.js")))]
    done = subprocess.run(
        command, cwd=CLIENT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
