"""The keys and tags that only adapters may write.

An adapter cannot tell by its content whether it stored an item. So it finds its items by keys and tags that begin with
`RESERVED`, and no tool lets a model write, replace or delete an item that has one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

RESERVED = "muniment:"


def is_reserved(name: str) -> bool:
    """Whether *name*, as a server stores it, begins with `RESERVED`: keys and tags are in NFC, and tags are trimmed."""
    return unicodedata.normalize("NFC", name).strip().startswith(RESERVED)


def source_of(names: Iterable[str], default: str) -> str:
    """The adapter that stored the item with these *names* (key or tags), such as `files`. *default* if none did."""
    reserved = (name.removeprefix(RESERVED) for name in names if is_reserved(name))
    return next((re.split("[:/#]", name)[0] for name in reserved), default)
