"""Writes the OpenAPI 3.1 description of the API by HTTP: openapi.py RULES FILE.

RULES is the descriptor set that `descriptor_sets.py` makes for the server: comments, types and rules come from there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from contract import AN_ID, ENUM, MEMBER, MESSAGE, PACKAGE, SERVICE, Contract, comment_at
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
)

_Schema: TypeAlias = dict[str, Any]

_REASONS = "ErrorReason"
_ABOUT = """\
Memory for AI agents that keeps to information-flow levels, by HTTP. Every method is a POST of JSON to its own path,
with a credential. A field that the contract lacks is refused. The Connect protocol and gRPC-Web use the same paths."""
_PLAIN: Mapping[int, _Schema] = {
    FieldDescriptorProto.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptorProto.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
    FieldDescriptorProto.TYPE_DOUBLE: {"type": "number"},
    FieldDescriptorProto.TYPE_FLOAT: {"type": "number"},
    FieldDescriptorProto.TYPE_INT32: {"type": "integer", "format": "int32"},
    # 64-bit integers are strings in responses, since numbers of JavaScript would lose digits.
    FieldDescriptorProto.TYPE_INT64: {"type": ["string", "integer"], "format": "int64"},
    FieldDescriptorProto.TYPE_STRING: {"type": "string"},
    FieldDescriptorProto.TYPE_UINT32: {"type": "integer", "format": "int32", "minimum": 0},
}
_KNOWN: Mapping[str, _Schema] = {
    ".google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    ".google.protobuf.Duration": {"type": "string", "pattern": r"^-?\d+(\.\d{1,9})?s$"},
}
_MINIMA = {
    "string.min_len": "minLength",
    "repeated.min_items": "minItems",
    "int32.gte": "minimum",
    "int64.gte": "minimum",
    "double.gte": "minimum",
}
"""The minimums, which do not hold for an empty field if the contract allows one."""
_MAXIMA = {
    "string.max_len": "maxLength",
    "string.max_bytes": "maxLength",  # a code point has at least a byte
    "repeated.max_items": "maxItems",
    "repeated.unique": "uniqueItems",
    "int32.lte": "maximum",
    "int64.lte": "maximum",
    "double.lte": "maximum",
}
"""The maximums, and what else holds for every field."""
_CODES = (
    "canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied",
    "resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable",
    "data_loss", "unauthenticated",
)  # fmt: skip
"""The codes of the Connect protocol, which are those of gRPC."""


def paths(contract: Contract) -> Iterator[tuple[str, _Schema]]:
    """The operation of each method, by path."""
    for file in contract.files:
        for index, service in enumerate(file.service):
            for number, method in enumerate(service.method):
                about = comment_at(file, SERVICE, index, MEMBER, number)
                path = f"/{file.package}.{service.name}/{method.name}"
                yield path, {"post": _operation(contract, service.name, method, about)}


def _operation(contract: Contract, service: str, method: MethodDescriptorProto, about: str) -> _Schema:
    media = "application/connect+json" if method.client_streaming else "application/json"
    summary, _, rest = about.partition("\n\n")
    more = [rest, contract.policy(method)]
    if method.client_streaming:
        more.append("A stream: each message follows a byte of flags and its size in four bytes, as Connect specifies.")
    return {
        "operationId": method.name,
        "tags": [service],
        "summary": summary,
        "description": "\n\n".join(filter(None, more)),
        "requestBody": {"required": True, "content": {media: {"schema": _reference(method.input_type)}}},
        "responses": {
            "200": {"description": "Done.", "content": {media: {"schema": _reference(method.output_type)}}},
            "default": {"$ref": "#/components/responses/Refused"},
        },
    }


def schemas(contract: Contract) -> Iterator[tuple[str, _Schema]]:
    """The schema of each message, each enum and an error, by name."""
    reasons: list[str] = []
    for file in contract.files:
        for index, message in enumerate(file.message_type):
            yield message.name, _message(contract, file, index)
        for index, enum in enumerate(file.enum_type):
            values = [value.name for value in enum.value]
            if enum.name == _REASONS:
                reasons = [value.removeprefix("ERROR_REASON_") for value in values[1:]]
            else:
                yield enum.name, {"type": "string", "enum": values, "description": comment_at(file, ENUM, index)}
    yield "Error", _error(reasons)


def _message(contract: Contract, file: FileDescriptorProto, index: int) -> _Schema:
    message = file.message_type[index]
    fields = {
        field.json_name: _field(contract, message, field, comment_at(file, MESSAGE, index, MEMBER, number))
        for number, field in enumerate(message.field)
    }
    required = [field.json_name for field in message.field if _rules(contract, field).get("required")]
    return {
        "type": "object",
        "description": comment_at(file, MESSAGE, index),
        "properties": fields,
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _field(contract: Contract, message: DescriptorProto, field: FieldDescriptorProto, about: str) -> _Schema:
    rules = _rules(contract, field)
    one = {**_type(field), **_limits({name: value for name, value in rules.items() if "items." not in name})}
    if field.label != FieldDescriptorProto.LABEL_REPEATED:
        return {**one, "description": _with_oneof(message, field, about)}
    entry = next(
        (each for each in message.nested_type if field.type_name.endswith(f".{message.name}.{each.name}")), None
    )
    if entry is not None:  # a map
        return {"type": "object", "additionalProperties": _type(entry.field[1]), "description": about}
    each = {**_type(field), **_limits({name[6:]: value for name, value in rules.items() if name.startswith("items.")})}
    return {"type": "array", "items": each, **_limits(rules), "description": about}


def _with_oneof(message: DescriptorProto, field: FieldDescriptorProto, about: str) -> str:
    if field.proto3_optional or not field.HasField("oneof_index"):
        return about
    return f"{about} Excludes the other fields of `{message.oneof_decl[field.oneof_index].name}`."


def _type(field: FieldDescriptorProto) -> _Schema:
    if field.type_name in _KNOWN:
        return dict(_KNOWN[field.type_name])
    return _reference(field.type_name) if field.type_name else dict(_PLAIN[field.type])


def _reference(type_name: str) -> _Schema:
    return {"$ref": f"#/components/schemas/{type_name.removeprefix(PACKAGE)}"}


def _rules(contract: Contract, field: FieldDescriptorProto) -> dict[str, Any]:
    """The rules of a field, by name such as `string.max_len`; those of the entries of a list begin with `items.`."""
    found = contract.option(field, "buf.validate.field")
    rules = dict(_named(found))
    return {**rules, "may_be_empty": True} if found.HasField("ignore") else rules


def _named(rules: Any, kind: str = "") -> Iterator[tuple[str, Any]]:
    for descriptor, value in rules.ListFields():
        if f"{kind}{descriptor.name}" == "repeated.items":
            yield from ((f"items.{name}", each) for name, each in _named(value))
        elif hasattr(value, "ListFields") and not kind:
            yield from _named(value, f"{descriptor.name}.")
        else:
            yield f"{kind}{descriptor.name}", value


def _limits(rules: Mapping[str, Any]) -> _Schema:
    """The rules that JSON Schema can express. Those about times and durations are in the descriptions."""
    limits = {named: rules[name] for name, named in _MAXIMA.items() if name in rules}
    if not rules.get("may_be_empty"):
        limits |= {named: rules[name] for name, named in _MINIMA.items() if name in rules}
        if "string.pattern" in rules and rules["string.pattern"] != AN_ID:
            limits["pattern"] = rules["string.pattern"]
        if "string.uuid" in rules:
            limits["format"] = "uuid"
    return limits


def _error(reasons: Iterable[str]) -> _Schema:
    reason = {"type": "string", "enum": list(reasons), "description": "In the detail of type google.rpc.ErrorInfo."}
    debug = {"type": "object", "properties": {"@type": {"type": "string"}, "reason": reason}}
    return {
        "type": "object",
        "description": "Why a call was refused. The reason is in the detail of type google.rpc.ErrorInfo.",
        "required": ["code", "message"],
        "properties": {
            "code": {"type": "string", "enum": list(_CODES)},
            "message": {"type": "string", "description": "For people. It may change."},
            "details": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["type", "value"],
                    "properties": {
                        "type": {"type": "string", "description": "The name of a message."},
                        "value": {"type": "string", "contentEncoding": "base64", "description": "The message."},
                        "debug": {**debug, "description": "The message as JSON."},
                    },
                },
            },
        },
    }


def description(contract: Contract) -> str:
    """The text of the file. Each method and each schema is one line, so that a diff shows what has changed."""
    refused = {
        "description": "Refused.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    head = {
        "openapi": "3.1.0",
        "info": {"title": "Muniment", "version": "v1", "description": " ".join(_ABOUT.split())},
        "servers": [{"url": "/"}],
        "security": [{"credential": []}],
    }
    scheme = {"type": "http", "scheme": "bearer", "description": "A host key, or the token of a session."}
    parts = [
        *(f"{json.dumps(name)}: {_line(value)}" for name, value in head.items()),
        f'"paths": {{\n{_lines(paths(contract))}\n}}',
        f'"components": {{\n"securitySchemes": {_line({"credential": scheme})},\n'
        f'"responses": {_line({"Refused": refused})},\n"schemas": {{\n{_lines(schemas(contract))}\n}}}}',
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(parts: Iterable[tuple[str, _Schema]]) -> str:
    return ",\n".join(f"{json.dumps(name)}: {_line(value)}" for name, value in sorted(parts))


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Read RULES and write FILE. The same contract always makes the same file."""
    rules, target = map(Path, sys.argv[1:])
    contract = Contract(FileDescriptorSet.FromString(rules.read_bytes()))
    target.write_text(description(contract), encoding="utf-8")


if __name__ == "__main__":
    main()
