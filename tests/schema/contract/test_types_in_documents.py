"""The Python of READMEs and of the tour passes a strict type checker, as it would in a reader's editor."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.schema.contract.test_packages_in_documents import documents
from tests.tools.tour.readme import ROOT

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_IMPORTS_OURS = re.compile(r"^(?:from|import) muniment", re.MULTILINE)
_BEFORE_FRAGMENTS = """\
import muniment
from muniment.langgraph import MunimentStore
session: muniment.SessionClient
key: str
"""
"""What a block that imports nothing of ours takes from the text around it."""


def programs() -> dict[str, str]:
    """Each block of Python as a module. Its name says where it stands."""
    found = {}
    for document in documents():
        if document.name not in ("README.md", "tour.md", "model-your-case.md") or (ROOT / "tests") in document.parents:
            continue  # the others show fragments; in tests, fixtures need no annotations
        text = document.read_text("utf-8")
        for block in _BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 2
            name = re.sub(r"\W", "_", f"{document.relative_to(ROOT)}_{line}")
            found[name] = program(block[1])
    return found


def program(block: str) -> str:
    """The block, after what it needs if it is a fragment."""
    return block if _IMPORTS_OURS.search(block) else _BEFORE_FRAGMENTS + block


def complaints(modules: dict[str, str], folder: Path) -> str:
    """What mypy says of modules, with the settings of this repository."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *sorted(folder.glob("*.py"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return "" if done.returncode == 0 else done.stdout


@pytest.mark.proof
def test_every_block_of_python_passes_mypy(tmp_path):
    modules = programs()

    assert len(modules) > 15
    assert complaints(modules, tmp_path) == ""


def test_a_block_that_uses_a_host_as_a_session_does_not(tmp_path):
    planted = "import muniment\n\nwith muniment.connect_host() as host:\n    host.save_memory('tea', 'Assam')\n"

    assert 'has no attribute "save_memory"' in complaints({"planted": planted}, tmp_path)
