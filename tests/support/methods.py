"""The methods of the contract, and who may call them. monitor/policies.txt states it a second time."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor

from muniment_server.monitor.policy import policies
from muniment_server.transport.server import SERVICES

POLICIES = {method.name: method for method in policies(SERVICES).values()}
METHODS = sorted(POLICIES)
FOR_HOSTS = {name for name, method in POLICIES.items() if not method.for_sessions}
FOR_SESSIONS = {name for name, method in POLICIES.items() if not method.for_hosts}
FOR_BOTH = POLICIES.keys() - FOR_HOSTS - FOR_SESSIONS


def request_of(rpc: str) -> Descriptor:
    """The message that *rpc* takes."""
    (method,) = (method for service in SERVICES for method in service.methods if method.name == rpc)
    return method.input_type


def takes_etag(rpc: str) -> bool:
    """Whether the request of *rpc* may name the version that it changes."""
    return "etag" in request_of(rpc).fields_by_name
