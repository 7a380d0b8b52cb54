"""Lists of core blocks, own and shared: for the blocks themselves, and for prompts."""

from __future__ import annotations

from muniment_server.items.rows import ListedBlock
from muniment_server.monitor.session_scope import Query


def list_query(*, after: tuple[str, str], limit: int, page_bytes: int, overhead: int) -> Query[ListedBlock]:
    """Up to *limit* blocks after a label and owner, by label and owner, the own block of a label first.

    Ends with the block that exceeds *page_bytes*, each counted with *overhead* bytes.
    """
    return _query(after=after, limit=limit, page_bytes=page_bytes, overhead=overhead, smallest_first=False)


def prompt_query(*, limit: int, most_bytes: int) -> Query[ListedBlock]:
    """The first *limit* blocks in the same order. Only the smallest, of *most_bytes* together, have their content."""
    return _query(after=("", ""), limit=limit, page_bytes=most_bytes, overhead=0, smallest_first=True)


def _query(*, after: tuple[str, str], **parameters: object) -> Query[ListedBlock]:
    after_label, after_owner = after
    return Query("list_blocks", ListedBlock, {"after_label": after_label, "after_owner": after_owner, **parameters})
