"""`muniment search`."""

from __future__ import annotations

from dataclasses import asdict

import click

from muniment import Memory, MemoryResult, Note, NoteResult, Passage, PassageResult, SessionClient, Tier
from muniment.cli.connect import with_session
from muniment.cli.content import MAX_RESULTS, MIN_RELEVANCE, print_how_found
from muniment.cli.failures import Discreet
from muniment.cli.output import Output, Row, with_output
from muniment.cli.parameters import TEXT

_COLUMNS = ("kind", "name", "classification", "relevance", "snippet")


@click.command(cls=Discreet)
@click.argument("query", type=TEXT)
@MAX_RESULTS
@MIN_RELEVANCE
@with_output
@with_session
def search(session: SessionClient, output: Output, query: str, max_results: int, min_relevance: float) -> None:
    """Search memories, both tiers of notes, and passages, in plain language and in any language.

    Each kind, and each tier of notes, is ranked separately, best match first, and has its own --max-results. Relevance
    is comparable between kinds, scores are not. `memory search`, `note search` and `passage search` search one kind,
    with filters. With --json, each object has all that the item has, such as its content, and the author and thread of
    a passage.

    \b
    Examples:
      muniment search "what ships when?" --agent alice --taint internal
      muniment search 展望台 --max-results 3 --agent alice --taint confidential
    """
    memories = session.search_memories(query, max_results=max_results, min_relevance=min_relevance)
    notes = {
        tier: session.search_notes(query, tier=tier, max_results=max_results, min_relevance=min_relevance)
        for tier in Tier
    }
    passages = session.search_passages(query, max_results=max_results, min_relevance=min_relevance)
    rows = [
        *(_row("memory", one.memory.key, one.memory, one) for one in memories),
        *(
            _row(f"{tier.name.lower()} note", one.note.note_id, one.note, one)
            for tier, found in notes.items()
            for one in found
        ),
        *(_row("passage", one.passage.passage_id, one.passage, one) for one in passages),
    ]
    output.rows(rows, _COLUMNS, query=query)
    # one is enough: for a kind without items, no embeddings are compared
    semantic = memories.semantic or passages.semantic or any(found.semantic for found in notes.values())
    print_how_found(rows, semantic=semantic)


def _row(kind: str, name: str, item: Memory | Note | Passage, result: MemoryResult | NoteResult | PassageResult) -> Row:
    return {
        "kind": kind,
        "name": name,
        "relevance": result.relevance,
        "score": result.score,
        "snippet": result.snippet,
        **asdict(item),
    }
