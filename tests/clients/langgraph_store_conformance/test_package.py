"""The package by itself: what a subject must state, and the example of the README with what a stranger installs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import langgraph_store_conformance
from langgraph_store_conformance import Asynchronous, Contract, Deviation, FiltersNested
from langgraph_store_conformance.contract import CAPABILITIES
from langgraph_store_conformance.suite import Suite
from tests.clients.langgraph_store_conformance.test_reference import TestReference as OfReference

FOLDER = Path(__file__).parent
(EXAMPLE,) = re.findall(
    r"^```python\n(import pytest.*?)^```", (FOLDER / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
)


def test_every_capability_must_be_declared():
    with pytest.raises(TypeError, match="Incomplete must inherit one of Expires, RefusesTTL"):
        type("Incomplete", (Contract, FiltersNested, Asynchronous), {})


def test_none_may_be_declared_both_ways():
    ttl, *others = CAPABILITIES
    with pytest.raises(TypeError, match="Both must inherit one of Expires, RefusesTTL"):
        type("Both", (Contract, *ttl, *(one for one, *_ in others)), {})


def test_what_is_open_must_be_stated():
    with pytest.raises(TypeError, match="Unstated must state search_order"):
        type("Unstated", (Contract, *(one for one, *_ in CAPABILITIES)), {})


def test_a_deviation_must_be_that_of_a_test():
    with pytest.raises(TypeError, match="deviates in what is no test of it: test_a_ttl_is_refused, test_other"):
        type(
            "Wrong",
            (OfReference,),
            {"deviations": dict.fromkeys(["test_a_ttl_is_refused", "test_other"], Deviation(""))},
        )


def test_no_test_may_be_replaced():
    with pytest.raises(TypeError, match="replaces tests; name them in `deviations` instead: test_gt"):
        type("Wrong", (OfReference,), {"test_gt": lambda self, store: None})


def test_nor_by_a_class_beside_the_contract():
    beside = type("Beside", (), {"test_gt": lambda self, store: None})
    with pytest.raises(TypeError, match="replaces tests"):
        type("Wrong", (beside, OfReference), {})


def test_no_part_of_the_suite_hides_a_test_of_another():
    parts = {each for each in OfReference.__mro__ if issubclass(each, Suite)} | {
        one for row in CAPABILITIES for one in row
    }
    names = [name for part in parts for name in vars(part) if name.startswith("test_")]

    assert sorted(names) == sorted(set(names))


def test_everything_that_a_subject_needs_is_exported():
    assert {one.__name__ for row in CAPABILITIES for one in row} <= set(langgraph_store_conformance.__all__)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contents of the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = ["-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-index", "--no-deps"]
    subprocess.run(
        [sys.executable, *command, "--no-build-isolation", "--wheel-dir", folder, FOLDER], check=True, timeout=120
    )
    (wheel,) = folder.glob("langgraph_store_conformance-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def run(installed: Path, folder: Path, example: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run an example on the reference, far from this repository. What the example waits for is shorter here."""
    (folder / "my_store.py").write_text("from langgraph_store_conformance import Reference as MyStore\n")
    (folder / "test_my_store.py").write_text(example.replace("1 / 60", "1 / 300"))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(installed), "HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:langsmith_plugin", "test_my_store.py", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.proof
def test_the_example_passes(installed: Path, tmp_path: Path):
    done = run(installed, tmp_path, EXAMPLE)

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert re.search(r"^1\d\d passed in", done.stdout, re.MULTILINE)


@pytest.mark.proof
def test_a_deviation_that_does_not_occur_fails(installed: Path, tmp_path: Path):
    deviations = (
        'deviations = {"test_gt": Deviation("is no longer so"), "test_lt": Deviation("nor this", raises=OSError)}'
    )
    done = run(
        installed,
        tmp_path,
        EXAMPLE.replace("search_order,", f"{deviations}\n    search_order,"),
        "-k",
        "test_gt or test_lt",
    )

    assert done.returncode == 1
    assert "[XPASS(strict)] is no longer so" in done.stdout
    assert re.search(r"^2 failed, 2 passed, ", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.proof
def test_a_deviation_of_another_kind_fails(installed: Path, tmp_path: Path):
    changed = EXAMPLE.replace("IgnoresFields,", "RefusesFields,").replace(
        "search_order,",
        'deviations = {"test_a_choice_of_fields_is_refused": Deviation("", raises=OSError)}\n    search_order,',
    )
    done = run(installed, tmp_path, changed, "-k", "test_a_choice_of_fields_is_refused")

    assert done.returncode == 1
    assert re.search(r"^2 failed, ", done.stdout, re.MULTILINE)
