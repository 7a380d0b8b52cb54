"""Writes the reference of the API in Markdown: api_reference.py RULES PAGE.

RULES is the descriptor set that `descriptor_sets.py` makes for the server. What the page says comes from there:
comments, types, rules and policies.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from contract import AN_ID, ENUM, MEMBER, MESSAGE, PACKAGE, SERVICE, Contract, comment_at
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
)
from google.protobuf.message import Message

_REASONS = "ErrorReason"
_LONG = 9
"""How many words a description must have to be written only once. Other messages link to it."""
_INTRODUCTION = """\
# API reference

`make proto` generates this page from the comments in [proto](../../proto/README.md): edit those.

A **host** calls with a host key, a **session** with its token. Below its name, each method says who may call it, in
which direction information flows (reads items, writes items, or control by hosts), and whether clients may repeat a
call ([what is retried](../../clients/README.md#what-is-retried) has the exceptions). A request that breaks a rule of a
field fails with `FIELD_INVALID`, before anything else happens. Each [reason](#error-reasons) of a failure has one
status.

* A field that is only named is one of the [common fields](#common-fields).
* A list method returns its list in pages.
* A field that is not set has its default: empty, 0, false. A response that is not described has no fields.
* *Like an id*: of the form that CreateAgent states.
* A field of an enum takes a known value, and UNSPECIFIED only if the enum says that it is the same as another one.
"""
_EXAMPLE = re.compile(r"\s*\bExample, ([A-Z_]+): .*")
"""What a comment on a reason ends with. The page takes the status from it."""
_UNSAID = frozenset({"enum.defined_only", "enum.not_in", "ignore"})
"""The rules that the introduction states, and what is shown otherwise."""
_BOUNDS = {
    "string.min_len": "code points",
    "string.max_len": "code points",
    "string.min_bytes": "bytes",
    "string.max_bytes": "bytes",
    "int32.gte": "",
    "int32.lte": "",
    "int64.gte": "",
    "int64.lte": "",
    "double.gte": "",
    "double.lte": "",
    "duration.gte": "",
    "duration.lte": "",
    "repeated.min_items": "entries",
    "repeated.max_items": "entries",
}
"""The rules that set a minimum or a maximum, and of what."""
_RULES = {
    "required": "required",
    "string.pattern": "matches `{}`",
    "string.uuid": "a UUID",
    "repeated.unique": "no entry twice",
}
"""The others, in words. A rule that is in neither is shown by its name."""


class Reference(Contract):
    """The contract, with what the page has of it: common fields, links, and what it has described already."""

    def __init__(self, files: FileDescriptorSet) -> None:
        super().__init__(files)
        self._messages = {
            message.name: (file, index) for file in self.files for index, message in enumerate(file.message_type)
        }
        self._methods = {method.name for file in self.files for service in file.service for method in service.method}
        self._sent = self._parts(f"{method}Request" for method in self._methods)
        self._common_fields = {sent: self._common(sent=sent) for sent in (True, False)}
        self._described: dict[tuple[str, str], str] = {}

    def _parts(self, names: Iterable[str]) -> set[str]:
        """The messages of these names, with those that they consist of."""
        found: set[str] = set()
        left = list(names)
        while left:
            name = left.pop()
            if name in self._messages and name not in found:
                found.add(name)
                file, index = self._messages[name]
                left += [field.type_name.removeprefix(PACKAGE) for field in file.message_type[index].field]
        return found

    def _common(self, *, sent: bool) -> dict[str, str]:
        """The fields that several messages have with the same description, by name: the most frequent of each."""
        messages = [where for name, where in self._messages.items() if (name in self._sent) is sent]
        lines = Counter(line for file, index in messages for line in _lines(self, file, index))
        frequent = sorted((line for line, count in lines.items() if count > 1), key=lambda line: lines[line])
        return dict(sorted(dict(frequent).items()))

    def common_fields(self, *, of: str | None = None, sent: bool = True) -> dict[str, str]:
        """Those of requests with their parts, or of all other messages: the kind of *of*, if that is given."""
        return self._common_fields[of in self._sent if of else sent]

    def described(self, name: str, line: str, *, of: str) -> str:
        """The description of a field of the message *of*, or a link to where the page has it already."""
        before = self._described.setdefault((name, line), of)
        if before == of or len(line.split()) < _LONG:
            return line
        return f"as for {self.link(re.sub('(Request|Response)$', '', before))}."

    def message(self, type_name: str) -> tuple[FileDescriptorProto, int]:
        """Where the message of this full name is: its file and its number in it."""
        return self._messages[type_name.removeprefix(PACKAGE)]

    def link(self, name: str) -> str:
        """A link to a message or an enum of the contract. A request is described under its method."""
        method = name.removesuffix("Request")
        return f"[{name}](#{(method if method in self._methods else name).lower()})"

    def shared_messages(self) -> list[tuple[FileDescriptorProto, int]]:
        """The messages that are neither the request nor the response of one method."""
        own = {f"{method}{end}" for method in self._methods for end in ("Request", "Response")}
        return [self._messages[name] for name in sorted(self._messages) if name not in own]


def page(contract: Reference) -> Iterator[str]:
    """The page, paragraph by paragraph."""
    services = sorted(
        ((file, index) for file in contract.files for index in range(len(file.service))),
        key=lambda each: each[0].service[each[1]].name,
    )
    yield _INTRODUCTION
    for file, index in services:
        yield from _service(contract, file, index)
    yield "## Common fields"
    yield "Of requests:"
    yield _list(contract.common_fields(sent=True).items())
    yield "Of responses and messages:"
    yield _list(contract.common_fields(sent=False).items())
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


def _service(contract: Reference, file: FileDescriptorProto, index: int) -> Iterator[str]:
    service = file.service[index]
    yield f"## {service.name}"
    yield _without_statuses(comment_at(file, SERVICE, index))
    for number, method in enumerate(service.method):
        yield f"### {method.name}"
        yield contract.policy(method)
        yield _without_statuses(comment_at(file, SERVICE, index, MEMBER, number))
        yield from _request(contract, method)
        yield from _response(contract, method)


def _request(contract: Reference, method: MethodDescriptorProto) -> Iterator[str]:
    title = "Each request of the stream" if method.client_streaming else "Request"
    yield from _fields(contract, *contract.message(method.input_type), title=title)


def _response(contract: Reference, method: MethodDescriptorProto) -> Iterator[str]:
    yield from _fields(contract, *contract.message(method.output_type), title="Response")


def _shared_message(contract: Reference, file: FileDescriptorProto, index: int) -> Iterator[str]:
    yield f"### {file.message_type[index].name}"
    yield comment_at(file, MESSAGE, index)
    yield from _fields(contract, file, index, title="Fields")


def _fields(contract: Reference, file: FileDescriptorProto, index: int, *, title: str) -> Iterator[str]:
    """The fields of a message: those that are common by their names, the others with their descriptions."""
    lines, shared = _lines(contract, file, index), contract.common_fields(of=file.message_type[index].name)
    common = ", ".join(f"`{name}`" for name, line in lines if shared.get(name) == line)
    own = [each for each in lines if shared.get(each[0]) != each[1]]
    if not own and common:
        yield f"{title}: {common}."
    elif own:
        name = file.message_type[index].name
        yield f"{title}: {common}, and" if common else f"{title}:"
        yield _list((field, contract.described(field, line, of=name)) for field, line in own)


def _lines(contract: Reference, file: FileDescriptorProto, index: int) -> list[tuple[str, str]]:
    """Each field of a message by its name, with its type, its rules and its description."""
    message = file.message_type[index]
    return [
        (field.name, _described(contract, message, field, comment_at(file, MESSAGE, index, MEMBER, number)))
        for number, field in enumerate(message.field)
    ]


def _described(contract: Reference, message: DescriptorProto, field: FieldDescriptorProto, comment: str) -> str:
    """A field without its name. What its comment says of its rules is not said again."""
    said = re.sub(r"(?<=\d),(?=\d{3})", "", comment)
    rules = [rule for rule in _rules(contract, field) if _essence(rule) not in said]
    about = "" if _says_its_name(field, comment) else f" {_without_statuses(comment)}"
    return f"{', '.join([_type(contract, message, field), *rules])}.{about}"


def _says_its_name(field: FieldDescriptorProto, comment: str) -> bool:
    """Whether a comment says no more than the name and the type of its field: `The agent as it is now.`"""
    named = field.type_name.startswith(PACKAGE) and comment.startswith(f"The {field.name}")
    return comment.startswith("One page of ") or (named and comment.count(".") == 1 and len(comment.split()) < _LONG)


def _essence(rule: str) -> str:
    """What of a rule a comment says: the numbers of entries without their name, and without separators."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", rule.removesuffix(" or empty").removesuffix(" entries"))


def _list(fields: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"* `{name}`: {line}" for name, line in fields).replace("\n\n", " ")


def _type(contract: Reference, message: DescriptorProto, field: FieldDescriptorProto) -> str:
    ours = field.type_name.startswith(PACKAGE)
    name = contract.link(field.type_name.removeprefix(PACKAGE)) if ours else _plain(field)
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


def _rules(contract: Reference, field: FieldDescriptorProto) -> list[str]:
    rules = contract.option(field, "buf.validate.field")
    *others, last = [*_in_words(rules)] or [""]
    return [*others, f"{last} or empty" if rules.HasField("ignore") else last]


def _in_words(rules: Message, kind: str = "") -> Iterator[str]:
    """The rules of *kind*, or of all kinds."""
    named = [(f"{kind}{field.name}", value) for field, value in rules.ListFields()]
    yield from _ranges([(name, value) for name, value in named if name in _BOUNDS])
    for name, value in named:
        if name == "repeated.items":
            yield from (f"each {rule}" for rule in [", ".join(_in_words(value))] if rule)
        elif isinstance(value, Message) and not kind:
            yield from _in_words(value, f"{name}.")
        elif value == AN_ID:
            yield "like an id"
        elif name not in _UNSAID and name not in _BOUNDS:
            yield _RULES.get(name, f"`{name}` {{}}").format(value)


def _ranges(bounds: Sequence[tuple[str, Any]]) -> Iterator[str]:
    """Minimum and maximum of the same thing as one range."""
    for unit in dict.fromkeys(_BOUNDS[name] for name, _ in bounds):
        of_unit = [(name, value) for name, value in bounds if _BOUNDS[name] == unit]
        least = next((value for name, value in of_unit if re.search(r"\.(min|gte)", name)), None)
        most = next((value for name, value in of_unit if re.search(r"\.(max|lte)", name)), None)
        yield _range(least, most, unit)


def _range(least: Any, most: Any, unit: str) -> str:
    if unit == "bytes" and most % 1024 == 0:
        return f"{f'{least} byte' if least else 'up'} to {most // 1024:,} KiB"
    shown = [_shown(each) for each in (least, most) if each or isinstance(each, float)]
    if unit == "code points" and (least, most) == (1, None):
        return "not empty"
    number = " to ".join(shown) if len(shown) > 1 else f"up to {shown[0]}" if most else f"{_shown(least)} or more"
    return f"{number} {unit}".strip()


def _shown(value: Any) -> str:
    if isinstance(value, Message):
        return _seconds(value.seconds)  # type: ignore[attr-defined]  # a duration
    return f"{value:,}".removesuffix(".0")


def _seconds(seconds: int) -> str:
    """In the largest unit without a fraction."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds and seconds % length == 0:
            return _plural(seconds // length, unit)
    return _plural(seconds, "second")


def _plural(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _enum(file: FileDescriptorProto, index: int) -> Iterator[str]:
    enum = file.enum_type[index]
    yield f"### {enum.name}"
    yield comment_at(file, ENUM, index)
    yield _list((value.name, comment_at(file, ENUM, index, MEMBER, n)) for n, value in enumerate(enum.value))


def _reasons(file: FileDescriptorProto, index: int) -> Iterator[str]:
    """The reasons of errors, each with the status that the example in its comment names. The example stays there."""
    enum = file.enum_type[index]
    yield "## Error reasons"
    yield comment_at(file, ENUM, index)
    described = [comment_at(file, ENUM, index, MEMBER, number) for number in range(len(enum.value))]
    yield _list(
        (_without_prefix(enum, value.name), ". ".join([*_EXAMPLE.findall(text), _EXAMPLE.sub("", text)]))
        for value, text in zip(enum.value[1:], described[1:], strict=True)
    )


def _without_statuses(text: str) -> str:
    """*text* without the statuses that it names before reasons."""
    return re.sub(r"\b[A-Z]+(?:_[A-Z]+)* (?=`[A-Z]+_[A-Z_]+`)", "", text)


def _without_prefix(enum: EnumDescriptorProto, name: str) -> str:
    return name.removeprefix(re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper() + "_")


def main() -> None:
    """Read RULES and write PAGE. The same contract always makes the same page."""
    rules, target = map(Path, sys.argv[1:])
    contract = Reference(FileDescriptorSet.FromString(rules.read_bytes()))
    paragraphs = filter(None, map(str.strip, page(contract)))
    target.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
