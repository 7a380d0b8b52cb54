"""The method policy: who may call what. Declared in the contract, checked when the server starts, denied by default."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from muniment.v1 import classification_pb2, policy_pb2

_LEVEL = classification_pb2.Classification.DESCRIPTOR.full_name


class PolicyError(RuntimeError):
    """The contract's policy has a hole. The server does not start."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method and its policy."""

    path: str
    """As on the wire: `/muniment.v1.MemoryService/GetMemory`."""
    name: str
    """As in the audit: `GetMemory`."""
    for_hosts: bool
    for_sessions: bool
    request_type: str
    """The full name of the request message."""
    parse: Callable[[bytes], Message]
    takes_stream: bool = False
    """Whether the caller sends a stream of requests."""

    @classmethod
    def beside(cls, name: str, *, for_sessions: bool) -> Method:
        """What stands for a call that is not of the contract, so that it meets the same walls."""
        return cls("", name, for_hosts=True, for_sessions=for_sessions, request_type="", parse=lambda _: Message())


def policies(services: Iterable[ServiceDescriptor]) -> Mapping[str, Method]:
    """The methods of *services* by path. Raises PolicyError naming every method whose policy has a hole."""
    methods = [method for service in services for method in service.methods]
    holes = [f"{method.full_name}: {hole}" for method in methods for hole in _holes(method)]
    if holes:
        raise PolicyError("methods without a sound policy: " + "; ".join(holes))
    return {entry.path: entry for entry in map(_method, methods)}


def _method(method: MethodDescriptor) -> Method:
    declared = _declared(method)
    assert method.containing_service is not None
    return Method(
        path=f"/{method.containing_service.full_name}/{method.name}",
        name=method.name,
        for_hosts=policy_pb2.PRINCIPAL_HOST in declared.principals,
        for_sessions=policy_pb2.PRINCIPAL_SESSION in declared.principals,
        request_type=method.input_type.full_name,
        parse=GetMessageClass(method.input_type).FromString,
        takes_stream=method.client_streaming,
    )


def _declared(method: MethodDescriptor) -> policy_pb2.MethodPolicy:
    return method.GetOptions().Extensions[policy_pb2.policy]


def _holes(method: MethodDescriptor) -> Iterator[str]:
    declared = _declared(method)
    if not declared.principals or policy_pb2.PRINCIPAL_UNSPECIFIED in declared.principals:
        yield "no principal"
    if declared.flow == policy_pb2.FLOW_UNSPECIFIED:
        yield "no flow"
    if declared.flow != policy_pb2.FLOW_CONTROL and list(declared.principals) != [policy_pb2.PRINCIPAL_SESSION]:
        yield "items flow to and from sessions only"
    if method.server_streaming:
        yield "no wall guards a stream of answers"
    if policy_pb2.PRINCIPAL_SESSION in declared.principals and names_level(method.input_type):
        yield "a session could name a level"


def names_level(message: Descriptor, seen: frozenset[str] = frozenset()) -> bool:
    """Whether *message* has a field of type Classification, at any depth."""
    if message.full_name in seen:
        return False
    return any(
        is_level(field)
        or (field.message_type is not None and names_level(field.message_type, seen | {message.full_name}))
        for field in message.fields
    )


def is_level(field: FieldDescriptor) -> bool:
    """Whether *field* is of type Classification."""
    return field.enum_type is not None and field.enum_type.full_name == _LEVEL
