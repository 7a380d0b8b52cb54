"""JSON whose words can be searched."""

from __future__ import annotations

import json
import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: object) -> str:
    """*value* as JSON, with letters of all scripts unescaped. A lone surrogate, which cannot be sent, is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
