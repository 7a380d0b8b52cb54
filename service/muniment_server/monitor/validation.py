"""The validation rules of the contract, enforced here. Clients do not carry them; the server has `rules.binpb`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import resources

import protovalidate
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from muniment_server.domain import text
from muniment_server.domain.errors import FieldViolation, InvalidArgument

_TEXTS = {
    "required": "is required",
    "string.min_len": "is too short",
    "string.max_len": "is too long",
    "string.min_bytes": "is too short",
    "string.max_bytes": "is too long",
    "string.uuid": "must be a UUID",
    "string.uuid_empty": "must be a UUID",
    "enum.defined_only": "must be a known value",
    "enum.not_in": "must be stated",
    "int32.gte": "must not be negative",
    **dict.fromkeys(["int32.gte_lte", "int64.gte_lte", "duration.gte_lte", "double.gte_lte"], "is out of range"),
    "repeated.max_items": "has too many entries",
    "repeated.min_items": "must not be empty",
}
"""Fixed texts: the library's own could quote what was sent."""
_FORMS = {"language": "must be a language tag, such as `en` or `pt-BR`"}
"""What to say if a pattern does not match, by field. The other patterns are of ids."""
_IDS = {"agent_id", "owner_agent_id", "conversation_id"}

_MAX_ENTRIES = 256
"""A repeated field with more is refused unchecked: checking half a million empty tags took 13 seconds and 1 GiB."""


def load_pool() -> DescriptorPool:
    """The contract with its rules, in a separate pool, because the generated classes have no rules."""
    files = FileDescriptorSet.FromString(resources.files(__package__).joinpath("rules.binpb").read_bytes())
    pool = DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


class Validator:
    """Parses requests and checks them against the rules of the contract.

    Servicers get the message that was checked. Its class comes from the pool that has the rules: the fields are
    those of the generated class.
    """

    def __init__(self, pool: DescriptorPool, request_types: Iterable[str]) -> None:
        # The library caches rules by message name, so it must never meet the generated classes, which have none.
        self._rules = protovalidate.Validator()
        self._parsers: dict[str, Callable[[bytes], Message]] = {}
        self._ids: dict[str, list[str]] = {}
        for name in request_types:
            message_class = GetMessageClass(pool.FindMessageTypeByName(name))
            self._parsers[name] = message_class.FromString
            self._ids[name] = [field.name for field in message_class.DESCRIPTOR.fields if field.name in _IDS]
            list(self._rules.collect_violations(message_class()))  # compiles the rules now, not in the first call

    def parse(self, request_type: str, request: bytes) -> Message:
        """The message in *request*.

        Raises InvalidArgument with every broken rule or, before any rule is checked, with the first repeated field that
        has too many entries.
        """
        try:
            message = self._parsers[request_type](request)
        except DecodeError:
            raise InvalidArgument(FieldViolation("", "is not a message of this method")) from None
        if (crowded := next(_crowded(message), None)) is not None:
            raise InvalidArgument(FieldViolation(crowded, _TEXTS["repeated.max_items"]))
        violations = self._rules.collect_violations(message)
        if violations:
            raise InvalidArgument(*map(_violation, violations))
        for field in self._ids[request_type]:
            text.check_id(getattr(message, field), field=field)
        return message


def _crowded(message: Message) -> Iterator[str]:
    """The paths of the repeated fields with too many entries, at any depth."""
    repeated, single = _plan(message.DESCRIPTOR)
    for field in repeated:
        if len(getattr(message, field.name)) > _MAX_ENTRIES:
            yield field.name
        elif field.message_type is not None:
            for index, child in enumerate(getattr(message, field.name)):
                yield from (f"{field.name}[{index}].{path}" for path in _crowded(child))
    for field in single:
        if message.HasField(field.name):
            yield from (f"{field.name}.{path}" for path in _crowded(getattr(message, field.name)))


@cache
def _plan(descriptor: Descriptor) -> tuple[tuple[FieldDescriptor, ...], tuple[FieldDescriptor, ...]]:
    """The fields of a message where many entries can be: repeated ones, and messages."""
    return (
        tuple(field for field in descriptor.fields if field.is_repeated),
        tuple(field for field in descriptor.fields if field.message_type is not None and not field.is_repeated),
    )


def _violation(violation: protovalidate.Violation) -> FieldViolation:
    path, rule = _path(violation.proto), violation.proto.rule_id or ""
    if rule == "string.pattern":
        return FieldViolation(path, _FORMS.get(path, text.FORM_OF_IDS))
    return FieldViolation(path, _TEXTS.get(rule, "breaks a rule of the contract"))


def _path(proto: object) -> str:
    elements = getattr(getattr(proto, "field", None), "elements", ())
    return ".".join(_element(element) for element in elements)


def _element(element: object) -> str:
    name = str(getattr(element, "field_name", ""))
    subscript = getattr(element, "subscript", None)
    index = getattr(subscript, "value", subscript)
    return f"{name}[{index}]" if isinstance(index, int) else name
