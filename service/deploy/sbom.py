"""Write what is in an image, or what a package needs, in CycloneDX's JSON.

sbom.py image NAME ROOTFS.tar [FOLDER]    an image: Debian's packages, as dpkg recorded them, and Python's in FOLDER
sbom.py package PURL < PURLS              a package, and what it is tested with: a package URL in each line
sbom.py requirements REQUIREMENT...       the package URLs of what Python distributions need in this environment
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator
from email.parser import Parser
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from urllib.parse import quote, unquote

from packaging.requirements import Requirement

Component = dict[str, str]
_PURL = re.compile(r"pkg:(?P<type>\w+)/(?:(?P<namespace>.+)/)?(?P<name>[^/@]+)@(?P<version>[^?]+)(?:\?.*)?")
_JOINED_BY = {"maven": ":"}


def main() -> None:
    """Print what is asked for."""
    match sys.argv[1:]:
        case ["image", name, rootfs, *folders]:
            purls = [*debian_packages(Path(rootfs)), *python_packages(folders)]
            _print(bom({"type": "container", "name": name}, purls))
        case ["package", purl]:
            _print(bom(component(purl), sys.stdin.read().split()))
        case ["requirements", *requirements]:
            needed = needed_by(*map(Requirement, requirements))
            print(*sorted(map(_pypi, needed)), sep="\n")  # noqa: T201 - a program that prints its result
        case _:
            sys.exit(__doc__)


def bom(subject: Component, purls: Iterable[str]) -> dict[str, object]:
    """A bill of materials: *subject*, and its parts in order."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": subject},
        "components": [component(purl) for purl in sorted(set(purls))],
    }


def component(purl: str) -> Component:
    """One part, by its package URL."""
    found = _PURL.fullmatch(purl)
    if found is None:
        sys.exit(f"this is no package URL with a version: {purl}")
    space = unquote(found["namespace"] or "")
    # Debian's names are known without their namespace, which is the distribution.
    name = found["name"] if found["type"] == "deb" or not space else _joined(found["type"], space, found["name"])
    return {"type": "library", "bom-ref": purl, "name": name, "version": unquote(found["version"]), "purl": purl}


def _joined(kind: str, space: str, name: str) -> str:
    return _JOINED_BY.get(kind, "/").join((space, name))


def debian_packages(rootfs: Path) -> Iterator[str]:
    """The packages in dpkg's status file."""
    with tarfile.open(rootfs) as tar:
        status = tar.extractfile("./var/lib/dpkg/status")
        assert status is not None
        stanzas = status.read().decode().strip().split("\n\n")
    for stanza in stanzas:
        package = Parser().parsestr(stanza, headersonly=True)
        yield f"pkg:deb/debian/{package['Package']}@{quote(package['Version'])}?arch={package['Architecture']}"


def python_packages(folders: list[str]) -> Iterator[str]:
    """The distributions that are installed in *folders*."""
    return map(_pypi, distributions(path=folders))


def needed_by(*wanted: Requirement) -> list[Distribution]:
    """What *wanted* need on this machine, and what that needs."""
    found: dict[str, Distribution] = {}
    seen, waiting = set(map(str, wanted)), [*wanted]
    while waiting:
        for requirement in filter(lambda each: str(each) not in seen, _requirements(waiting.pop())):
            seen.add(str(requirement))
            found[requirement.name] = distribution(requirement.name)
            waiting.append(requirement)
    return [*found.values()]


def _requirements(wanted: Requirement) -> list[Requirement]:
    """What one distribution requires here, with the extras that are wanted of it."""
    stated = map(Requirement, distribution(wanted.name).requires or ())
    extras = wanted.extras or {""}
    return [each for each in stated if not each.marker or any(each.marker.evaluate({"extra": one}) for one in extras)]


def _pypi(found: Distribution) -> str:
    return f"pkg:pypi/{re.sub(r'[-_.]+', '-', found.name).lower()}@{quote(found.version)}"


def _print(document: dict[str, object]) -> None:
    print(json.dumps(document, indent=1))  # noqa: T201 - a program that prints its result


if __name__ == "__main__":
    main()
