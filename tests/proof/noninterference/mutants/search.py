"""Guards of what search finds, broken."""

from __future__ import annotations

from tests.proof.noninterference import probes
from tests.proof.noninterference.mutants.damage import as_restricted
from tests.proof.noninterference.mutants.scheme import ITEMS, Mutant, edit

_SHADOW_OF_TURNS = (
    "AND 0 = ( SELECT count(*) FROM visible AS above"
    " WHERE (above.kind, above.name) = (%(kind)s, seen.name) AND above.label > seen.label )"
)


def _out_of_step(name: str, old: str, new: str) -> Mutant:
    """A mutant of the statement that keeps the index."""
    return Mutant(
        name,
        "search knows what there is",
        (edit(ITEMS, "index_items", old, new),),
        probe=probes.search_knows_what_there_is,
    )


SEARCH = (
    Mutant("M12 how many chunks there are is counted over all levels", "worlds", damage=as_restricted("visible_stat")),
    Mutant(
        "M12 how many chunks hold a word is counted over all levels", "worlds", damage=as_restricted("visible_chunk")
    ),
    _out_of_step(
        "what is deleted stays in the index",
        "DELETE FROM chunk AS old WHERE",
        "DELETE FROM chunk AS old WHERE FALSE AND",
    ),
    _out_of_step(
        "what is overwritten stays in the index",
        "WHERE live.change_id = old.change_id",
        "WHERE live.name = old.name",
    ),
    _out_of_step(
        "what is gone is still counted", "SELECT deleted.language, -1, -deleted", "SELECT deleted.language, 0, -deleted"
    ),
    Mutant(
        "M10 shadowed turns are neighbors",
        "neighbors are seen",
        (edit(ITEMS, "search_items", f"WHERE seen.piece = 0 {_SHADOW_OF_TURNS}", "WHERE seen.piece = 0"),),
        probe=probes.a_neighbor_is_a_turn_that_is_seen,
    ),
    Mutant(
        "M15 the index is written without the session predicate",
        "fault",
        (edit(ITEMS, "index_items", " AND session.session_id = %(session_id)s", ""),),
    ),
)
