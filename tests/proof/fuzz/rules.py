"""The rules of the contract for each field, as the server enforces them."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass, GetMessageClassesForFiles

from muniment_server.monitor.validation import load_pool
from muniment_server.transport.server import SERVICES

_POOL = load_pool()
GetMessageClassesForFiles(["buf/validate/validate.proto"], _POOL)
_OPTIONS = GetMessageClass(_POOL.FindMessageTypeByName("google.protobuf.FieldOptions"))
_RULES: Any = _POOL.FindExtensionByName("buf.validate.field")
METHODS = {method.name: method for service in SERVICES for method in service.methods}


def request_of(method: str) -> Descriptor:
    """The request of a method, with its rules."""
    return _POOL.FindMessageTypeByName(METHODS[method].input_type.full_name)


@cache
def rules_of(field: FieldDescriptor) -> Any:
    """The message buf.validate.FieldRules of a field. Those of the entries are in `repeated.items`."""
    return _OPTIONS.FromString(field.GetOptions().SerializeToString()).Extensions[_RULES]


@cache
def entry_rules_of(field: FieldDescriptor) -> Any:
    """The same, for one value of the field."""
    rules = rules_of(field)
    return rules.repeated.items if field.is_repeated else rules


@cache
def is_required(field: FieldDescriptor) -> bool:
    """Whether a request without the field breaks a rule."""
    rules = rules_of(field)
    text = rules.string
    is_bounded = text.pattern or text.uuid or text.min_len or text.min_bytes or rules.enum.not_in
    return bool(rules.required or rules.repeated.min_items or (is_bounded and not rules.ignore))


def bounds_of(rules: Any) -> list[int]:
    """The least and the largest value, length or number of entries that *rules* allow, where they have one."""
    kind = rules.WhichOneof("type")
    if kind is None:
        return []
    fields = getattr(rules, kind).ListFields()
    return [value for field, value in fields if isinstance(value, int) and not isinstance(value, bool)]


def fields_below(descriptor: Descriptor) -> list[FieldDescriptor]:
    """The fields of a message, and of the messages in it."""
    return [
        found
        for field in descriptor.fields
        for found in (field, *(fields_below(field.message_type) if field.message_type is not None else ()))
    ]
