"""One commit makes the same packages each time, byte for byte."""

from __future__ import annotations

import subprocess

import pytest

from tests.operations.release.elsewhere import Elsewhere
from tests.tools.tour.readme import ROOT

pytestmark = pytest.mark.dist


def test_a_second_build_has_the_same_bytes(elsewhere: Elsewhere):
    again = elsewhere.folder / "again"

    subprocess.run([ROOT / "service" / "release" / "build.sh", again], check=True, capture_output=True, timeout=900)

    assert (again / "SHA256SUMS").read_text() == (elsewhere.dist / "SHA256SUMS").read_text()
