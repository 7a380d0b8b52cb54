"""A program in C++, with stubs alone, calls a real server and reads the reason of an error."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from tests.support.command_fixtures import dev, made_before, root_folder
from tests.support.commands import environment_in
from tests.tools.tour.readme import ROOT

__all__ = ["dev", "made_before", "root_folder"]

MISSING = [tool for tool in ("g++", "protoc", "grpc_cpp_plugin", "pkg-config") if shutil.which(tool) is None]
PROGRAM = Path(__file__).with_name("main.cc")
CONTRACT = ROOT / "proto/api.binpb"

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
    """Generate the stubs of what the program includes, and build what has changed since the last time."""
    protos = included()
    services = [name for name in protos if name.endswith("_service.proto")]
    stubs = ["protoc", f"--descriptor_set_in={CONTRACT}"]
    run(folder, *stubs, "--cpp_out=.", *protos)
    run(folder, *stubs, "--grpc_out=.", f"--plugin=protoc-gen-grpc={shutil.which('grpc_cpp_plugin')}", *services)
    shutil.copy(PROGRAM, folder)
    objects = ["main.o", *_objects(protos, ".pb.o"), *_objects(services, ".grpc.pb.o")]
    makefile = (
        f"demo: {' '.join(objects)}\n\tg++ $^ $$(pkg-config --libs grpc++ protobuf) -o $@\n"
        "%.o: %.cc\n\tg++ -std=c++17 -I. -c $< -o $@\n"
    )
    (folder / "Makefile").write_text(makefile)
    run(folder, "make", "--silent", f"-j{os.cpu_count()}", "demo")
    return folder / "demo"


def included() -> list[str]:
    """The files of the contract that the program includes, with those that they import: a third of all."""
    described = FileDescriptorSet.FromString(CONTRACT.read_bytes()).file
    imports = {each.name: list(each.dependency) for each in described if not each.name.startswith("google/protobuf/")}
    left = [f"{name}.proto" for name in re.findall(r'#include "(.+?)(?:\.grpc)?\.pb\.h"', PROGRAM.read_text())]
    found: set[str] = set()
    while left:
        name = left.pop()
        if name in imports and name not in found:
            found.add(name)
            left += imports[name]
    return sorted(found)


def _objects(protos: list[str], kind: str) -> list[str]:
    return [name.removesuffix(".proto") + kind for name in protos]


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
