"""Lists of core blocks, own and shared: for the blocks themselves, and for prompts."""

from __future__ import annotations

from muniment_server.items.rows import ListedBlock
from muniment_server.monitor.session_scope import Query


def list_query(*, after: tuple[str, str], limit: int, page_bytes: int, overhead: int) -> Query[ListedBlock]:
    """Up to *limit* blocks after a label and owner, by label and owner, the own block of a label first.

    Ends with the block that exceeds *page_bytes*, each counted with *overhead* bytes.
    """
    after_label, after_owner = after
    parameters = {
        "after_label": after_label,
        "after_owner": after_owner,
        "limit": limit,
        "page_bytes": page_bytes,
        "overhead": overhead,
    }
    return Query("list_blocks", ListedBlock, parameters)
