"""The three services in three languages print what the README of the clients shows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.clients.conformance.clients import CLIENTS
from tests.clients.conformance.toolchains import make
from tests.tools.tour.go_tools import not_run
from tests.tools.tour.readme import ROOT, section, steps

_CLIENTS = ROOT / "clients"


@pytest.mark.proof  # it builds two clients
def test_three_services_remember_one_customer(compilers):
    for tool in ("go", "node"):
        if shutil.which(tool) is None:
            not_run("the example", f"{tool} is not on the PATH")
    make(next(client for client in CLIENTS if client.name == "typescript"))
    (step,) = steps(section("An example", (_CLIENTS / "README.md").read_text(encoding="utf-8")))

    done = subprocess.run(
        [_CLIENTS / "three_services.sh"],
        env=compilers | {"PATH": os.pathsep.join([f"{sys.prefix}/bin", compilers["PATH"]])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert (done.stdout, done.returncode) == (step.shown, 0), done.stderr
