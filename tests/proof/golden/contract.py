"""The contract as its descriptors tell it: every RPC and who may call it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

import muniment.v1
from muniment.v1 import error_pb2, policy_pb2

LEVELS = {1: "PUBLIC", 2: "INTERNAL", 3: "CONFIDENTIAL", 4: "RESTRICTED"}
PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = LEVELS


def _services() -> Iterator[ServiceDescriptor]:
    for module in pkgutil.iter_modules(muniment.v1.__path__, "muniment.v1."):
        if module.name.endswith("_service_pb2"):
            yield from importlib.import_module(module.name).DESCRIPTOR.services_by_name.values()


METHODS: dict[str, MethodDescriptor] = {method.name: method for service in _services() for method in service.methods}
STREAMS = {name for name, method in METHODS.items() if method.client_streaming}
REASONS = {name.removeprefix("ERROR_REASON_") for name, number in error_pb2.ErrorReason.items() if number} - {
    "PROMPT_TOO_LARGE",  # no longer sent
    "AGENT_HELD",  # takes an operator: tests/calls/agents/test_retention.py
}


def path_of(rpc: str) -> str:
    """The path of an RPC on the wire. What is none of the contract is a path already."""
    return f"/{METHODS[rpc].containing_service.full_name}/{rpc}" if rpc in METHODS else rpc


def callers_of(rpc: str) -> set[str]:
    """The kinds of caller that may call an RPC: `host`, `session`."""
    principals = METHODS[rpc].GetOptions().Extensions[policy_pb2.policy].principals
    return {policy_pb2.Principal.Name(principal).removeprefix("PRINCIPAL_").lower() for principal in principals}
