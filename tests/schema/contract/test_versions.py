"""There is one version, stated in pyproject.toml, and every other place that names it says the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.tools.tour.readme import ROOT

POM = "{http://maven.apache.org/POM/4.0.0}"


def toml(path: str) -> dict[str, Any]:
    """A file of TOML in the repository."""
    return tomllib.loads((ROOT / path).read_text("utf-8"))


def typescript(file: str) -> Any:
    """A file of JSON in the TypeScript client."""
    return json.loads((ROOT / "clients" / "typescript" / file).read_text("utf-8"))


def found(pattern: str, path: str) -> str:
    """The first group of the first match in a file."""
    match = re.search(pattern, (ROOT / path).read_text("utf-8"), re.MULTILINE)
    assert match is not None, (pattern, path)
    return match[1]


SERVER = toml("pyproject.toml")["project"]
VERSION = SERVER["version"]
PLACES: dict[str, Callable[[], str | None]] = {
    "the client that the server needs": lambda: SERVER["dependencies"][0].removeprefix("muniment[cli]=="),
    "pyproject.toml of the Python client": lambda: toml("clients/python/pyproject.toml")["project"]["version"],
    "pyproject.toml of the suite for LangGraph's stores": lambda: toml(
        "tests/clients/langgraph_store_conformance/pyproject.toml"
    )["project"]["version"],
    "package.json": lambda: typescript("package.json")["version"],
    "package-lock.json": lambda: typescript("package-lock.json")["version"],
    "the package in package-lock.json": lambda: typescript("package-lock.json")["packages"][""]["version"],
    "Cargo.toml": lambda: toml("clients/rust/Cargo.toml")["package"]["version"],
    "crates.lock": lambda: found(r'^name = "muniment-client"\nversion = "(.+)"$', "clients/rust/crates.lock"),
    "the client that the Go module for ADK needs": lambda: found(
        r"^\tmuniment.example/clients/go v(.+)$", "clients/go/adk/go.mod"
    ),
    "pom.xml": lambda: ElementTree.parse(ROOT / "clients/java/pom.xml").findtext(f"{POM}version"),
    "the newest entry of the changelog": lambda: found(r"^## (.+)$", "CHANGELOG.md"),
    "the installed client": lambda: version("muniment"),
    "the installed server": lambda: version("muniment-server"),
}
_NAMED = {
    "clients/go/README.md": r"^\$ go get muniment.example/clients/go@v(.+)$",
    "clients/go/adk/README.md": r"^\$ go get muniment.example/clients/go/adk@v(.+)$",
    "clients/java/README.md": r"<artifactId>muniment</artifactId>\s+<version>(.+)</version>",
}
"""Where a README tells the version to install."""


@pytest.mark.parametrize("place", PLACES)
def test_the_version_is_the_same_in(place):
    assert PLACES[place]() == VERSION


@pytest.mark.parametrize("readme", _NAMED)
def test_the_version_to_install_is_the_same_in(readme):
    assert found(_NAMED[readme], readme) == VERSION


def test_the_frameworks_that_java_was_tested_with_are_those_of_its_build():
    parts = ("groupId", "artifactId", "version")
    dependencies = ElementTree.parse(ROOT / "clients/java/pom.xml").iter(f"{POM}dependency")
    built = {":".join(each.findtext(f"{POM}{part}") or "" for part in parts) for each in dependencies}
    output = set(re.findall(r"`([\w.]+:[\w.-]+:[\w.]+)`", (ROOT / "clients/java/README.md").read_text("utf-8")))
    assert len(output) == 3
    assert output <= built


def test_the_command_says_it():
    done = subprocess.run(
        [Path(sys.executable).with_name("muniment"), "--version"], capture_output=True, text=True, check=True
    )

    assert done.stdout == f"muniment, version {VERSION}\n"


def test_a_server_alone_is_locked_as_the_tests_use_it():
    """`make run` installs a part of what `make test` installs."""
    server, everything = (
        pinned((ROOT / "service" / f"{name}.lock").read_text("utf-8")) for name in ("server", "requirements")
    )

    assert len(server) > 30
    assert server.items() <= everything.items()
    assert not {"mypy", "pytest", "ruff", "langgraph-checkpoint"} & server.keys()


def pinned(lock: str) -> dict[str, str]:
    """The version and the hashes of each package of a lock."""
    entries = re.findall(r"^([a-z0-9-]+)==(\S+)[^\n]*\n((?:    --hash=\S+.*\n)+)", lock, re.MULTILINE)
    return {(f"{name}=={version}" if name == "numpy" else name): version + hashes for name, version, hashes in entries}
