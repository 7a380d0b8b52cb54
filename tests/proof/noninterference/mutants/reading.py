"""Guards of reading, broken: the lattice, and the order of shadow, filter and limit."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.items import wire
from muniment_server.monitor import validation
from tests.proof.noninterference import probes
from tests.proof.noninterference.mutants.damage import (
    PEEK,
    VISIBLE_OPTIONS,
)
from tests.proof.noninterference.mutants.scheme import ITEMS, Mutant, cut, edit, setting, view

_TAG_FILTER = "seen.tags @> %(tags)s::text[]"
_SHADOW = r"(AND|WHERE) 0 = \( SELECT count\(\*\) FROM visible AS above WHERE .*? AND above\.label > \w+\.label \)"


def _parse_only(self: Any, request_type: str, request: bytes) -> Any:
    try:
        return self._parsers[request_type](request)
    except DecodeError:
        raise InvalidArgument(FieldViolation("", "is not a message of this method")) from None


LATTICE = (
    Mutant("M01 can_flow_to is <", "model", (setting(Classification, "can_flow_to", lambda a, b: a < b),)),
    Mutant("M02 can_flow_to is >=", "egress", (setting(Classification, "can_flow_to", lambda a, b: a >= b),)),
    Mutant("M03 can_flow_to is ==", "egress", (setting(Classification, "can_flow_to", lambda a, b: a == b),)),
    Mutant("M04 can_flow_to is always true", "model", (setting(Classification, "can_flow_to", lambda a, b: True),)),
    Mutant(
        "M05 get takes the lowest", "model", (edit(ITEMS, "get_item", "BY visible.label DESC", "BY visible.label"),)
    ),
    Mutant(
        "M05 list takes the lowest",
        "model",
        (edit(ITEMS, "list_items", "visible.level DESC, visible.label DESC", "visible.level, visible.label"),),
    ),
    Mutant(
        "M05 search takes the lowest",
        "model",
        (edit(ITEMS, "search_items", "above.label > ranked", "above.label < ranked"),),
    ),
    Mutant(
        "M06 a deleted version still shadows",
        "model",
        damage=view("visible", "(delete_time IS NULL)", "true", options=VISIBLE_OPTIONS),
    ),
    Mutant(
        "M07 the contract's rules are not enforced", "fault", (setting(validation.Validator, "parse", _parse_only),)
    ),
    Mutant(
        "M08 the label of an answer is PUBLIC", "model", (setting(wire, "join", lambda labels: Label.PUBLIC_TRUSTED),)
    ),
    Mutant(
        "M08 the label of an answer is the highest", "egress", (setting(wire, "join", lambda labels: Label.RESTRICTED),)
    ),
)
ORDER = (
    Mutant(
        "M09 list filters tags before the shadow",
        "model",
        (
            edit(
                ITEMS,
                "list_items",
                "AND visible.name > %(after)s",
                "AND visible.name > %(after)s AND visible.tags @> %(tags)s::text[]",
            ),
        ),
    ),
    Mutant(
        "M09 search filters tags before the shadow",
        "model",
        (
            edit(
                ITEMS,
                "search_items",
                "AND above.label > ranked.label",
                "AND above.label > ranked.label AND above.tags @> %(tags)s::text[]",
            ),
        ),
    ),
    Mutant(
        "M09 search matches words before the shadow",
        "model",
        (
            edit(
                ITEMS,
                "search_items",
                "AND above.label > ranked.label",
                "AND above.label > ranked.label"
                " AND to_tsvector('pg_catalog.english', above.content) @@ %(wanted_stems)s::tsquery",
            ),
        ),
    ),
    Mutant(
        "M10 list limits before the shadow",
        "model",
        (
            edit(
                ITEMS,
                "list_items",
                " FROM visible WHERE visible.kind",
                " FROM (SELECT * FROM visible AS v WHERE v.name > %(after)s"
                " ORDER BY v.name LIMIT %(limit)s) AS visible WHERE visible.kind",
            ),
        ),
    ),
    Mutant("M10 search has no shadow", "model", (cut(ITEMS, "search_items", _SHADOW),)),
    Mutant(
        "M12 scores count over all levels",
        "worlds",
        (edit(ITEMS, "search_items", "::float8 AS score", "::float8 / vault.count(item.tenant, item.agent) AS score"),),
        damage=PEEK,
    ),
    Mutant(
        "M13 ties are left to chance",
        "equal scores are in the order of names",
        (edit(ITEMS, "search_items", " DESC, found.name", " DESC, found.name DESC"),),
        probe=probes.equal_scores_are_in_the_order_of_names,
    ),
)
_NEWEST = "first_value(visible.label) OVER (ORDER BY visible.update_time DESC, visible.label DESC)"
_OF_ALL_LEVELS = "vault.peek(visible.tenant, visible.agent, visible.name)"
NEWER = tuple(
    Mutant(
        f"M95 {query} takes the newest version of all levels",
        "newer above hides nothing",
        (edit(ITEMS, query, f"{newest} AS newest_label", f"greatest({newest}, {of_all_levels}) AS newest_label"),),
        damage=PEEK,
        probe=probes.what_is_newer_above_hides_nothing,
    )
    for query, newest, of_all_levels in (
        ("get_item", _NEWEST, _OF_ALL_LEVELS),
        ("list_items", "newest.label", _OF_ALL_LEVELS.replace("visible", "sized")),
        ("search_items", _NEWEST, _OF_ALL_LEVELS),
    )
)
