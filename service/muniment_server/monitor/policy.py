"""The method policy: who may call what. Declared in the contract, checked at start-up, denied by default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor, ServiceDescriptor

from muniment.v1 import classification_pb2, policy_pb2
from muniment_server.domain.principals import HostIdentity, SessionIdentity

_LEVEL = classification_pb2.Classification.DESCRIPTOR.full_name
_INTEGRITY = classification_pb2.Integrity.DESCRIPTOR.full_name


class PolicyError(RuntimeError):
    """The contract's policy has a gap. The server does not start."""


class PolicyViolation(RuntimeError):
    """A servicer did something that its method's policy does not allow. A fault of the server: INTERNAL."""


class Flow(IntEnum):
    """What a method does with items. The numbers are those of the contract."""

    READ = policy_pb2.FLOW_READ
    WRITE = policy_pb2.FLOW_WRITE
    CONTROL = policy_pb2.FLOW_CONTROL


@dataclass(frozen=True, slots=True)
class Method:
    """One method and its policy."""

    path: str
    """The path on the wire: `/muniment.v1.MemoryService/GetMemory`."""
    service: str
    """The service that it is a method of: `MemoryService`."""
    name: str
    """The name in the audit log: `GetMemory`."""
    flow: Flow
    for_hosts: bool
    for_sessions: bool
    request_type: str
    """The full name of the request message."""
    declared: policy_pb2.MethodPolicy
    """The whole option. What the monitor enforces is in the fields above; others read from it what they need."""
    takes_stream: bool = False
    """Whether the caller sends a stream of requests."""

    def allows(self, principal: HostIdentity | SessionIdentity) -> bool:
        """Whether *principal* may call the method: by its kind, and a host by the service that its key is for."""
        if isinstance(principal, SessionIdentity):
            return self.for_sessions
        return self.for_hosts and principal.only_service in {None, self.service}

    @classmethod
    def outside_the_contract(cls, name: str, *, for_sessions: bool) -> Method:
        """A stand-in for calls that the contract does not define, so that they pass the same interceptors."""
        return cls("", "", name, Flow.CONTROL, True, for_sessions, request_type="", declared=policy_pb2.MethodPolicy())


def policies(services: Iterable[ServiceDescriptor]) -> Mapping[str, Method]:
    """The methods of *services* by path. Raises PolicyError, which names every method whose policy has a gap."""
    methods = [method for service in services for method in service.methods]
    gaps = [f"{method.full_name}: {gap}" for method in methods for gap in _gaps(method)]
    if gaps:
        raise PolicyError("methods without a sound policy: " + "; ".join(gaps))
    return {entry.path: entry for entry in map(_method, methods)}


def _method(method: MethodDescriptor) -> Method:
    declared = _declared(method)
    assert method.containing_service is not None
    return Method(
        path=f"/{method.containing_service.full_name}/{method.name}",
        service=method.containing_service.name,
        name=method.name,
        flow=Flow(declared.flow),
        for_hosts=policy_pb2.PRINCIPAL_HOST in declared.principals,
        for_sessions=policy_pb2.PRINCIPAL_SESSION in declared.principals,
        request_type=method.input_type.full_name,
        declared=declared,
        takes_stream=method.client_streaming,
    )


def _declared(method: MethodDescriptor) -> policy_pb2.MethodPolicy:
    return method.GetOptions().Extensions[policy_pb2.policy]


def _gaps(method: MethodDescriptor) -> Iterator[str]:
    declared = _declared(method)
    if not declared.principals or policy_pb2.PRINCIPAL_UNSPECIFIED in declared.principals:
        yield "no principal"
    if declared.flow == policy_pb2.FLOW_UNSPECIFIED:
        yield "no flow"
    if declared.flow != policy_pb2.FLOW_CONTROL and list(declared.principals) != [policy_pb2.PRINCIPAL_SESSION]:
        yield "items flow to and from sessions only"
    if method.server_streaming:
        yield "the egress filter does not check a stream of answers"
    if policy_pb2.PRINCIPAL_SESSION in declared.principals and names_label(method.input_type):
        yield "a session could name a level or an integrity"


def names_label(message: Descriptor | None, seen: frozenset[str] = frozenset()) -> bool:
    """Whether *message* has a field of type Classification or Integrity, at any depth. None has no fields."""
    if message is None or message.full_name in seen:
        return False
    seen |= {message.full_name}
    return any(
        is_level(field) or is_integrity(field) or names_label(field.message_type, seen) for field in message.fields
    )


def is_level(field: FieldDescriptor) -> bool:
    """Whether *field* is of type Classification."""
    return field.enum_type is not None and field.enum_type.full_name == _LEVEL


def is_integrity(field: FieldDescriptor) -> bool:
    """Whether *field* is of type Integrity."""
    return field.enum_type is not None and field.enum_type.full_name == _INTEGRITY
