"""Makes the descriptor set from which Maven generates the Java stubs: strip_image.py IMAGE DESCRIPTOR_SET.

`buf build` cannot omit types. So this drops the validation rules and policies, which only the server checks, and the
files that nothing imports any more. Comments stay: they become Javadoc.
"""

from __future__ import annotations

import sys
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

DROPPED = frozenset({"buf/validate/validate.proto", "muniment/v1/policy.proto"})


def strip(image: FileDescriptorSet) -> FileDescriptorSet:
    """The contract and what it imports, without custom options."""
    image.DiscardUnknownFields()  # custom options are unknown here
    own = [file for file in image.file if file.name.startswith("muniment/") and file.name not in DROPPED]
    for file in own:
        _drop_imports(file)
    wanted = {file.name for file in own}.union(*(file.dependency for file in own))
    return FileDescriptorSet(file=[file for file in image.file if file.name in wanted])


def _drop_imports(file: FileDescriptorProto) -> None:
    kept = [name for name in file.dependency if name not in DROPPED]
    del file.dependency[:]
    file.dependency.extend(kept)


def main() -> None:
    """Read IMAGE and write DESCRIPTOR_SET. The same image always produces the same bytes."""
    image, stripped = map(Path, sys.argv[1:])
    stripped.write_bytes(strip(FileDescriptorSet.FromString(image.read_bytes())).SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
