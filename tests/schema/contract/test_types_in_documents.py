"""The Python of READMEs and of the tour passes mypy and Pyright, both strict, as it would in a reader's editor."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.conformance.toolchains import not_run
from tests.schema.contract.test_packages_in_documents import documents
from tests.tools.tour.readme import ROOT

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_IMPORTS_OURS = re.compile(r"^(?:from|import) muniment", re.MULTILINE)
_BEFORE_FRAGMENTS = """\
import muniment
from muniment.langgraph import MunimentStore
session = muniment.connect_session()
key = input()
_ = MunimentStore
"""
"""What a block that imports nothing of ours takes from the text around it."""
_IMPORT = re.compile(r"^(?:from|import) ([\w.]+)", re.MULTILINE)
_PYRIGHT = ROOT / "clients/typescript/node_modules/pyright/index.js"
"""Installed there, since npm has it."""
_PYRIGHT_SETTINGS = {
    "typeCheckingMode": "strict",
    "extraPaths": [str(ROOT / "clients/python/src"), str(ROOT / "service")],
    # Not ours to mend: LangGraph's graphs.
    "reportMissingTypeStubs": False,
    "reportUnknownMemberType": False,
}
_WITHOUT_FRAMEWORK = "# pyright: basic, reportMissingImports=false\n"
"""Before a block for a framework that cannot be installed beside the server: nothing is known of its types."""


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


def complaints_of_pyright(modules: dict[str, str], folder: Path) -> str:
    """What Pyright says of modules when it is strict."""
    node = shutil.which("node")
    if node is None or not _PYRIGHT.exists():
        not_run("PYRIGHT", "there is no Node.js, or `make build-typescript` was never run")
        return ""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text if _has_frameworks(text) else _WITHOUT_FRAMEWORK + text, "utf-8")
    (folder / "pyrightconfig.json").write_text(json.dumps(_PYRIGHT_SETTINGS))
    done = subprocess.run(
        [node, _PYRIGHT, "--pythonpath", sys.executable, "-p", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return "" if done.returncode == 0 else done.stdout


def _has_frameworks(text: str) -> bool:
    return all(map(_is_installed, _IMPORT.findall(text)))


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is not installed
        return False


@pytest.mark.proof
def test_every_block_of_python_passes_mypy(tmp_path):
    modules = programs()

    assert len(modules) > 15
    assert complaints(modules, tmp_path) == ""


def test_a_block_that_uses_a_host_as_a_session_does_not(tmp_path):
    planted = "import muniment\n\nwith muniment.connect_host() as host:\n    host.save_memory('tea', 'Assam')\n"

    assert 'has no attribute "save_memory"' in complaints({"planted": planted}, tmp_path)


@pytest.mark.proof
def test_every_block_of_python_passes_pyright(tmp_path):
    assert complaints_of_pyright(programs(), tmp_path) == ""


@pytest.mark.proof
def test_pyright_sees_a_block_that_uses_a_host_as_a_session(tmp_path):
    planted = "import muniment\n\nwith muniment.connect_host() as host:\n    host.save_memory('tea', 'Assam')\n"

    assert 'Cannot access attribute "save_memory"' in complaints_of_pyright({"planted": planted}, tmp_path)
