"""The methods of the contract, with their messages."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from muniment import v1


class Passing(bytes):
    """A message that passes as it is, in bytes. Each type of the contract has a class of its own."""

    message: type[Message]

    @classmethod
    def of_json(cls, text: bytes) -> Passing:
        """The message that *text* is. Raises ParseError, also for a field that the contract does not have."""
        return cls(json_format.Parse(text, cls.message()).SerializeToString())

    def to_json(self) -> bytes:
        """The message as JSON."""
        return json_format.MessageToJson(self.message.FromString(self), indent=None, ensure_ascii=False).encode()


def methods() -> Iterator[MethodDescriptor]:
    """All methods of all services."""
    for module in pkgutil.iter_modules(v1.__path__, "muniment.v1."):
        if module.name.endswith("_service_pb2"):
            for service in importlib.import_module(module.name).DESCRIPTOR.services_by_name.values():
                yield from service.methods


def path_of(method: MethodDescriptor) -> str:
    """Where a method is called, by HTTP as by gRPC."""
    return f"/{method.containing_service.full_name}/{method.name}"


def passing(descriptor: Descriptor) -> type[Passing]:
    """The class of messages of one type."""
    return type(descriptor.name, (Passing,), {"message": GetMessageClass(descriptor)})
