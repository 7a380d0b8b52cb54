"""The rules of the contract, as far as programs break them. What breaks one is FIELD_INVALID, whatever else is true."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from tests.proof.noninterference.values import Refused, nfc

_ID = re.compile(r"[^\s~][^\s]{0,255}")
_ETAG = re.compile(r"[A-Za-z0-9_-]{27}")
_MAY_BE_EMPTY = {"UpdateBlockRequest", "CreateSharedBlockRequest", "InitialBlock"}
_NEEDS_AN_EDIT = {"NoteEdit", "EditBlockRequest"}
_ID_MAY_BE_MADE = {"AddNoteRequest", "AddNoteEdit", "StorePassageRequest"}
_SHA256 = re.compile("[0-9a-f]{64}")
_KIB = 1024


def keeps_the_rules(message: Any) -> bool:
    """Whether *message* and all messages in it are as the contract wants them."""
    of = message.DESCRIPTOR.name
    if of in _NEEDS_AN_EDIT and message.WhichOneof("edit") is None:
        return False
    if of == "ImportPassagesRequest" and not message.HasField("passage"):
        return False
    inner = (value for field, value in message.ListFields() if field.message_type is not None)
    return all(
        _keeps_the_rule(of, field.name, getattr(message, field.name)) for field in message.DESCRIPTOR.fields
    ) and all(keeps_the_rules(one) for value in inner for one in (value if _is_repeated(value) else (value,)))


def _is_repeated(value: Any) -> bool:
    return not hasattr(value, "DESCRIPTOR")


def _keeps_the_rule(of: str, name: str, value: Any) -> bool:
    match name:
        case "key" | "new_key":
            return 0 < len(value.encode()) <= 4096
        case "kind":
            return value in (1, 2, 3, 4)
        case "name" if of == "ListVersionsRequest":
            return 0 < len(value.encode()) <= 4096
        case "label":
            return 0 < len(value.encode()) <= 1024
        case "content" | "old" | "new":
            least = 0 if of in _MAY_BE_EMPTY or name == "new" else 1
            most = (256 if of == "StorePassageRequest" else 64) * _KIB
            return least <= len(value.encode()) <= most and "\0" not in value
        case "thread" | "key_prefix":
            return len(value.encode()) <= 4096
        case "tag":
            return bool(value) or of != "DeleteMemoriesRequest"
        case "author":
            return len(value) <= 256
        case "tags":
            return len(value) <= 32 and all(value)
        case "memories" if of == "SaveMemoriesRequest":
            return 1 <= len(value) <= 100
        case "edits":
            return 1 <= len(value) <= 100
        case "sections":
            return len(value) == len(set(value)) and set(value) <= {1, 2, 3}
        case "etag":
            return not value or _ETAG.fullmatch(value) is not None
        case "if_none_match":
            return len(value) <= 64
        case "query":
            return 0 < len(value) <= 1024
        case "page_size" | "max_results" | "line":
            return bool(value >= 0)
        case "memory_char_limit" | "user_char_limit":
            return bool(0 <= value <= 1_000_000)
        case "tag_match" | "tier":
            return value in (0, 1, 2)
        case "taint" | "classification":
            least = 0 if of == "OpenSessionRequest" else 1
            return bool(least <= value <= 4)
        case "source_classification":
            return value in (1, 2, 3, 4)
        case "integrity" | "source_integrity":
            return value in (0, 1)
        case "content_sha256":
            return _SHA256.fullmatch(value) is not None
        case "reason":
            return len(value) <= 200
        case "release_id":
            return _is_uuid(value)
        case "agent_id" | "conversation_id" | "owner_agent_id":
            return not value or _ID.fullmatch(value) is not None
        case "session_id":
            return not value or _is_uuid(value)
        case "note_id" | "passage_id":
            return _is_uuid(value) or (not value and of in _ID_MAY_BE_MADE)
    return True


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def id_of(given: str) -> str:
    """The id of a note or passage."""
    if not _is_uuid(given):
        raise Refused("FIELD_INVALID")
    return given


def key_of(key: str) -> str:
    if nfc(key) != nfc(key).strip() or len(nfc(key)) > 256 or "\n" in key:
        raise Refused("FIELD_INVALID")
    return nfc(key)


def prefix_of(prefix: str) -> str:
    """The beginning of a key. It may end in a space."""
    prefix = nfc(prefix)
    if prefix != prefix.lstrip() or len(prefix) > 256 or "\n" in prefix:
        raise Refused("FIELD_INVALID")
    return prefix


def label_of(label: str) -> str:
    """Letters, marks and digits of any script, `_`, `.` and `-`; not a mark, `.` or `-` first."""
    label = nfc(label)
    kinds = [unicodedata.category(character) for character in label]
    known = all(kind[0] in "LM" or kind == "Nd" or sign in "_.-" for kind, sign in zip(kinds, label, strict=True))
    begins = kinds[0][0] == "L" or kinds[0] == "Nd" or label[0] == "_"
    if not known or not begins or len(label) > 64:
        raise Refused("FIELD_INVALID")
    return label


def tags_of(tags: Iterable[str]) -> list[str]:
    stripped = [nfc(tag).strip() for tag in tags]
    if not all(stripped):
        raise Refused("FIELD_INVALID")
    return list(dict.fromkeys(stripped))


def words_of(query: str) -> str:
    """A query that is not blank."""
    if not query.replace("\0", " ").strip():
        raise Refused("FIELD_INVALID")
    return query


def time_of(request: Any, name: str) -> datetime | None:
    """A time that a request states."""
    return getattr(request, name).ToDatetime(tzinfo=UTC) if request.HasField(name) else None
