"""Many memories at once, as one session saves them."""

from __future__ import annotations

from collections.abc import Sequence

from muniment_server.domain.errors import EtagStale, FieldViolation, InvalidArgument
from muniment_server.domain.items import Item
from muniment_server.items import item_store
from muniment_server.items.item_store import NewVersion
from muniment_server.items.rows import Saved
from muniment_server.monitor.session_scope import SessionScope

_MAX_CONTENT_BYTES = 128 * 1024


def require_different_keys(memories: Sequence[NewVersion]) -> None:
    """Check that no two memories have the same key. Raises InvalidArgument, which names the later ones."""
    first = {memory.name: index for index, memory in reversed([*enumerate(memories)])}
    repeated = [index for index, memory in enumerate(memories) if first[memory.name] < index]
    if repeated:
        raise InvalidArgument(*_violations(repeated, "key", "must not be the key of another memory of the request"))


def require_bounded_content(memories: Sequence[NewVersion]) -> None:
    """Check that *memories* have at most 128 KiB of content together. Raises InvalidArgument.

    They are indexed in one transaction, which a RaiseTaint of the session waits for.
    """
    size = sum(len(memory.content.encode()) for memory in memories)
    if size > _MAX_CONTENT_BYTES:
        rule = f"must have at most {_MAX_CONTENT_BYTES:,} bytes of content together, and have {size:,}"
        raise InvalidArgument(FieldViolation("memories", rule))


def save_all(scope: SessionScope, memories: Sequence[NewVersion]) -> list[Item]:
    """Save memories with different keys, all or none; return what is stored, in the same order.

    Raises QuotaExceeded, EtagStale, or InvalidArgument for an expiry in the past. If memories are refused for different
    reasons, the first of them decides which error is raised.
    """
    try:
        with scope.write_lock() as lock:
            rows = item_store.save_all_locked(scope, lock, memories)
            _require_saved(rows)
    except EtagStale:
        scope.record_refusal("ETAG_STALE")
        raise
    return [item_store.saved_item(memory, row) for memory, row in zip(memories, rows, strict=True)]


def _require_saved(rows: Sequence[Saved]) -> None:
    """Check that all outcomes are OK. The error names each memory with the same outcome as the first refused one."""
    outcome = next((row.outcome for row in rows if row.outcome != "OK"), "OK")
    refused = [index for index, row in enumerate(rows) if row.outcome == outcome]
    match outcome:
        case "ETAG_STALE":
            raise EtagStale(*_violations(refused, "etag", "is not the etag of the current version"))
        case "PAST":
            raise InvalidArgument(*_violations(refused, "expire_time", "must be in the future"))


def _violations(indexes: Sequence[int], field: str, rule: str) -> list[FieldViolation]:
    return [FieldViolation(f"memories[{index}].{field}", rule) for index in indexes]
