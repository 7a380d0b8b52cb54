"""A protoc plugin for Python services: a shim around the generator inside grpcio-tools.

grpcio-tools contains the generator only as part of its own protoc, which buf cannot call.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from google.protobuf import descriptor_pb2
from google.protobuf.compiler import plugin_pb2


def main() -> None:
    """Read the request of buf from standard input, and write the response."""
    request = plugin_pb2.CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
    sys.stdout.buffer.write(generate(request).SerializeToString())


def generate(request: plugin_pb2.CodeGeneratorRequest) -> plugin_pb2.CodeGeneratorResponse:
    """The generated files, or the error that protoc printed."""
    response = plugin_pb2.CodeGeneratorResponse(
        supported_features=plugin_pb2.CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL,
    )
    with tempfile.TemporaryDirectory() as folder:
        image, out = Path(folder, "image.binpb"), Path(folder, "out")
        out.mkdir()
        image.write_bytes(descriptor_pb2.FileDescriptorSet(file=request.proto_file).SerializeToString())
        protoc = run_protoc(image, out, request.file_to_generate)
        if protoc.returncode != 0:
            response.error = protoc.stderr
            return response
        for package in sorted({Path(name).parent.as_posix() for name in request.file_to_generate}):
            response.file.add(name=f"{package}/__init__.py", content='"""Generated from the contract."""\n')
        for path in sorted(out.rglob("*.py")):
            response.file.add(name=path.relative_to(out).as_posix(), content=path.read_text())
    return response


def run_protoc(image: Path, out: Path, names: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Run protoc of grpcio-tools on the files *names* of *image*."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"--descriptor_set_in={image}",
            f"--grpc_python_out={out}",
            *names,
        ],
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    main()
