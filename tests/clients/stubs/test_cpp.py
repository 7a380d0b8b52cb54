"""A program in C++, with stubs alone, calls a real server and reads the reason of an error."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_fixtures import dev, made_before, root_folder
from tests.support.commands import environment_in
from tests.tools.tour.readme import ROOT

__all__ = ["dev", "made_before", "root_folder"]

MISSING = [tool for tool in ("g++", "protoc", "grpc_cpp_plugin", "pkg-config") if shutil.which(tool) is None]
PROTOS = [f"muniment/v1/{each.name}" for each in (ROOT / "proto/muniment/v1").glob("*.proto")]
DETAILS = ["google/rpc/status.proto", "google/rpc/error_details.proto"]

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(
        bool(MISSING) and "REQUIRE_ALL_CLIENTS" not in os.environ, reason=f"C++ needs {', '.join(MISSING)}"
    ),
]


@pytest.mark.timeout(1800)
def test_a_program_in_c_plus_plus_saves_finds_and_misses(dev, request):
    program = build(request.config.cache.mkdir("stubs-in-cpp"))
    key = json.loads((dev.folder / ".muniment" / "development.json").read_text())["host_key"]
    environment = {**environment_in(dev.folder), "MUNIMENT_ADDRESS": dev.address, "MUNIMENT_HOST_KEY": key}

    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "plan: ship on Friday\nno-such-key: MEMORY_NOT_FOUND\n"


def build(folder: Path) -> Path:
    """Generate the stubs, and build what has changed since the last time."""
    plugin = f"--plugin=protoc-gen-grpc={shutil.which('grpc_cpp_plugin')}"
    stubs = ["protoc", f"--descriptor_set_in={ROOT / 'proto/api.binpb'}", "--cpp_out=.", "--grpc_out=.", plugin]
    run(folder, *stubs, *PROTOS, *DETAILS)
    shutil.copy(Path(__file__).with_name("main.cc"), folder)
    makefile = (
        "objects := $(patsubst %.cc,%.o,main.cc $(wildcard google/rpc/*.cc muniment/v1/*.cc))\n"
        "demo: $(objects)\n\tg++ $^ $$(pkg-config --libs grpc++ protobuf) -o $@\n"
        "%.o: %.cc\n\tg++ -std=c++17 -I. -c $< -o $@\n"
    )
    (folder / "Makefile").write_text(makefile)
    run(folder, "make", "--silent", f"-j{os.cpu_count()}", "demo")
    return folder / "demo"


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
