"""Makes the two descriptor sets of the contract: descriptor_sets.py IMAGE API RULES.

API is for other languages and for Java: the contract without its validation rules, which only the server needs. RULES
is for the server: everything. Both have the comments of the contract, which generators write into code. IMAGE is what
`buf build` makes of the whole workspace.
"""

from __future__ import annotations

import sys
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet, SourceCodeInfo

_SERVER_ONLY = "buf/validate/validate.proto"
_ERROR_DETAILS = frozenset({"google/rpc/error_details.proto", "google/rpc/status.proto"})
"""No file of the contract imports these, but every error is sent as one of their messages."""
_WITHOUT_COMMENTS = ("buf/", "google/protobuf/")
"""Longer than everything else together, and known to every generator."""


def api(image: FileDescriptorSet) -> FileDescriptorSet:
    """The contract, the error details, and what they import, without validation rules.

    `buf build` cannot omit types, hence this.
    """
    image = copied(image)
    own = [file for file in image.file if file.name in _ERROR_DETAILS or file.name.startswith("muniment/")]
    for file in own:
        _drop_rules(file)
    wanted = {file.name for file in own}.union(*(file.dependency for file in own))
    return FileDescriptorSet(file=[file for file in image.file if file.name in wanted])


def copied(image: FileDescriptorSet) -> FileDescriptorSet:
    """A copy of *image* in which only comments have a location. Positions in the source are of use to nobody."""
    copy = FileDescriptorSet()
    copy.CopyFrom(image)
    for file in copy.file:
        kept = [] if file.name.startswith(_WITHOUT_COMMENTS) else _commented(file)
        file.ClearField("source_code_info")
        if kept:
            file.source_code_info.location.extend(kept)
    return copy


def _drop_rules(file: FileDescriptorProto) -> None:
    for message in file.message_type:
        message.DiscardUnknownFields()  # the options of messages and fields; the policies of methods stay
    kept = [name for name in file.dependency if name != _SERVER_ONLY]
    del file.dependency[:]
    file.dependency.extend(kept)


def _commented(file: FileDescriptorProto) -> list[SourceCodeInfo.Location]:
    return [
        location
        for location in file.source_code_info.location
        if location.leading_comments or location.trailing_comments
    ]


def main() -> None:
    """Read IMAGE and write the other two. The same image always produces the same bytes."""
    image_file, api_file, rules_file = map(Path, sys.argv[1:])
    image = FileDescriptorSet.FromString(image_file.read_bytes())
    api_file.write_bytes(api(image).SerializeToString(deterministic=True))
    rules_file.write_bytes(copied(image).SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
