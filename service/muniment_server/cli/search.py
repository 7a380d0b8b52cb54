"""`muniment search`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from muniment import Classification, MemoryResult, NoteResult, PassageResult, SessionClient, Tier
from muniment_server.cli.content import MAX_RESULTS
from muniment_server.cli.failures import Discreet
from muniment_server.cli.output import Output, Row, with_output
from muniment_server.cli.parameters import TEXT
from muniment_server.cli.service import with_session

_COLUMNS = ("kind", "name", "classification", "score", "snippet")


@click.command(cls=Discreet)
@click.argument("query", type=TEXT)
@MAX_RESULTS
@with_output
@with_session
def search(session: SessionClient, output: Output, query: str, max_results: int) -> None:
    """Search memories, both tiers of notes, and passages, in plain language and in any language.

    Each kind is ranked by itself, best match first: scores of different kinds do not compare. `memory search`,
    `note search` and `passage search` look through one kind, with filters.

    \b
    Examples:
      muniment search "what ships when?" --agent alice --taint internal
      muniment search 展望台 --max-results 3 --agent alice --taint confidential
    """
    output.rows(_found(session, query, max_results), _COLUMNS, query=query)


def _found(session: SessionClient, query: str, most: int) -> Iterator[Row]:
    for found in session.search_memories(query, max_results=most):
        yield _row("memory", found.memory.key, found.memory.classification, found)
    for tier in Tier:
        for note in session.search_notes(query, tier=tier, max_results=most):
            yield _row(f"{tier.name.lower()} note", note.note.note_id, note.note.classification, note)
    for passage in session.search_passages(query, max_results=most):
        yield _row("passage", passage.passage.passage_id, passage.passage.classification, passage)


def _row(
    kind: str, name: str, classification: Classification, result: MemoryResult | NoteResult | PassageResult
) -> Row:
    return {
        "kind": kind,
        "name": name,
        "classification": classification,
        "score": result.score,
        "snippet": result.snippet,
    }
