"""`import muniment` takes along what it needs, and nothing of the extras."""

from __future__ import annotations

import subprocess
import sys

import pytest

import muniment


def test_the_extras_are_not_loaded():
    script = (
        "import sys, muniment; print(*{'mcp', 'langgraph', 'langchain_core', 'pydantic', 'anyio'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "\n"


def test_every_public_name_is_there():
    assert [name for name in muniment.__all__ if not hasattr(muniment, name)] == []
    assert {*muniment.__all__, "errors", "values"} <= set(dir(muniment))
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = muniment.no_such_name


def test_the_contract_is_loaded_without_the_client():
    script = "import sys, muniment.v1.memory_pb2, muniment.values; print(*{'grpc', 'muniment.host'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "\n"
