"""Guards of semantic search, broken."""

from __future__ import annotations

from collections.abc import Callable

from muniment_server.embedder import queue as embedding_queue
from muniment_server.search import search
from tests.proof.noninterference import probes
from tests.proof.noninterference.mutants.damage import ALL_EMBEDDINGS, EXPIRED_CHUNKS
from tests.proof.noninterference.mutants.scheme import ITEMS, Mutant, Patch, cut, edit, setting

_SHADOW = r"AND 0 = \( SELECT count\(\*\) FROM visible AS above WHERE .*? AND above\.label > nearest\.label \)"


def _compared(name: str, killer: str, *patches: Patch, damage: tuple[str, ...] = (), about: str = "memories") -> Mutant:
    """A mutant of the statement that compares embeddings."""
    return Mutant(name, killer, patches, damage, about=about)


def _made_of(name: str, patch: Patch, probe: Callable[..., None]) -> Mutant:
    """A mutant of what a vector is made of."""
    return Mutant(name, "vectors hold what there is", (patch,), probe=probe)


def _edit(old: str, new: str) -> Patch:
    return edit(ITEMS, "search_embeddings", old, new)


_ANY_VERSION = (
    _edit("chunk.name, chunk.change_id, chunk.piece)", "chunk.name, chunk.piece)"),
    _edit(
        "(nearest.kind, nearest.name, nearest.change_id, nearest.piece)",
        "(nearest.kind, nearest.name, nearest.piece)",
    ),
)
"""A vector may be that of another version than the chunk it is joined to."""
EMBEDDINGS = (
    _compared("M10 a semantic search has no shadow", "model", cut(ITEMS, "search_embeddings", _SHADOW)),
    _compared(
        "M09 a semantic search filters tags before the shadow",
        "model",
        _edit("AND above.label > nearest.label", "AND above.label > nearest.label AND above.tags @> %(tags)s::text[]"),
    ),
    _compared("the chunk of another version is checked", "model", *_ANY_VERSION),
    Mutant(
        "M12 vectors of all levels are looked at",
        "",
        damage=ALL_EMBEDDINGS,
        covered_by="what is compared is a visible chunk of the same version",
    ),
    _compared("M12 vectors of all levels are compared", "worlds", *_ANY_VERSION, damage=ALL_EMBEDDINGS),
    _compared(
        "M16 embeddings are compared without the session predicate",
        "fault",
        _edit(" AND session.session_id = %(session_id)s", ""),
    ),
    _compared(
        "embeddings of any agent are compared",
        "model",
        *(
            _edit(f" AND {relation}.agent = (SELECT session.agent FROM session)", "")
            for relation in ("visible_meaning", "visible_chunk")
        ),
    ),
    _compared("a semantic search in any tier", "model", _edit("chunk.tier = %(tier)s", "TRUE"), about="notes"),
    _compared(
        "a semantic search in any thread",
        "model",
        _edit("AND (%(thread)s::text IS NULL OR chunk.thread = %(thread)s)", ""),
        about="passages",
    ),
    Mutant(
        "M34 an expired chunk is compared",
        "what is shown was compared",
        damage=EXPIRED_CHUNKS,
        probe=probes.what_has_expired_is_not_compared,
    ),
    Mutant(
        "what was compared is shown, whatever it is now",
        "what is shown was compared",
        (setting(search, "_is_current", lambda *_: True),),
        probe=probes.what_is_shown_was_compared,
    ),
    _made_of(
        "what is deleted stays in the next turn's vector",
        edit(ITEMS, "index_items", "cleared.prior = deleted.change_id", "FALSE"),
        probes.a_vector_parts_with_what_is_deleted,
    ),
    _made_of(
        "what is deleted while it is embedded stays in the next turn's vector",
        edit(embedding_queue._QUERIES, "keep_vectors", "kept.prior IS NOT DISTINCT FROM made.prior", "TRUE"),
        probes.a_vector_parts_with_what_is_deleted_meanwhile,
    ),
    _made_of(
        "what is to expire is in the next turn's vector",
        edit(ITEMS, "queue_chunks", " AND prior.expire_time IS NULL", ""),
        probes.a_vector_holds_the_turn_before_it_only,
    ),
    _made_of(
        "a turn of another thread is in a vector",
        edit(
            ITEMS,
            "queue_chunks",
            "(earlier.agent, earlier.thread, earlier.piece) = (own.agent, own.thread, 0)",
            "(earlier.agent, earlier.piece) = (own.agent, 0)",
        ),
        probes.a_vector_holds_the_turn_before_it_only,
    ),
)
