"""What reflection answers to a host: every name of the contract, with its rules."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_database import DescriptorDatabase
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from muniment_server.transport.descriptions import SERVED
from muniment_server.transport.server import SERVICES

POLICY = {"containing_type": "google.protobuf.MethodOptions", "extension_number": 50200}


def ask(service, *questions, version=SERVED[0]):
    """The answers to *questions*, asked in one stream."""
    call: Any = service.channel.stream_stream(
        f"/{version}/ServerReflectionInfo",
        ServerReflectionRequest.SerializeToString,
        ServerReflectionResponse.FromString,
    )
    return list(call(iter([ServerReflectionRequest(**question) for question in questions]), timeout=20))


def files_in(answer):
    return [FileDescriptorProto.FromString(each) for each in answer.file_descriptor_response.file_descriptor_proto]


def file_of(service, symbol):
    (answer,) = ask(service, {"file_containing_symbol": symbol})
    return files_in(answer)[0]


@pytest.mark.parametrize("version", SERVED)
def test_both_versions_answer_alike(shared, version):
    questions = [
        {"list_services": ""},
        {"file_containing_symbol": "muniment.v1.MemoryService.SaveMemory"},
        {"file_containing_extension": POLICY},
        {"all_extension_numbers_of_type": "google.protobuf.MethodOptions"},
        {"file_by_filename": "no/such.proto"},
    ]

    assert ask(shared, *questions, version=version) == ask(shared, *questions)


@pytest.mark.parametrize(
    ("symbol", "file"),
    [
        ("muniment.v1.MemoryService", "muniment/v1/memory_service.proto"),
        ("muniment.v1.MemoryService.SaveMemory", "muniment/v1/memory_service.proto"),
        ("muniment.v1.Memory", "muniment/v1/memory.proto"),
        ("muniment.v1.Memory.key", "muniment/v1/memory.proto"),
        ("muniment.v1.NoteEdit.edit", "muniment/v1/note_service.proto"),
        ("muniment.v1.Classification", "muniment/v1/classification.proto"),
        ("muniment.v1.CLASSIFICATION_PUBLIC", "muniment/v1/classification.proto"),
        ("muniment.v1.policy", "muniment/v1/policy.proto"),
        ("google.rpc.BadRequest.FieldViolation.field", "google/rpc/error_details.proto"),
        ("grpc.health.v1.Health.Check", "grpc_health/v1/health.proto"),
        ("grpc.health.v1.HealthCheckResponse.SERVING", "grpc_health/v1/health.proto"),
        ("grpc.reflection.v1.ServerReflection", "grpc/reflection/v1/reflection.proto"),
    ],
)
def test_every_kind_of_name_is_found(shared, symbol, file):
    assert file_of(shared, symbol).name == file


def test_every_service_and_method_is_found_by_name(shared):
    names = [name for service in SERVICES for name in (service.full_name, *(m.full_name for m in service.methods))]

    answers = ask(shared, *({"file_containing_symbol": name} for name in names))

    assert [name for name, answer in zip(names, answers, strict=True) if not files_in(answer)] == []


def test_rules_are_carried(shared):
    """Clients do not carry them: a person at a terminal sees them here."""
    key = next(field for field in file_of(shared, "muniment.v1.SaveMemoryRequest").message_type[0].field)

    assert b"\xba\x48" in key.options.SerializeToString()  # how `buf.validate.field` begins on the wire
    assert file_of(shared, "buf.validate.field").name == "buf/validate/validate.proto"


def test_a_file_comes_with_all_that_it_imports(shared):
    """So that a descriptor pool can be made of one answer."""
    (answer,) = ask(shared, {"file_containing_symbol": "muniment.v1.MemoryService"})
    database = DescriptorDatabase()
    for file in files_in(answer):
        database.Add(file)
    pool = DescriptorPool(database)

    assert "key" in pool.FindMethodByName("muniment.v1.MemoryService.SaveMemory").input_type.fields_by_name


def test_an_extension_is_found_by_its_number(shared):
    (answer,) = ask(shared, {"file_containing_extension": POLICY})

    assert files_in(answer)[0].name == "muniment/v1/policy.proto"


def test_the_numbers_of_extensions_are_listed(shared):
    policies, none = ask(
        shared,
        {"all_extension_numbers_of_type": "google.protobuf.MethodOptions"},
        {"all_extension_numbers_of_type": "muniment.v1.Memory"},
    )

    assert policies.all_extension_numbers_response.base_type_name == "google.protobuf.MethodOptions"
    assert list(policies.all_extension_numbers_response.extension_number) == [50200]
    assert none.all_extension_numbers_response.base_type_name == "muniment.v1.Memory"
    assert list(none.all_extension_numbers_response.extension_number) == []


@pytest.mark.parametrize(
    "question",
    [
        {"file_by_filename": "no/such.proto"},
        {"file_by_filename": ""},
        {"file_containing_symbol": "muniment.v1.MemoryService.Save"},
        {"file_containing_symbol": "muniment.v1"},
        {"file_containing_symbol": "muniment/v1/memory.proto"},
        {"file_containing_extension": {**POLICY, "extension_number": 1}},
        {"file_containing_extension": {**POLICY, "containing_type": "muniment.v1.Memory"}},
        {"all_extension_numbers_of_type": "muniment.v1.NoSuch"},
        {"all_extension_numbers_of_type": "muniment.v1.MemoryService"},
    ],
)
def test_what_does_not_exist_is_an_error_in_the_answer_and_the_stream_goes_on(shared, question):
    answer, after = ask(shared, question, {"list_services": ""})

    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
    assert answer.original_request == ServerReflectionRequest(**question)
    assert len(after.list_services_response.service) == len(SERVICES) + 3


def test_a_question_without_content_is_an_error_in_the_answer(shared):
    (answer,) = ask(shared, {"host": "muniment.example"})

    assert answer.error_response.error_code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert answer.original_request.host == "muniment.example"


def test_both_versions_are_the_same_on_the_wire(shared):
    """So one class of messages serves both."""
    v1, v1alpha = (_messages_of(file_of(shared, version)) for version in sorted(SERVED))

    assert len(v1) == 8
    assert v1 == v1alpha


def _messages_of(file):
    return [
        (message.name, [(field.number, field.type, field.label, _short(field)) for field in message.field])
        for message in file.message_type
    ]


def _short(field):
    return field.type_name.rpartition(".")[2]
