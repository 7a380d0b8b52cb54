"""What the tests of searches share."""

from __future__ import annotations

ANY, ALL = 2, 1
"""How tags match, as the contract numbers it."""
SCANS = ("bitmapscan", "indexscan", "seqscan", "hashjoin", "nestloop", "mergejoin", "hashagg", "sort", "material")
"""The plan nodes that Postgres can be kept from using, by `enable_…`."""


def passages(session, thread, *contents, start=1_000_000_000, **fields):
    """Store turns of a thread; return their ids."""
    return [
        session.store_passage(
            content=content, thread=thread, event_time={"seconds": start + number}, **fields
        ).passage.passage_id
        for number, content in enumerate(contents)
    ]
