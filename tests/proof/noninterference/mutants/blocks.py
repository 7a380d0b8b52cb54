"""Guards of blocks, broken: whose they are, who sees them, and at which level."""

from __future__ import annotations

from muniment_server.domain import blocks
from muniment_server.domain.errors import LineOutOfRange, TextNotFound
from muniment_server.items import item_store
from muniment_server.monitor import egress
from tests.proof.noninterference.mutants.damage import (
    ANY_LINK,
    ANY_OWNER,
    EVERYTHING_SHARED,
    ONE_NAME_FOR_ALL_LEVELS,
    PEEK,
)
from tests.proof.noninterference.mutants.scheme import HOSTS, ITEMS, Mutant, Patch, edit, setting

_SEEN_BY_SESSION = " AND shared_visible.session_id = %(session_id)s"
_OWN_LABEL = "(visible.kind, visible.name) = (%(kind)s, %(name)s)"
_CREATED = "WHERE %(content)s = '' OR EXISTS (SELECT FROM new_item)"


def _any_place(text: str, old: str, new: str) -> str:
    if old not in text:
        raise TextNotFound
    return text.replace(old, new, 1)


def _within_lines(text: str, line: int, content: str) -> str:
    lines = blocks._lines(text)
    if line > len(lines):
        raise LineOutOfRange
    return "".join(lines[:line]) + content + "".join(lines[line:])


def block(name: str, killer: str, *patches: Patch, damage: tuple[str, ...] = ()) -> Mutant:
    return Mutant(name, killer, patches, damage, about="blocks")


BLOCKS = (
    block(
        "of one label one block is listed",
        "model",
        edit(ITEMS, "list_blocks", "DISTINCT ON (seen.name, seen.owner_agent_id)", "DISTINCT ON (seen.name)"),
    ),
    block(
        "M05 the lowest version of a block is listed",
        "model",
        edit(ITEMS, "list_blocks", "NULLS FIRST, seen.label DESC", "NULLS FIRST, seen.label"),
    ),
    block(
        "M13 the list does not begin with the own block",
        "model",
        edit(ITEMS, "list_blocks", "NULLS FIRST", "NULLS LAST", count=3),
    ),
    block(
        "M13 a page of blocks goes on after the label",
        "model",
        edit(
            ITEMS,
            "list_blocks",
            "(seen.name, coalesce(seen.owner_agent_id, '')) > (%(after_label)s, %(after_owner)s)",
            "seen.name > %(after_label)s",
        ),
    ),
    block(
        "a shared block comes before the own one",
        "model",
        edit(ITEMS, "get_block", "seen.owner_agent_id NULLS FIRST", "seen.owner_agent_id NULLS LAST"),
    ),
    block(
        "a higher shared block comes before the own one",
        "model",
        edit(
            ITEMS,
            "get_block",
            "seen.owner_agent_id NULLS FIRST, seen.label DESC",
            "seen.label DESC, seen.owner_agent_id NULLS FIRST",
        ),
    ),
    block(
        "M16 blocks are listed without the session predicate",
        "fault",
        edit(
            ITEMS,
            "list_blocks",
            " AND session.session_id = %(session_id)s",
            "",
        ),
    ),
    block("M03 shared blocks of any session are read", "model", edit(ITEMS, "get_block", _SEEN_BY_SESSION, "")),
    block("M03 shared blocks of any session are listed", "model", edit(ITEMS, "list_blocks", _SEEN_BY_SESSION, "")),
    block("M89 every link is everybody's", "model", damage=ANY_LINK),
    Mutant("M97 blocks of agents that a key does not know are shared with its sessions", "model", damage=ANY_OWNER),
    Mutant("M60 an owner's view over what is shared", "grants", damage=EVERYTHING_SHARED),
    block("M60 an owner's view over what is shared, served", "egress", damage=EVERYTHING_SHARED),
    block(
        "M60 an owner's view over what is shared, no egress filter",
        "worlds",
        setting(egress, "may_leave", lambda *_: True),
        damage=EVERYTHING_SHARED,
    ),
    block(
        "M88 a consumer writes the owner's block",
        "model",
        edit(
            ITEMS,
            "save_item",
            "SELECT %(tenant)s, session.agent, %(kind)s, %(name)s, %(item_id)s",
            "SELECT %(tenant)s, coalesce((SELECT min(link.owner) FROM link WHERE link.tenant = %(tenant)s"
            " AND link.session_id = %(session_id)s AND link.label = %(name)s), session.agent),"
            " %(kind)s, %(name)s, %(item_id)s",
        ),
    ),
    block(
        "an edit looks at the own level only",
        "model",
        edit(ITEMS, "get_item", _OWN_LABEL, f"{_OWN_LABEL} AND visible.label = session.label"),
    ),
    block(
        "M20 a lower block is deleted in place",
        "fault",
        edit(ITEMS, "delete_item", "UPDATE item AS own", "UPDATE muniment_public.item AS own"),
    ),
    block("M23 a label is unique across levels", "worlds", damage=(*PEEK, *ONE_NAME_FOR_ALL_LEVELS)),
    block(
        "M30 a block over a lower one has a create_time of its own",
        "model",
        edit(ITEMS, "save_item", "%(kind)s IN (2, 3)", "%(kind)s IN (2)"),
    ),
    block(
        "a block's etag is ignored",
        "model",
        setting(item_store, "etag_parameters", lambda _: {"etag_item": None, "etag_revision": None}),
    ),
    block("the first of several places is replaced", "model", setting(blocks, "_replaced", _any_place)),
    block("what is put in is no line of its own", "model", setting(blocks, "_inserted", _within_lines)),
    block(
        "lines end where Unicode says", "model", setting(blocks, "_lines", lambda text: text.splitlines(keepends=True))
    ),
    block("a block may be of any size", "model", setting(blocks, "BLOCK_BYTES", 1 << 30)),
    block("a PUBLIC version is no hindrance to content", "model", edit(HOSTS, "create_shared_block", _CREATED, "")),
    block(
        "M38 consumers of any label",
        "model",
        edit(
            HOSTS,
            "list_block_consumers",
            "(block_link.owner, block_link.label) = (shared_block.owner, shared_block.label)",
            "block_link.owner = shared_block.owner",
        ),
    ),
    block(
        "M89 a block of another tenant's agent",
        "fault",
        edit(HOSTS, "attach_block", "WHERE agent.tenant = %(tenant)s AND agent.agent_id IN", "WHERE agent.agent_id IN"),
    ),
    block(
        "a block of an owner above the ceiling of who reads it",
        "model",
        edit(HOSTS, "attach_block", "pair.owner_ceiling > pair.consumer_ceiling", "FALSE"),
    ),
    block(
        "what is attached stays attached",
        "model",
        edit(
            HOSTS,
            "detach_block",
            "(pair.owner, %(label)s, pair.consumer)",
            "(pair.owner, %(label)s || '?', pair.consumer)",
        ),
    ),
)
