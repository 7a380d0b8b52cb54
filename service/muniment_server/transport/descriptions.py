"""What reflection describes: the contract, health, and reflection itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from muniment_server.monitor.validation import load_pool

_V1 = "grpc.reflection.v1.ServerReflection"
SERVED = (reflection.SERVICE_NAME, _V1)
"""The versions of reflection that are served. Their messages differ in the package alone, so one class serves both."""


class Descriptions:
    """Answers as grpc's own servicer, and finds methods by name, too, which ghz and `grpcurl describe` ask for."""

    def __init__(self, services: Iterable[str], pool: DescriptorPool) -> None:
        """*services* are listed. Everything in *pool* can be described."""
        self._pool = pool
        self._servicer = reflection.ReflectionServicer(services, pool)

    def answers(
        self, requests: Iterable[ServerReflectionRequest], context: grpc.ServicerContext
    ) -> Iterator[ServerReflectionResponse]:
        """The answer to each request of one stream."""
        for request in requests:
            for answer in self._servicer.ServerReflectionInfo(iter([self._of_service(request)]), context):
                answer.original_request.CopyFrom(request)
                yield answer

    def _of_service(self, request: ServerReflectionRequest) -> ServerReflectionRequest:
        """*request*, which asks for the service of a method if it asks for the method."""
        with contextlib.suppress(KeyError):
            method = self._pool.FindMethodByName(request.file_containing_symbol)
            return ServerReflectionRequest(file_containing_symbol=method.containing_service.full_name)
        return request


def of_everything(services: Iterable[str]) -> Descriptions:
    """The contract with its rules, health, and reflection itself."""
    pool = load_pool()
    for module in (health_pb2, reflection_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    return Descriptions((*services, health.SERVICE_NAME, *SERVED), pool)
