"""The wheels in another Linux than the one of these tests: Debian 13, with its own Python and libraries."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.operations.release import packages
from tests.operations.release.conftest import host_of
from tests.operations.release.elsewhere import KINDS, Elsewhere, environment
from tests.operations.release.packages import blocks, readme
from tests.support.commands import Server

pytestmark = pytest.mark.dist

_SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
_PACKAGES = "python3,python3-venv,ca-certificates"
_OF_THE_MACHINE = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
"""What programs in it need to reach the package registries as this machine does."""
_ENTER = 'mount -t proc proc "$0/proc"; mount --bind /dev "$0/dev"; exec chroot "$0" "$@"'


class System:
    """The root of a file system, in which commands are run as if it were the whole machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.enter = ["unshare", "--mount", "sh", "-euc", _ENTER, str(root)]

    def run(self, script: str, **given: str) -> str:
        """What the lines of *script* say, which must all succeed."""
        done = subprocess.run(
            [*self.enter, "sh", "-euc", script],
            env={**environment(), **given},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout


@pytest.fixture
def debian_13(elsewhere: Elsewhere, request: pytest.FixtureRequest) -> System:
    """A minimal one, with the packages in `/dist`. Its archive is kept from one run to the next."""
    if shutil.which("mmdebstrap") is None or not _SOURCES.exists():
        pytest.skip("DEBIAN 13 NOT TESTED: there is no mmdebstrap, or this is no Debian")
    archive = request.config.cache.mkdir("dist") / "trixie.tar"
    if not archive.exists():
        sources = elsewhere.project("trixie-sources", {"sources": _SOURCES.read_text().replace("bookworm", "trixie")})
        part = archive.with_suffix(".part")
        make = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={_PACKAGES}", "--format=tar", ""]
        subprocess.run([*make, part, sources / "sources"], check=True, timeout=900)
        part.rename(archive)
    root = elsewhere.folder / "trixie"
    root.mkdir()
    subprocess.run(["tar", "--extract", "--exclude=./dev/*", "--file", archive, "--directory", root], check=True)
    for path in filter(Path.exists, map(Path, _OF_THE_MACHINE)):
        shutil.copy(path, root / path.relative_to("/"))
    shutil.copytree(elsewhere.dist, root / "dist")
    return System(root)


def test_the_example_of_python(elsewhere: Elsewhere, debian_13: System):
    text = readme(packages.WHEEL, elsewhere.dist)
    folder = debian_13.root / "srv"
    (folder / "main.py").write_text(blocks(text, "python")[0])
    client, server = (f"/dist/{archive.path}" for archive in KINDS["wheel"])

    assert re.match(r"13\.", debian_13.run("cat /etc/debian_version"))
    debian_13.run("python3 -m venv /opt/muniment")
    debian_13.run(f"/opt/muniment/bin/pip install --quiet --no-compile '{client}[cli]' {server}")
    served = Server(
        folder,
        *("--dev", "--listen", "127.0.0.1:0", "--data-dir", "/srv/data"),
        environment=environment(),
        command=[*debian_13.enter, "/opt/muniment/bin/muniment"],
    )
    try:
        served.read_to_the_last_line()
        output = debian_13.run("exec /opt/muniment/bin/python -W error /srv/main.py", **host_of(served))
    finally:
        served.end()
    assert output == blocks(text, "text")[0]
