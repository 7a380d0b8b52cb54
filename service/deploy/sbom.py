"""List what is in an image, in CycloneDX's JSON: `sbom.py NAME ROOTFS.tar [FOLDER]`.

Debian's packages are those that dpkg has recorded in the root file system; Python's are those of the folder.
"""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Iterator
from email.parser import Parser
from importlib.metadata import distributions
from pathlib import Path
from urllib.parse import quote

Component = dict[str, str]


def main() -> None:
    """Print the list."""
    name, rootfs, *folders = sys.argv[1:]
    components = [*debian_packages(Path(rootfs)), *python_packages(folders)]
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": name}},
        "components": sorted(components, key=lambda component: component["bom-ref"]),
    }
    print(json.dumps(bom, indent=1))  # noqa: T201 - a program that prints its result


def debian_packages(rootfs: Path) -> Iterator[Component]:
    """The packages in dpkg's status file."""
    with tarfile.open(rootfs) as tar:
        status = tar.extractfile("./var/lib/dpkg/status")
        assert status is not None
        stanzas = status.read().decode().strip().split("\n\n")
    for stanza in stanzas:
        package = Parser().parsestr(stanza, headersonly=True)
        name, version = package["Package"], package["Version"]
        yield _component(name, version, f"pkg:deb/debian/{name}@{quote(version)}?arch={package['Architecture']}")


def python_packages(folders: list[str]) -> Iterator[Component]:
    """The distributions that are installed in *folders*."""
    for distribution in distributions(path=folders):
        name, version = distribution.name.lower().replace("_", "-"), distribution.version
        yield _component(name, version, f"pkg:pypi/{name}@{quote(version)}")


def _component(name: str, version: str, purl: str) -> Component:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


if __name__ == "__main__":
    main()
