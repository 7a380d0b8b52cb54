"""The packages of one version in the folder that `make dist` fills, and the README in each of them."""

from __future__ import annotations

import re
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests.schema.contract.test_versions import VERSION

MODULE = "muniment.example/clients/go"
"""The Go module, and below it that for ADK. Their paths have no capitals, which a proxy would escape."""
_MAVEN = Path("maven", "example", "muniment", "muniment", VERSION)
_GO = Path("go", MODULE, "@v")
_GO_ADK = Path("go", MODULE, "adk", "@v")


@dataclass(frozen=True, slots=True)
class Archive:
    """One package: where it is in `dist`, and the folder in which its files are."""

    path: Path
    inside: str

    def files(self, folder: Path) -> dict[str, bytes]:
        """Everything in it, by its path in the package."""
        name = folder / self.path
        read = _zip if name.suffix in {".zip", ".jar", ".whl"} else _tar
        return {path.removeprefix(self.inside): text for path, text in read(name) if path.startswith(self.inside)}


def _zip(name: Path) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(name) as archive:
        return [(each, archive.read(each)) for each in archive.namelist()]


def _tar(name: Path) -> list[tuple[str, bytes]]:
    with tarfile.open(name) as archive:
        members = [member for member in archive if member.isfile()]
        return [(member.name, file.read()) for member in members if (file := archive.extractfile(member))]


WHEEL = Archive(Path("python", f"muniment-{VERSION}-py3-none-any.whl"), "")
SERVER_WHEEL = Archive(Path("python", f"muniment_server-{VERSION}-py3-none-any.whl"), "")
SDIST = Archive(Path("python", f"muniment-{VERSION}.tar.gz"), f"muniment-{VERSION}/")
SERVER_SDIST = Archive(Path("python", f"muniment_server-{VERSION}.tar.gz"), f"muniment_server-{VERSION}/")
_SUITE = f"langgraph_store_conformance-{VERSION}"
SUITE_WHEEL = Archive(Path("python", f"{_SUITE}-py3-none-any.whl"), "")
SUITE_SDIST = Archive(Path("python", f"{_SUITE}.tar.gz"), f"{_SUITE}/")
NPM = Archive(Path("npm", f"muniment-{VERSION}.tgz"), "package/")
CRATE = Archive(Path("cargo", f"muniment-client-{VERSION}.crate"), f"muniment-client-{VERSION}/")
JAR = Archive(_MAVEN / f"muniment-{VERSION}.jar", "")
SOURCES_JAR = Archive(_MAVEN / f"muniment-{VERSION}-sources.jar", "")
JAVADOC_JAR = Archive(_MAVEN / f"muniment-{VERSION}-javadoc.jar", "")
GO = Archive(_GO / f"v{VERSION}.zip", f"{MODULE}@v{VERSION}/")
GO_ADK = Archive(_GO_ADK / f"v{VERSION}.zip", f"{MODULE}/adk@v{VERSION}/")

DIST_INFO = f"muniment-{VERSION}.dist-info"
SERVER_DIST_INFO = f"muniment_server-{VERSION}.dist-info"
SUITE_DIST_INFO = f"{_SUITE}.dist-info"
READMES = {
    WHEEL: f"{DIST_INFO}/METADATA",
    SERVER_WHEEL: f"{SERVER_DIST_INFO}/METADATA",
    SUITE_WHEEL: f"{SUITE_DIST_INFO}/METADATA",
    SDIST: "README.md",
    SERVER_SDIST: "README.md",
    SUITE_SDIST: "README.md",
    NPM: "README.md",
    CRATE: "README.md",
    JAR: "META-INF/README.md",
    GO: "README.md",
    GO_ADK: "README.md",
}
"""A wheel has its README at the end of its metadata."""
BESIDE = [
    *(_MAVEN / f"muniment-{VERSION}.pom",),
    *(module / name for module in (_GO, _GO_ADK) for name in ("list", f"v{VERSION}.info", f"v{VERSION}.mod")),
]
"""What belongs to packages and is no archive."""


def readme(archive: Archive, folder: Path) -> str:
    """The README that is in a package."""
    return archive.files(folder)[READMES[archive]].decode()


def from_dist(text: str) -> str:
    """The commands of a README that install from `dist`: the first block of `console` that names it."""
    commands = (block for block in blocks(text, "console") if "dist/" in block)
    return re.sub(r"^\$ ", "", next(commands), flags=re.MULTILINE)


def blocks(text: str, language: str) -> list[str]:
    """The blocks of code of one language in a README."""
    return re.findall(rf"^```{language}(?:,\w+)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
