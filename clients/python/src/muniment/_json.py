"""JSON whose words can be searched."""

from __future__ import annotations

import json
import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: object) -> str:
    """*value* as JSON, with letters of all scripts unescaped. A lone surrogate, which cannot be sent, is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def object_of(text: str) -> dict[str, Any] | None:
    """Parse a text as a JSON object. None if it is anything else, or is nested more deeply than Python reads.

    Whoever can write at or below the taint can write such texts: they must not keep the others from being read.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
