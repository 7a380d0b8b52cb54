"""The contract as the generators of documents read it: its files, with options and comments."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

PACKAGE = ".muniment.v1."
_ABOUT_POLICIES = "muniment/v1/policy.proto"
SERVICE, MESSAGE, ENUM = 6, 4, 5
"""How the paths of services, messages and enums begin in a file. Those of their members go on with MEMBER."""
MEMBER = 2
AN_ID = r"^[^\x00- ~\x7F][^\x00- \x7F]{0,255}$"
_CALLERS = {1: "hosts", 2: "sessions"}
_FLOWS = {1: "reads", 2: "writes", 3: "control"}


class Contract:
    """The files of the contract."""

    def __init__(self, files: FileDescriptorSet) -> None:
        self._pool = DescriptorPool()
        for file in files.file:
            self._pool.AddSerializedFile(file.SerializeToString())
        self.files = [file for file in files.file if file.name.startswith("muniment/") and file.name != _ABOUT_POLICIES]

    def option(self, of: Message, name: str) -> Any:
        """The custom option *name* of a field or a method."""
        options = of.options  # type: ignore[attr-defined]
        known = GetMessageClass(self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name))
        extensions: Any = known.FromString(options.SerializeToString()).Extensions
        return extensions[self._pool.FindExtensionByName(name)]

    def policy(self, method: MethodDescriptorProto) -> str:
        """Who may call a method, in which direction information flows, and whether the call may be repeated."""
        policy = self.option(method, "muniment.v1.policy")
        callers = " and ".join(_CALLERS[each] for each in policy.principals)
        repeated = "repeatable" if policy.may_be_repeated else "not repeatable"
        return f"{callers.capitalize()}: {_FLOWS[policy.flow]}, {repeated}."


def comment_at(file: FileDescriptorProto, *path: int) -> str:
    """The comment at *path*, as paragraphs of one line each."""
    comments = (each.leading_comments for each in file.source_code_info.location if list(each.path) == list(path))
    paragraphs = next(comments, "").strip().split("\n\n")
    return "\n\n".join(" ".join(line.strip() for line in each.splitlines()) for each in paragraphs)
