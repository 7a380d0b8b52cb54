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


class EncodedMessage(bytes):
    """A message in its binary encoding, which is forwarded as it is. `encoded` makes the subclass of a message type."""

    message: type[Message]

    @classmethod
    def of_json(cls, text: bytes) -> EncodedMessage:
        """Encode the message that *text* is in JSON. Raises ParseError, also for a field that the contract lacks."""
        return cls(json_format.Parse(text, cls.message()).SerializeToString())

    def to_json(self) -> bytes:
        """The message in JSON."""
        return json_format.MessageToJson(self.message.FromString(self), indent=None, ensure_ascii=False).encode()


def methods() -> Iterator[MethodDescriptor]:
    """All methods of all services."""
    for module in pkgutil.iter_modules(v1.__path__, "muniment.v1."):
        if module.name.endswith("_service_pb2"):
            for service in importlib.import_module(module.name).DESCRIPTOR.services_by_name.values():
                yield from service.methods


def path_of(method: MethodDescriptor) -> str:
    """The path of a method, which is the same with HTTP and gRPC."""
    return f"/{method.containing_service.full_name}/{method.name}"


def encoded(descriptor: Descriptor) -> type[EncodedMessage]:
    """The class of encoded messages of one type."""
    return type(descriptor.name, (EncodedMessage,), {"message": GetMessageClass(descriptor)})
