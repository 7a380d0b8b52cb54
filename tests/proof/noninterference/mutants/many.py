"""Guards of saving and deleting many items at once, of renames and of filters by key prefix, broken."""

from __future__ import annotations

from muniment_server.memories import repository
from muniment_server.monitor import egress
from tests.proof.noninterference import probes
from tests.proof.noninterference.mutants.damage import PEEK
from tests.proof.noninterference.mutants.scheme import ITEMS, Mutant, Patch, edit, setting

_OF_THE_SESSION = " AND session.session_id = %(session_id)s"
_HIDDEN_SOURCE = "vault.peek(%(tenant)s, (SELECT session.agent FROM session), %(name)s)"
_HIDDEN_TARGET = "vault.peek(%(tenant)s, (SELECT session.agent FROM session), %(new_name)s)"
_REVEALED = edit(
    ITEMS,
    "release_item",
    "below.label AS revealed",
    f"greatest(below.label, nullif({_HIDDEN_SOURCE}, (SELECT session.label FROM session))) AS revealed",
)


def _passages(name: str, killer: str, *patches: Patch) -> Mutant:
    return Mutant(name, killer, patches, about="passages")


MANY = (
    Mutant("M15 rename without the session predicate", "fault", (edit(ITEMS, "release_item", _OF_THE_SESSION, ""),)),
    Mutant(
        "M15 delete many without the session predicate", "fault", (edit(ITEMS, "delete_items", _OF_THE_SESSION, ""),)
    ),
    Mutant(
        "M18 rename does not lock the session",
        "a raise waits for the renamer",
        (edit(ITEMS, "release_item", "session.read_only FOR NO KEY UPDATE", "session.read_only"),),
        probe=probes.a_raise_waits_for_the_renamer,
    ),
    Mutant(
        "M18 delete many does not lock the session",
        "a raise waits for the deleter of many",
        (edit(ITEMS, "delete_items", "session.read_only FOR NO KEY UPDATE", "session.read_only"),),
        probe=probes.a_raise_waits_for_the_deleter_of_many,
    ),
    Mutant(
        "M20 lower rows are deleted in place",
        "fault",
        (edit(ITEMS, "delete_items", "UPDATE item AS own", "UPDATE muniment_public.item AS own"),),
    ),
    Mutant(
        "M25 a key above is taken",
        "worlds",
        (edit(ITEMS, "release_item", "below.target_label IS NOT NULL OR", f"{_HIDDEN_TARGET} IS NOT NULL OR"),),
        damage=PEEK,
    ),
    Mutant(
        "M32 a rename tells what is above from nothing",
        "worlds",
        (edit(ITEMS, "release_item", "AND below.label IS NULL", f"AND {_HIDDEN_SOURCE} IS NULL"),),
        damage=PEEK,
    ),
    Mutant("M33 a rename reveals what is above", "egress", (_REVEALED,), damage=PEEK),
    Mutant(
        "M33 a rename reveals what is above, no egress filter",
        "worlds",
        (_REVEALED, setting(egress, "may_leave", lambda *_: True)),
        damage=PEEK,
    ),
    Mutant(
        "M39 a delete of many says that there is more above",
        "worlds",
        (
            edit(
                ITEMS,
                "delete_items",
                "(SELECT count(*) FROM deleted) AS more",
                "(SELECT count(*) FROM deleted) OR vault.peek(%(tenant)s, session.agent, NULL) > session.label AS more",
            ),
        ),
        damage=PEEK,
    ),
    Mutant(
        "a rename ignores the etag",
        "model",
        (
            edit(
                ITEMS,
                "release_item",
                "WHEN (source.item_id, source.revision) <> (%(etag_item)s::uuid, %(etag_revision)s) THEN 'ETAG_STALE'",
                "",
            ),
        ),
    ),
    Mutant(
        "a lower memory is no hindrance to a rename",
        "model",
        (edit(ITEMS, "release_item", "below.target_label IS NOT NULL OR", ""),),
    ),
    Mutant(
        "an expired memory is in the way of a rename",
        "model",
        (edit(ITEMS, "release_item", "%(new_name)s AND NOT target.is_expired", "%(new_name)s"),),
    ),
    Mutant(
        "an expired memory is renamed",
        "model",
        (edit(ITEMS, "release_item", "%(name)s AND NOT source.is_expired", "%(name)s"),),
    ),
    Mutant("some of a batch are saved", "model", (setting(repository, "_require_saved", lambda _: None),)),
    Mutant("a key is twice in a batch", "model", (setting(repository, "require_different_keys", lambda _: None),)),
    Mutant(
        "a delete of many ignores the tag",
        "model",
        (edit(ITEMS, "delete_items", "own.tags @> ARRAY[%(tag)s::text]", "TRUE"),),
    ),
    _passages(
        "a delete of many ignores the thread",
        "model",
        edit(ITEMS, "delete_items", "own.thread = %(thread)s", "TRUE"),
    ),
    Mutant(
        "a list ignores the end of its key prefix",
        "model",
        (edit(ITEMS, "list_items", "AND visible.name < %(after_prefix)s", ""),),
    ),
    Mutant(
        "a search ignores the end of its key prefix",
        "model",
        (edit(ITEMS, "search_items", "AND chunk.name < %(after_prefix)s", ""),),
    ),
)
