"""`import muniment` takes along what it needs, and nothing of the extras."""

from __future__ import annotations

import subprocess
import sys


def test_the_extras_are_not_loaded():
    script = (
        "import sys, muniment; print(*{'mcp', 'langgraph', 'langchain_core', 'pydantic', 'anyio'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "\n"
