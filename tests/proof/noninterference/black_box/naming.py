"""Names for the values that a system makes up, so that two runs can be compared byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

TIME = "time"
"""Replaced by its name alone: which of two times is later, or whether they are equal, depends on the clock."""
PATTERNS = {
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    TIME: r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?",
}


class Names:
    """The names of one world: `<uuid 1>` is the first uuid that the observer saw in it.

    Only what matches a pattern is named. A number is never named, so an id that counts everybody's items shows.
    """

    def __init__(self, patterns: Mapping[str, str]) -> None:
        kinds = {**PATTERNS, **patterns}
        self._made = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()))
        self._names: dict[str, str] = {}
        self._counts = dict.fromkeys(kinds, 0)

    def canonical(self, answer: Any) -> bytes:
        """The bytes of *answer*, a JSON value, with its made-up values named. Members are sorted, lists are not."""
        text = json.dumps(answer, sort_keys=True, ensure_ascii=False)
        return self._made.sub(self._name, text).encode()

    def _name(self, match: re.Match[str]) -> str:
        kind = match.lastgroup or ""
        if kind == TIME:
            return f"<{TIME}>"
        if match.group() not in self._names:
            self._counts[kind] += 1
            self._names[match.group()] = f"<{kind} {self._counts[kind]}>"
        return self._names[match.group()]
