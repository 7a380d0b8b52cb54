"""The keys and tags that only adapters may write.

An adapter cannot tell by its content whether it stored an item. So it finds its items by keys and tags that begin with
`RESERVED`, and no tool lets a model write, replace or delete an item that has one.
"""

from __future__ import annotations

import unicodedata

RESERVED = "muniment:"


def is_reserved(name: str) -> bool:
    """Whether *name*, as a server stores it, begins with `RESERVED`: keys and tags are in NFC, and tags are trimmed."""
    return unicodedata.normalize("NFC", name).strip().startswith(RESERVED)
