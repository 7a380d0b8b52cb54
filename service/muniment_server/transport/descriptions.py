"""Answers to reflection, from descriptor files that have the comments of the contract.

grpc's own servicer sends no comments, since its descriptor pool has none, and finds neither methods nor fields by name,
which ghz and `grpcurl describe` ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from types import ModuleType

import grpc
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from muniment_server.monitor.validation import contract_files

_V1 = "grpc.reflection.v1.ServerReflection"
SERVED = (reflection.SERVICE_NAME, _V1)
"""The versions of reflection that are served. Their messages differ in the package alone, so one class serves both."""


class Descriptions:
    """Descriptor files, with an index of what each one declares."""

    def __init__(self, files: Iterable[FileDescriptorProto], services: Iterable[str]) -> None:
        """*services* are listed. Everything in *files* can be described."""
        files = tuple(files)
        self._contents = {file.name: file.SerializeToString() for file in files}
        self._imports = {file.name: tuple(file.dependency) for file in files}
        self._file_of = {symbol: file.name for file in files for symbol in _symbols(file)}
        self._types = {name for file in files for name, _ in _messages(file)}
        self._extensions = {
            (extension.extendee.removeprefix("."), extension.number): file.name
            for file in files
            for extension in _extensions(file)
        }
        self._services = sorted(services)

    def answers(self, requests: Iterator[ServerReflectionRequest], _: object) -> Iterator[ServerReflectionResponse]:
        """The answer to each request of one stream. What a file imports is sent once in a stream."""
        sent: set[str] = set()
        for request in requests:
            answer = ServerReflectionResponse(valid_host=request.host, original_request=request)
            try:
                self._fill(answer, request, sent)
            except KeyError:
                _fail(answer, grpc.StatusCode.NOT_FOUND, "there is nothing of this name")
            yield answer

    def _fill(self, answer: ServerReflectionResponse, request: ServerReflectionRequest, sent: set[str]) -> None:
        """Put into *answer* what *request* asks for. Raises KeyError if there is nothing of this name."""
        match request.WhichOneof("message_request"):
            case "list_services":
                for name in self._services:
                    answer.list_services_response.service.add(name=name)
            case "file_by_filename":
                self._add_files(answer, request.file_by_filename, sent)
            case "file_containing_symbol":
                self._add_files(answer, self._file_of[request.file_containing_symbol], sent)
            case "file_containing_extension":
                asked = request.file_containing_extension
                self._add_files(answer, self._extensions[asked.containing_type, asked.extension_number], sent)
            case "all_extension_numbers_of_type":
                self._add_numbers(answer, request.all_extension_numbers_of_type)
            case _:
                _fail(answer, grpc.StatusCode.INVALID_ARGUMENT, "the request asks for nothing")

    def _add_files(self, answer: ServerReflectionResponse, name: str, sent: set[str]) -> None:
        """Add a file, and those that it imports, at any depth, unless they were sent."""
        due, found = [name], {name}
        for each in due:
            answer.file_descriptor_response.file_descriptor_proto.append(self._contents[each])
            new = [imported for imported in self._imports[each] if imported not in sent | found]
            due += new
            found.update(new)
        sent |= found

    def _add_numbers(self, answer: ServerReflectionResponse, extended: str) -> None:
        if extended not in self._types:
            raise KeyError(extended)
        answer.all_extension_numbers_response.base_type_name = extended
        answer.all_extension_numbers_response.extension_number.extend(
            sorted(number for name, number in self._extensions if name == extended)
        )


def of_everything(services: Iterable[str]) -> Descriptions:
    """The contract with its rules and comments, health, and reflection itself."""
    files = (*contract_files().file, _file(health_pb2), _file(reflection_pb2))
    return Descriptions(files, (*services, health.SERVICE_NAME, *SERVED))


def of_health() -> Descriptions:
    """The health service alone."""
    return Descriptions((_file(health_pb2),), (health.SERVICE_NAME,))


def _file(module: ModuleType) -> FileDescriptorProto:
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)


def _fail(answer: ServerReflectionResponse, code: grpc.StatusCode, text: str) -> None:
    answer.error_response.error_code = code.value[0]
    answer.error_response.error_message = text


def _symbols(file: FileDescriptorProto) -> Iterator[str]:
    """The full names of all that *file* declares."""
    scope = _scope(file)
    for service in file.service:
        yield from _within(scope, service)
    for name, message in _messages(file):
        yield name
        yield from (f"{name}.{field.name}" for field in chain(message.field, message.extension))
        yield from (f"{name}.{oneof.name}" for oneof in message.oneof_decl)
        yield from chain.from_iterable(_enum(f"{name}.", enum) for enum in message.enum_type)
    yield from chain.from_iterable(_enum(scope, enum) for enum in file.enum_type)
    yield from (f"{scope}{extension.name}" for extension in file.extension)


def _within(scope: str, service: ServiceDescriptorProto) -> Iterator[str]:
    yield f"{scope}{service.name}"
    yield from (f"{scope}{service.name}.{method.name}" for method in service.method)


def _enum(scope: str, enum: EnumDescriptorProto) -> Iterator[str]:
    """An enum, and its values, which are declared beside it."""
    yield f"{scope}{enum.name}"
    yield from (f"{scope}{value.name}" for value in enum.value)


def _messages(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    """The messages of *file* by full name, at any depth."""
    due = [(f"{_scope(file)}{message.name}", message) for message in file.message_type]
    for name, message in due:
        yield name, message
        due += [(f"{name}.{nested.name}", nested) for nested in message.nested_type]


def _extensions(file: FileDescriptorProto) -> Iterator[FieldDescriptorProto]:
    return chain(file.extension, *(message.extension for _, message in _messages(file)))


def _scope(file: FileDescriptorProto) -> str:
    return f"{file.package}." if file.package else ""
