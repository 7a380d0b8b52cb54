"""The documents and hints name the packages of `dist` as they are built, in the version of this commit."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from muniment._installing import commands_for_extra, commands_for_server
from tests.operations.release import packages
from tests.operations.release.packages import Archive
from tests.schema.contract.test_versions import VERSION
from tests.tools.tour.readme import ROOT

BUILT = {str(each.path) for each in vars(packages).values() if isinstance(each, Archive)}
_NAMED = re.compile(r"\bdist/([\w./-]+\.(?:whl|tar\.gz|tgz|crate|jar))")
INSTALLS = {
    "README.md": {packages.WHEEL, packages.SERVER_WHEEL},
    "clients/python/README.md": {packages.WHEEL},
    "clients/typescript/README.md": {packages.NPM},
    "clients/rust/README.md": {packages.CRATE},
}


def named(text: str) -> set[str]:
    """The packages in `dist` that a text names."""
    return set(_NAMED.findall(text))


def documents() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines()]


def test_no_document_names_a_package_that_is_not_built():
    unknown = {str(path): names for path in documents() if (names := named(path.read_text("utf-8")) - BUILT)}
    assert unknown == {}


@pytest.mark.parametrize("readme", INSTALLS)
def test_a_readme_installs_from_dist(readme):
    assert named((ROOT / readme).read_text("utf-8")) == {str(each.path) for each in INSTALLS[readme]}


def test_so_do_those_of_go_and_java():
    go, java = ((ROOT / "clients" / name / "README.md").read_text("utf-8") for name in ("go", "java"))
    assert f"go get {packages.MODULE}@v{VERSION}\n" in go
    assert "file:///path/to/muniment/dist/go," in go
    adk = (ROOT / "clients/go/adk/README.md").read_text("utf-8")
    # Without a version, Go asks a proxy for all versions, although the module is replaced.
    assert set(re.findall(r"go get (\S+)", go + adk)) == {
        f"{module}@v{VERSION}" for module in (packages.MODULE, f"{packages.MODULE}/adk")
    }
    assert "<url>file:/path/to/muniment/dist/maven</url>" in java


def test_so_do_the_hints():
    assert named(commands_for_extra("cli")) == {str(packages.WHEEL.path)}
    assert named(commands_for_server()) == {str(packages.WHEEL.path), str(packages.SERVER_WHEEL.path)}
