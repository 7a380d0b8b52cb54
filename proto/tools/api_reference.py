"""Writes the reference of the API in Markdown: api_reference.py RULES PAGE.

RULES is the descriptor set that `descriptor_sets.py` makes for the server. What the page says comes from there:
comments, types, rules, policies and idempotency.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    MethodOptions,
    ServiceDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

_PACKAGE = ".muniment.v1."
_ABOUT_POLICIES = "muniment/v1/policy.proto"
_REASONS = "ErrorReason"
_SERVICE, _MESSAGE, _ENUM = 6, 4, 5
"""How the paths of services, messages and enums begin in a file. Those of their members go on with 2."""
_MEMBER = 2
_INTRODUCTION = """\
# API reference

`make proto` generates this page from the comments in [proto](../../proto/README.md): edit those.

A **host** calls with a host key, a **session** with its token. Each method says who may call it, in which direction
information flows (reads items, writes items, or control by hosts), whether it is idempotent, and whether a call may be
repeated ([what is retried](../../clients/README.md#what-is-retried) has the exceptions). A request that breaks a rule
of a field fails with INVALID_ARGUMENT `FIELD_INVALID`, before anything else happens. Strings without a rule about their
form are limited further where their comment says so. A field that is not set has its default: empty, 0, false.
"""
_CALLERS = {1: "hosts", 2: "sessions"}
_FLOWS = {1: "reads items", 2: "writes items", 3: "control"}
_IDEMPOTENCY = {
    MethodOptions.NO_SIDE_EFFECTS: "no side effects",
    MethodOptions.IDEMPOTENT: "idempotent",
    MethodOptions.IDEMPOTENCY_UNKNOWN: "not idempotent",
}
_BOUNDS = {
    "string.min_len": "code points",
    "string.max_len": "code points",
    "string.min_bytes": "bytes",
    "string.max_bytes": "bytes",
    "int32.gte": "",
    "int32.lte": "",
    "int64.gte": "",
    "int64.lte": "",
    "duration.gte": "",
    "duration.lte": "",
    "repeated.min_items": "entries",
    "repeated.max_items": "entries",
}
"""The rules that set a minimum or a maximum, and of what."""
_RULES = {
    "required": "required",
    "enum.defined_only": "a known value",
    "enum.not_in": "not UNSPECIFIED",
    "string.pattern": "matches `{}`",
    "string.uuid": "a UUID",
    "repeated.unique": "no entry twice",
}
"""The others, in words. A rule that is in neither is shown by its name."""


class Contract:
    """The files of the contract, with what their options and comments say."""

    def __init__(self, files: FileDescriptorSet) -> None:
        self._pool = DescriptorPool()
        for file in files.file:
            self._pool.AddSerializedFile(file.SerializeToString())
        self.files = [file for file in files.file if file.name.startswith("muniment/") and file.name != _ABOUT_POLICIES]
        self._messages = {
            message.name: (file, index) for file in self.files for index, message in enumerate(file.message_type)
        }
        self._methods = {method.name for file in self.files for service in file.service for method in service.method}

    def message(self, type_name: str) -> tuple[FileDescriptorProto, int]:
        """Where the message of this full name is: its file and its number in it."""
        return self._messages[type_name.removeprefix(_PACKAGE)]

    def link(self, name: str) -> str:
        """A link to a message or an enum of the contract. A request is described under its method."""
        method = name.removesuffix("Request")
        return f"[{name}](#{(method if method in self._methods else name).lower()})"

    def shared_messages(self) -> list[tuple[FileDescriptorProto, int]]:
        """The messages that are neither the request nor the response of one method."""
        own = {f"{method}{end}" for method in self._methods for end in ("Request", "Response")}
        return [self._messages[name] for name in sorted(self._messages) if name not in own]

    def option(self, of: Message, name: str) -> Any:
        """The custom option *name* of a field or a method."""
        options = of.options  # type: ignore[attr-defined]
        known = GetMessageClass(self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name))
        extensions: Any = known.FromString(options.SerializeToString()).Extensions
        return extensions[self._pool.FindExtensionByName(name)]


def page(contract: Contract) -> Iterator[str]:
    """The page, paragraph by paragraph."""
    services = sorted(
        ((file, index) for file in contract.files for index in range(len(file.service))),
        key=lambda each: each[0].service[each[1]].name,
    )
    yield _INTRODUCTION
    yield _overview([file.service[index] for file, index in services])
    for file, index in services:
        yield from _service(contract, file, index)
    yield "## Messages"
    for file, index in contract.shared_messages():
        yield from _shared_message(contract, file, index)
    enums = [(file, index) for file in contract.files for index in range(len(file.enum_type))]
    yield "## Enums"
    for file, index in sorted(enums, key=lambda each: each[0].enum_type[each[1]].name):
        if file.enum_type[index].name != _REASONS:
            yield from _enum(file, index)
    for file, index in enums:
        if file.enum_type[index].name == _REASONS:
            yield from _reasons(file, index)


def _overview(services: Sequence[ServiceDescriptorProto]) -> str:
    def linked(methods: Iterable[MethodDescriptorProto]) -> str:
        return ", ".join(_link(method.name) for method in methods)

    return _table(("service", "methods"), [(_link(each.name), linked(each.method)) for each in services])


def _service(contract: Contract, file: FileDescriptorProto, index: int) -> Iterator[str]:
    service = file.service[index]
    yield f"## {service.name}"
    yield _comment(file, _SERVICE, index)
    for number, method in enumerate(service.method):
        yield f"### {method.name}"
        yield _policy(contract, method)
        yield _comment(file, _SERVICE, index, _MEMBER, number)
        yield from _request(contract, method)
        yield from _response(contract, method)


def _policy(contract: Contract, method: MethodDescriptorProto) -> str:
    policy = contract.option(method, "muniment.v1.policy")
    callers = " and ".join(_CALLERS[each] for each in policy.principals)
    idempotency = _IDEMPOTENCY[method.options.idempotency_level]
    repeated = "may be repeated" if policy.may_be_repeated else "not to be repeated"
    return f"For {callers} · {_FLOWS[policy.flow]} · {idempotency} · {repeated}"


def _request(contract: Contract, method: MethodDescriptorProto) -> Iterator[str]:
    title = "Each request of the stream" if method.client_streaming else "Request"
    yield from _fields(contract, *contract.message(method.input_type), title=title, with_rules=True)


def _response(contract: Contract, method: MethodDescriptorProto) -> Iterator[str]:
    yield from _fields(contract, *contract.message(method.output_type), title="Response", with_rules=False)


def _shared_message(contract: Contract, file: FileDescriptorProto, index: int) -> Iterator[str]:
    yield f"### {file.message_type[index].name}"
    yield _comment(file, _MESSAGE, index)
    has_rules = any(_rules(contract, field) for field in file.message_type[index].field)
    yield from _fields(contract, file, index, title="", with_rules=has_rules)


def _fields(
    contract: Contract, file: FileDescriptorProto, index: int, *, title: str, with_rules: bool
) -> Iterator[str]:
    message = file.message_type[index]
    if not message.field:
        yield f"{title}: no fields."
        return
    yield f"{title}:" if title else ""
    rows = []
    for number, field in enumerate(message.field):
        rules = (_rules(contract, field),) if with_rules else ()
        description = _comment(file, _MESSAGE, index, _MEMBER, number)
        rows.append((f"`{field.name}`", _type(contract, message, field), *rules, description))
    yield _table(("field", "type", *(("rules",) if with_rules else ()), "description"), rows)


def _type(contract: Contract, message: DescriptorProto, field: FieldDescriptorProto) -> str:
    ours = field.type_name.startswith(_PACKAGE)
    name = contract.link(field.type_name.removeprefix(_PACKAGE)) if ours else _plain(field)
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"list of {name}"
    if field.proto3_optional:
        return f"optional {name}"
    if field.HasField("oneof_index"):
        oneof = message.oneof_decl[field.oneof_index]
        number = "exactly one" if contract.option(oneof, "buf.validate.oneof").required else "one"
        return f"{name}; {number} of `{oneof.name}`"
    return name


def _plain(field: FieldDescriptorProto) -> str:
    """A type that this page does not describe."""
    return field.type_name.rpartition(".")[2] or FieldDescriptorProto.Type.Name(field.type)[5:].lower()


def _rules(contract: Contract, field: FieldDescriptorProto) -> str:
    rules = contract.option(field, "buf.validate.field")
    return ", ".join([*_in_words(rules), *(["or empty"] if rules.HasField("ignore") else [])])


def _in_words(rules: Message, kind: str = "") -> Iterator[str]:
    """The rules of *kind*, or of all kinds."""
    named = [(f"{kind}{field.name}", value) for field, value in rules.ListFields()]
    yield from _ranges([(name, value) for name, value in named if name in _BOUNDS])
    for name, value in named:
        if name == "repeated.items":
            yield f"each {', '.join(_in_words(value))}"
        elif isinstance(value, Message) and not kind:
            yield from _in_words(value, f"{name}.")
        elif name != "ignore" and name not in _BOUNDS:
            yield _RULES.get(name, f"`{name}` {{}}").format(value)


def _ranges(bounds: Sequence[tuple[str, Any]]) -> Iterator[str]:
    """Minimum and maximum of the same thing as one range."""
    for unit in dict.fromkeys(_BOUNDS[name] for name, _ in bounds):
        of_unit = [(name, _shown(value)) for name, value in bounds if _BOUNDS[name] == unit]
        least = next((value for name, value in of_unit if re.search(r"\.(min|gte)", name)), None)
        most = next((value for name, value in of_unit if re.search(r"\.(max|lte)", name)), None)
        number = f"{least} to {most}" if least and most else f"{least} or more" if least else f"up to {most}"
        yield f"{number} {unit}".strip()


def _shown(value: Any) -> str:
    if isinstance(value, Message):
        return _seconds(value.seconds)  # type: ignore[attr-defined]  # a duration
    return f"{value:,}"


def _seconds(seconds: int) -> str:
    """In the largest unit without a fraction."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _enum(file: FileDescriptorProto, index: int) -> Iterator[str]:
    enum = file.enum_type[index]
    yield f"### {enum.name}"
    yield _comment(file, _ENUM, index)
    values = [(f"`{value.name}`", _comment(file, _ENUM, index, _MEMBER, n)) for n, value in enumerate(enum.value)]
    yield _table(("value", "description"), values)


def _reasons(file: FileDescriptorProto, index: int) -> Iterator[str]:
    """The reasons of errors, each with the status that the example in its comment names."""
    enum = file.enum_type[index]
    yield "## Error reasons"
    yield _comment(file, _ENUM, index)
    rows = []
    for number, value in enumerate(enum.value[1:], 1):
        text = _comment(file, _ENUM, index, _MEMBER, number)
        statuses = ", ".join(re.findall(r"\bExample, ([A-Z_]+): ", text))
        text = re.sub(r"\bExample, [A-Z_]+: ", "Example: ", text)
        rows.append((f"`{_without_prefix(enum, value.name)}`", statuses, text))
    yield _table(("reason", "status", "description"), rows)


def _without_prefix(enum: EnumDescriptorProto, name: str) -> str:
    return name.removeprefix(re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper() + "_")


def _comment(file: FileDescriptorProto, *path: int) -> str:
    """The comment at *path*, as paragraphs of one line each."""
    comments = (each.leading_comments for each in file.source_code_info.location if list(each.path) == list(path))
    paragraphs = next(comments, "").strip().split("\n\n")
    return "\n\n".join(" ".join(line.strip() for line in each.splitlines()) for each in paragraphs)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(head), f"|{'---|' * len(head)}", *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n\n", "<br>")


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def main() -> None:
    """Read RULES and write PAGE. The same contract always makes the same page."""
    rules, target = map(Path, sys.argv[1:])
    contract = Contract(FileDescriptorSet.FromString(rules.read_bytes()))
    paragraphs = filter(None, map(str.strip, page(contract)))
    target.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
