"""Examples of the TypeScript client's README, on a server of ours. That they are the README's, its own tests say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.clients.conformance.clients import CLIENTS
from tests.clients.conformance.toolchains import make
from tests.tools.tour.readme import ROOT

pytestmark = pytest.mark.proof  # it builds the client

_BUILT = ROOT / "clients" / "typescript" / "dist"

_CALLER = f"""\
import {{ Classification, connect, pages }} from "{_BUILT}/src/index.js";
import {{ raise }} from "{_BUILT}/examples/raise.js";

const host = connect();
const {{ agent }} = await host.agents.createAgent({{}});
const session = await host.openSession({{ agentId: agent.agentId, taint: Classification.PUBLIC }});
for (const key of ["errands", "tea"]) {{
  await session.memories.saveMemory({{ key, content: "something" }});
}}
try {{
  for await (const page of pages(session.memories.listMemories, {{ pageSize: 1 }})) {{
    console.log("read", page.memories[0].key);
    console.log("read all", await raise(host, session, "read the payroll"));
  }}
}} catch (error) {{
  console.log(error.status, error.reason);
}}
"""
"""Raises the taint, as the example does, in the middle of a list of its own."""


@pytest.fixture
def node(compilers):
    make(next(client for client in CLIENTS if client.name == "typescript"))

    def run(program: Path) -> str:
        done = subprocess.run(
            ["node", program],
            env=compilers,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stderr == ""
        return done.stdout

    return run


def test_the_first_example(node):
    assert node(_BUILT / "examples" / "quickstart.js") == "tea PUBLIC Assam, no sugar\n"


def test_a_raised_taint(node, folder):
    program = folder / "caller.mjs"
    program.write_text(_CALLER)

    assert node(program) == "read errands\nread all [ 'errands', 'tea' ]\nABORTED TAINT_CHANGED\n"
