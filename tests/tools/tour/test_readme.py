"""Every command that the README and the tour show is run, and prints what they show."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

import muniment
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.postgres import roles
from tests.support.certificates import make as make_certificate
from tests.tools.tour import go_tools
from tests.tools.tour.conftest import recipe
from tests.tools.tour.readme import README, RECIPES, ROOT, TOUR, Step, section, steps
from tests.tools.tour.shell import walk

TEXT = README.read_text(encoding="utf-8")
TOUR_TEXT = TOUR.read_text(encoding="utf-8")
_SEALED = "until muniment audit checkpoint --tenant development --json | grep -q .; do sleep 1; done\n"
"""A reader takes longer to come to checkpoints than the first seal takes."""
WAYS = {"", "server", "docker", "install", "dist", "production", "client"}
"""The blocks of the README by their second word: each has a test below, `dist` and `docker` in tests/operations."""


@pytest.mark.proof
def test_the_quickstart_and_what_operators_do(folder, exported):
    walk([*steps(section("Quickstart", TEXT)), *steps(section("Install and operate", TEXT))], folder, exported)


@pytest.mark.proof
def test_what_operators_look_at_erase_and_bring_back_after_the_quickstart(folder, exported):
    operations = (ROOT / "service" / "docs" / "operations.md").read_text(encoding="utf-8")
    titles = ("Look at one agent", "Erase", "Undelete", "Verify the audit log")
    blocks = [step for title in titles for step in steps(section(title, operations))]
    sealed = Step("sh", "", _SEALED, None)

    assert len(blocks) > len(titles)
    walk([*steps(section("Quickstart", TEXT)), sealed, *blocks], folder, exported)


def test_the_quickstart_has_eight_lines_at_most():
    lines = [line for step in steps(section("Quickstart", TEXT), "server") for line in step.text.splitlines()]

    assert lines[0] == "make run"
    assert len(lines) <= 8


@pytest.mark.proof
@pytest.mark.parametrize("tool", ["grpcurl", "buf"])
def test_the_tour(tool, folder, exported, request):
    """From the first block to the last, with one tool or the other."""
    if tool == "grpcurl":
        built = request.config.cache.mkdir("grpcurl")
        go_tools.build("grpcurl", built)
        exported["PATH"] += f"{os.pathsep}{built}"
    blocks = [*steps(TOUR_TEXT, tool)]

    assert tool in {step.way for step in blocks}
    walk(blocks, folder, exported)


@pytest.mark.proof
def test_the_recipes(folder, exported):
    walk([*steps(RECIPES.read_text(encoding="utf-8"))], folder, exported)


def test_make_runs_what_the_tests_run():
    assert recipe("run")[:3] == [".venv/bin/muniment", "serve", "--dev"]
    assert recipe("test")[:4] == [".venv/bin/python", "-m", "pytest", "-q"]


def test_no_block_is_left_out():
    ways = {step.way for step in steps(TEXT, *WAYS, "buf", "grpcurl")}

    assert ways == WAYS
    assert set(re.findall(r"^```sh (\w+)$", TEXT, re.MULTILINE)) == WAYS - {""}
    assert set(re.findall(r"^```sh (\w+)$", TOUR_TEXT, re.MULTILINE)) == {"buf", "grpcurl"}


@pytest.mark.proof
def test_server_and_client_can_be_installed_as_shown():
    """Without the network: what it depends on is in the environment of these tests."""
    blocks = [step for step in steps(section("Install and operate", TEXT), "install") if step.way == "install"]
    offline = {"PIP_DRY_RUN": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_QUIET": "1"}
    done = subprocess.run(
        ["bash", "-e", "-c", "".join(block.text for block in blocks)],
        cwd=ROOT,
        env={**os.environ, **offline, "PATH": os.pathsep.join([f"{sys.prefix}/bin", os.environ["PATH"]])},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_grpcurl_is_the_version_that_is_tested():
    (version,) = re.findall(r"go install\sgithub.com/fullstorydev/grpcurl/cmd/grpcurl@(\S+?)`", TOUR_TEXT)

    assert f"github.com/fullstorydev/grpcurl {version} " in (go_tools.TOOLS / "go.mod").read_text()


@pytest.mark.proof
@pytest.mark.skipif(shutil.which("openssl") is None, reason="NOT RUN: no openssl to make certificates with")
def test_production(folder, environment):
    """The block that ends in a server of TLS, over a Postgres that it did not start."""
    block, call = (step for step in steps(section("Install and operate", TEXT), "production", "client") if step.way)
    make_certificate(folder, "ca", "-addext", "basicConstraints=critical,CA:TRUE")
    make_certificate(folder, "server", "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
    with EmbeddedPostgres(folder / "elsewhere", roles=roles.ALL) as postgres:
        environment |= {
            "PATH": f"{folder}/.venv/bin{os.pathsep}{environment['PATH']}",
            "ADMIN_URL": url_of(postgres.conninfo(user="postgres")),
            "DATABASE_URL": url_of(postgres.conninfo(user="postgres"), "user"),
            "LISTEN": "127.0.0.1:0",
        }
        with serving(block.text, folder, environment) as (output, address):
            (key,) = re.findall(r"mun_h_\S+", output)
            walk([call], folder, environment | {"ADDRESS": address, "KEY": key})
            with muniment.connect(address, host_key=key, tls=muniment.TLS(ca=str(folder / "ca.pem"))) as host:
                host.create_agent("alice")
                with pytest.raises(muniment.CeilingExceeded):
                    host.open_session("alice", muniment.Classification.RESTRICTED)
                with host.open_session("ada", muniment.Classification.PUBLIC) as session:
                    session.save_memory("plan", "ship on Friday")
            administrator = {"MUNIMENT_DATABASE_URL": environment["ADMIN_URL"], "MUNIMENT_PASSFILE": "passfile"}
            walk([operators_step()], folder, environment | administrator)


def operators_step() -> Step:
    """What operators run, but for what needs metrics or a host key, for the tenant of the production block."""
    (block,) = (step for step in steps(section("Install and operate", TEXT)) if "muniment doctor" in step.text)
    lines = [line for line in block.text.splitlines(keepends=True) if not re.match("muniment (status|agent)", line)]
    assert len(lines) == len(block.text.splitlines()) - 2
    return replace(block, text="".join(lines).replace("development", "acme"))


def url_of(conninfo: str, *without: str) -> str:
    """A conninfo as a URL, some of it left out."""
    given = {name: value for name, value in conninfo_to_dict(conninfo).items() if name not in without}
    return f"postgresql:///?{urlencode(given)}"


@contextmanager
def serving(block: str, folder: Path, environment: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What a block says whose last command serves, and where; the server is ended with ours."""
    script = re.sub(r"muniment serve", "exec muniment serve", block)
    output = ""
    with (
        (folder / "errors").open("w+") as errors,
        subprocess.Popen(
            ["bash", "-e", "-c", script], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        while "serves on" not in output:
            line = process.stdout.readline()
            assert line, (folder / "errors").read_text()
            output += line
        yield output, output.rpartition("serves on ")[2].split()[0]
        process.terminate()
        assert process.wait(30) == 0
