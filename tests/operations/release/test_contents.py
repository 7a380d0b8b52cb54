"""Each package has its licence, README, metadata and code, and nothing that leads back to the repository."""

from __future__ import annotations

import email
import json
import re
import tomllib
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.operations.release import packages
from tests.operations.release.elsewhere import Elsewhere
from tests.operations.release.packages import Archive, readme
from tests.schema.contract.test_versions import POM, VERSION
from tests.tools.tour.readme import ROOT

pytestmark = pytest.mark.dist

LICENCES = {
    packages.WHEEL: f"{packages.DIST_INFO}/licenses/LICENSE",
    packages.SERVER_WHEEL: f"{packages.SERVER_DIST_INFO}/licenses/LICENSE",
    packages.SUITE_WHEEL: f"{packages.SUITE_DIST_INFO}/licenses/LICENSE",
    packages.SDIST: "LICENSE",
    packages.SERVER_SDIST: "LICENSE",
    packages.SUITE_SDIST: "LICENSE",
    packages.NPM: "LICENSE",
    packages.CRATE: "LICENSE",
    packages.JAR: "META-INF/LICENSE",
    packages.GO: "LICENSE",
    packages.GO_ADK: "LICENSE",
}
CODE = {
    packages.WHEEL: "muniment/v1/memory_service_pb2.py",
    packages.SERVER_WHEEL: "muniment_server/monitor/rules.binpb",
    packages.SUITE_WHEEL: "langgraph_store_conformance/suite.py",
    packages.SDIST: "src/muniment/py.typed",
    packages.SERVER_SDIST: "service/muniment_server/monitor/scope.sql",
    packages.SUITE_SDIST: "src/langgraph_store_conformance/py.typed",
    packages.NPM: "dist/src/index.d.ts",
    packages.CRATE: "src/lib.rs",
    packages.JAR: "muniment/HostClient.class",
    packages.SOURCES_JAR: "muniment/v1/Memory.java",
    packages.JAVADOC_JAR: "muniment/muniment/HostClient.html",
    packages.GO: "gen/muniment/v1/memory_service_grpc.pb.go",
    packages.GO_ADK: "adk.go",
}
WANTED_BY_MAVEN = ("name", "description", "url", "licenses/license/name", "developers/developer/name", "scm/connection")
HOME = "https://muniment.example"


def named(archive: Archive) -> str:
    return archive.path.name


@pytest.mark.parametrize("archive", LICENCES, ids=named)
def test_it_has_the_licence_and_its_readme(elsewhere: Elsewhere, archive: Archive):
    assert archive.files(elsewhere.dist)[LICENCES[archive]] == (ROOT / "LICENSE").read_bytes()
    assert re.search("^# (Muniment|A conformance suite)", readme(archive, elsewhere.dist), re.MULTILINE)


@pytest.mark.parametrize("archive", CODE, ids=named)
def test_it_has_the_code_and_no_path_of_the_repository(elsewhere: Elsewhere, archive: Archive):
    files = archive.files(elsewhere.dist)

    assert CODE[archive] in files
    assert [name for name, text in files.items() if str(ROOT).encode() + b"/" in text] == []


@pytest.mark.parametrize("archive", [packages.WHEEL, packages.SERVER_WHEEL, packages.SUITE_WHEEL], ids=named)
def test_metadata_of_python(elsewhere: Elsewhere, archive: Archive):
    metadata = email.message_from_string(readme(archive, elsewhere.dist))

    assert (metadata["Version"], metadata["License-Expression"]) == (VERSION, "Apache-2.0")
    assert f"Homepage, {HOME}" in metadata.get_all("Project-URL", [])
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_metadata_of_npm(elsewhere: Elsewhere):
    manifest = json.loads(packages.NPM.files(elsewhere.dist)["package.json"])

    assert (manifest["name"], manifest["version"], manifest["license"]) == ("muniment", VERSION, "Apache-2.0")
    assert manifest["homepage"] == HOME
    assert not any(where.startswith(("file:", "link:", "/")) for where in manifest["dependencies"].values())


def test_metadata_of_the_crate(elsewhere: Elsewhere):
    manifest = tomllib.loads(packages.CRATE.files(elsewhere.dist)["Cargo.toml"].decode())
    package = manifest["package"]

    assert (package["version"], package["license"], package["repository"]) == (VERSION, "Apache-2.0", HOME)
    assert [name for name, wanted in manifest["dependencies"].items() if "path" in wanted] == []


def test_metadata_of_the_jar(elsewhere: Elsewhere):
    pom = ElementTree.parse(elsewhere.dist / packages.JAR.path.with_suffix(".pom"))

    assert pom.findtext(f"{POM}version") == VERSION
    for wanted in (
        "name",
        "description",
        "url",
        "licenses/license/name",
        "developers/developer/name",
        "scm/connection",
    ):
        assert pom.findtext("/".join(POM + each for each in wanted.split("/"))), wanted


@pytest.mark.parametrize("archive", [packages.GO, packages.GO_ADK], ids=named)
def test_metadata_of_the_go_modules(elsewhere: Elsewhere, archive: Archive):
    folder = elsewhere.dist / archive.path.parent

    assert (folder / "list").read_text() == f"v{VERSION}\n"
    assert json.loads((folder / f"v{VERSION}.info").read_text())["Version"] == f"v{VERSION}"
    assert (folder / f"v{VERSION}.mod").read_bytes() == archive.files(elsewhere.dist)["go.mod"]
    assert b"\nreplace " not in (folder / f"v{VERSION}.mod").read_bytes()


def test_the_checksums_are_those_of_the_files(elsewhere: Elsewhere):
    lines = (elsewhere.dist / "SHA256SUMS").read_text().splitlines()
    stated = {name: digest for digest, name in (line.split("  ") for line in lines)}

    assert stated == {
        str(path.relative_to(elsewhere.dist)): sha256(path.read_bytes()).hexdigest()
        for path in elsewhere.dist.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS"
    }
    assert {str(each) for each in [*(archive.path for archive in CODE), *packages.BESIDE]} <= set(stated)


def test_nothing_in_it_is_a_link(elsewhere: Elsewhere):
    assert [path for path in Path(elsewhere.dist).rglob("*") if path.is_symlink()] == []
