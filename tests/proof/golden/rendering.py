"""How messages and refusals are written down: readable, and on lines that can be compared one by one.

Each text of an error stands on a line of its own, which begins with `message: ` or `description: `.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from muniment.v1 import note_pb2, passage_pb2, session_pb2

MESSAGE, DESCRIPTION = "message: ", "description: "
_WIDTH = 110
_LONGEST = 300
_DETAILS: tuple[type[Message], ...] = (
    error_details_pb2.ErrorInfo,
    error_details_pb2.BadRequest,
    error_details_pb2.RetryInfo,
    note_pb2.BudgetExceeded,
    passage_pb2.ImportProgress,
    session_pb2.ConversationTainted,
)


def digest(data: bytes) -> str:
    """The first half of the SHA-256 of *data*."""
    return hashlib.sha256(data).hexdigest()[:32]


def lines_of(message: Message) -> Iterator[str]:
    """A message as text proto: a field on a line, or on several where it is long."""
    for field, value in message.ListFields():
        for item in value if field.is_repeated else [value]:
            yield from _field(field, item)


def _field(field: FieldDescriptor, value: object) -> Iterator[str]:
    if not isinstance(value, Message):
        yield _scalar(field, value)
        return
    short = text_format.MessageToString(value, as_utf8=True, as_one_line=True)
    if len(short) <= _WIDTH:
        yield f"{field.name} {{ {short} }}" if short else f"{field.name} {{}}"
        return
    yield f"{field.name} {{"
    yield from (f"  {line}" for line in lines_of(value))
    yield "}"


def _scalar(field: FieldDescriptor, value: object) -> str:
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{field.name}: {_quoted(value[:40])}… ({len(value)} characters, sha256 {digest(value.encode())[:16]})"
    if isinstance(value, str):
        return f"{field.name}: {_quoted(value)}"
    written = io.StringIO()
    # The class is checked at run time only: of a repeated field, one value is written.
    text_format.PrintFieldValue(field, value, written, as_utf8=True)
    return f"{field.name}: {written.getvalue()}"


def _quoted(text: str) -> str:
    """*text* in quotes, on one line whatever is in it."""
    plain = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return f'"{plain}"'


def lines_of_refusal(message: str, status: status_pb2.Status | None) -> Iterator[str]:
    """A refusal: its text and its details. The hash is of the details as they are sent, but for all texts."""
    yield MESSAGE + message.replace("\n", "\\n")
    if status is None:
        yield "no details"
        return
    if status.message != message:
        yield f"{MESSAGE}{status.message} (in the details)"
    details = [_unpacked(packed) for packed in status.details]
    yield f"sha256 {digest(_without_texts(status, details).SerializeToString(deterministic=True))}"
    for detail in details:
        yield from _detail(detail)


def _unpacked(packed: Message) -> Message:
    for kind in _DETAILS:
        message = kind()
        if packed.Unpack(message):  # type: ignore[attr-defined]  # an Any
            return message
    return packed  # of a kind that a later commit has added


def _without_texts(status: status_pb2.Status, details: Iterable[Message]) -> status_pb2.Status:
    stripped = status_pb2.Status(code=status.code)
    for detail in details:
        copy = type(detail)()
        copy.CopyFrom(detail)
        for violation in getattr(copy, "field_violations", ()):
            violation.description = ""
        stripped.details.add().Pack(copy)
    return stripped


def _detail(detail: Message) -> Iterator[str]:
    yield f"[{detail.DESCRIPTOR.full_name}]"
    if not isinstance(detail, error_details_pb2.BadRequest):
        yield from (f"  {line}" for line in lines_of(detail))
        return
    for violation in detail.field_violations:
        yield f"  field: {_quoted(violation.field)}"
        yield DESCRIPTION + violation.description.replace("\n", "\\n")
