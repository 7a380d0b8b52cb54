"""The commands for other languages and other people's tools, as proto/README.md and operations.md show them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.conformance.servers import data_folder, serving
from tests.tools.tour import go_tools
from tests.tools.tour.readme import README, ROOT, Step, section, steps
from tests.tools.tour.shell import walk

pytestmark = pytest.mark.proof

CONTRACT = section("Any other language", (ROOT / "proto" / "README.md").read_text(encoding="utf-8"))
OPERATIONS = (ROOT / "service" / "docs" / "operations.md").read_text(encoding="utf-8")
QUICKSTART = list(steps(section("Quickstart", README.read_text(encoding="utf-8"))))
PUBLIC_SESSION = Step("sh", "", "export MUNIMENT_TOKEN=$(muniment session open ada --taint public --quiet)\n", None)
AS_HOST = ("-expand-headers", "-H", "authorization: Bearer ${KEY}")


@pytest.fixture(scope="module")
def tools(request) -> Path:
    """A folder with grpcurl and ghz."""
    built: Path = request.config.cache.mkdir("go-tools")
    for name in go_tools.MODULES:
        go_tools.build(name, built)
    return built


@pytest.fixture
def repository(folder):
    """The folder of the tour, with the contract in it."""
    shutil.copytree(ROOT / "proto", folder / "proto", ignore=shutil.ignore_patterns("tools"))
    return folder


@pytest.fixture
def on_path(exported, tools):
    return {**exported, "PATH": f"{exported['PATH']}{os.pathsep}{tools}"}


@pytest.mark.parametrize("tool", ["protoc", "buf"])
def test_stubs_are_generated_as_shown(tool, repository, environment):
    """By the protoc of Debian 12, which refuses the sources."""
    for program in ("protoc", "grpc_ruby_plugin", "ruby"):
        if shutil.which(program) is None:
            go_tools.not_run("protoc", f"there is no {program} on the PATH")
    path = f"{repository}/.venv/bin{os.pathsep}{environment['PATH']}"

    walk([step for step in steps(CONTRACT, tool) if step.way == tool], repository, {**environment, "PATH": path})

    loaded = subprocess.run(
        [
            "ruby",
            "-I",
            "stubs",
            "-e",
            'require "muniment/v1/memory_service_pb"; puts Muniment::V1::Memory.descriptor.name',
        ],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (loaded.stdout, loaded.stderr) == ("muniment.v1.Memory\n", "")


def test_a_call_without_stubs_and_without_reflection(repository, on_path):
    call = [step for step in steps(CONTRACT, "grpcurl") if step.way == "grpcurl"]

    walk([*QUICKSTART, PUBLIC_SESSION, *call], repository, on_path)


def test_health_reflection_and_load(folder, on_path):
    blocks = [step for title in ("Health", "Reflection", "Load by ghz") for step in steps(section(title, OPERATIONS))]

    assert len(blocks) == 3
    walk([*QUICKSTART, PUBLIC_SESSION, *blocks], folder, on_path)


def test_no_block_is_left_out():
    assert set(re.findall(r"^```sh ?(\w*)$", CONTRACT, re.MULTILINE)) == {"protoc", "buf", "grpcurl"}


def test_ghz_is_the_version_that_is_tested():
    (version,) = re.findall(r"go install\s\S+/ghz/cmd/ghz@(\S+?)`", OPERATIONS)

    assert f"{go_tools.MODULES['ghz']} {version} " in (go_tools.TOOLS / "go.mod").read_text()


@pytest.fixture(scope="module")
def server():
    """A server with TLS, not in development: its reflection is for hosts."""
    with data_folder() as folder, serving("tls", folder) as server:
        yield server


@pytest.fixture
def run(server, tools):
    """What grpcurl or ghz says, called with a host key in the environment."""
    keys = server.keys()
    variables = server.environment(keys)

    def run(name, *arguments):
        trusting = ("-cacert" if name == "grpcurl" else "--cacert", variables["MUNIMENT_TLS_CA"])
        done = subprocess.run(
            [tools / name, *trusting, *arguments],
            env={"KEY": keys.own},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout + done.stderr

    return run


def test_grpcurl_describes_a_method_and_a_field_to_a_host(run, server):
    method = run("grpcurl", *AS_HOST, server.address, "describe", "muniment.v1.MemoryService.SaveMemory")
    field = run("grpcurl", *AS_HOST, server.address, "describe", "muniment.v1.Memory.key")

    assert "rpc SaveMemory ( .muniment.v1.SaveMemoryRequest )" in method
    assert "string key = 1" in field


def test_without_a_credential_it_finds_nothing(run, server):
    assert "Unauthenticated" in run("grpcurl", server.address, "list")


@pytest.mark.parametrize("by", ["reflection", "descriptor set"])
def test_ghz_calls(by, run, server, tmp_path):
    credential = f'{{"authorization": "Bearer {server.keys().own}"}}'
    (tmp_path / "metadata.json").write_text(credential)
    how = {
        "reflection": ("--reflect-metadata", credential),
        "descriptor set": ("--protoset", str(ROOT / "proto" / "api.binpb")),
    }
    call = ("--call", "muniment.v1.AgentService.ListAgents", "--metadata-file", str(tmp_path / "metadata.json"))

    assert "[OK]   20 responses" in run("ghz", *how[by], *call, "--total", "20", "--concurrency", "2", server.address)
