"""Guards of passages and of the rendered prompt, broken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muniment_server.domain.classification import Label
from muniment_server.domain.notes import NoteSet
from muniment_server.items import paging, wire
from muniment_server.monitor import egress
from muniment_server.passages import batches, servicer
from muniment_server.prompts import repository as prompts
from muniment_server.prompts import servicer as prompt_servicer
from tests.proof.noninterference.mutants.damage import ONE_NAME_FOR_ALL_LEVELS, PEEK
from tests.proof.noninterference.mutants.scheme import ITEMS, OWN_TABLE, Mutant, Patch, cut, edit, remembering, setting

_SHADOW = r"AND seen\.label = \( SELECT max\(above\.label\).*?seen\.name\) \)"
_SEARCH_SHADOW = (
    r"(AND|WHERE) 0 = \( SELECT count\(\*\) FROM visible AS above WHERE .*? AND above\.label > \w+\.label \)"
)
_OF_THE_NAME = "(above.kind, above.name) = (4, seen.name)"
_BEFORE = (
    "(seen.event_time, seen.create_time, seen.name)"
    " < (%(before_event)s::timestamptz, %(before_create)s::timestamptz, %(before_name)s)"
)
_THREAD = "AND (%(thread)s::text IS NULL OR seen.thread = %(thread)s)"
_IN_PLACE = "given.position * interval '1 microsecond'"
_read = prompts.read
_etag_of_text = paging.etag_of_text


def _without_what_came_before(given: Iterator[Any]) -> Iterator[batches.Batch]:
    yield batches.Batch(list(given), more_follow=False)


def prompts_remembered() -> Any:
    """Reads the prompt of a tenant's highest level once."""
    remembered: dict[Any, Any] = {}

    def prompt_read(scope: Any, *, blocks: bool, tiers: Any) -> Any:
        key = scope._session.tenant, blocks, tuple(tiers)
        highest, made = remembered.get(key, (0, None))
        if highest <= scope.taint.value:
            made = _read(scope, blocks=blocks, tiers=tiers)
            remembered[key] = scope.taint.value, made
        return made

    return prompt_read


def _etag_of_the_beginning(text: str) -> str:
    return _etag_of_text(text[:40])


def passage(name: str, killer: str, *patches: Patch, damage: tuple[str, ...] = ()) -> Mutant:
    return Mutant(name, killer, patches, damage, about="passages")


def prompt(name: str, killer: str, *patches: Patch, damage: tuple[str, ...] = ()) -> Mutant:
    return Mutant(name, killer, patches, damage, about="prompts")


PASSAGES = (
    passage("M10 passages are listed without the shadow", "model", cut(ITEMS, "list_passages", _SHADOW)),
    passage(
        "M09 a list of passages filters tags before the shadow",
        "model",
        edit(ITEMS, "list_passages", _OF_THE_NAME, f"{_OF_THE_NAME} AND above.tags @> %(tags)s::text[]"),
    ),
    passage("M10 a search of passages has no shadow", "model", cut(ITEMS, "search_items", _SEARCH_SHADOW)),
    passage(
        "the end of a time is in it",
        "model",
        edit(ITEMS, "list_passages", "seen.event_time < %(end_time)s", "seen.event_time <= %(end_time)s"),
    ),
    passage(
        "the end of a time is in it, in a search",
        "model",
        edit(ITEMS, "search_items", "chunk.event_time < %(end_time)s", "chunk.event_time <= %(end_time)s"),
    ),
    passage(
        "the beginning of a time is not in it",
        "model",
        edit(ITEMS, "list_passages", "seen.event_time >= %(start_time)s", "seen.event_time > %(start_time)s"),
    ),
    passage("a list of any thread", "model", edit(ITEMS, "list_passages", _THREAD, "")),
    passage("a search in any thread", "model", edit(ITEMS, "search_items", _THREAD.replace("seen", "chunk"), "")),
    passage(
        "M13 a page of passages goes on after the event_time",
        "model",
        edit(ITEMS, "list_passages", _BEFORE, "seen.event_time < %(before_event)s::timestamptz"),
    ),
    passage(
        "M15 passages are stored without the session predicate",
        "fault",
        edit(ITEMS, "store_passages", " AND session.session_id = %(session_id)s", ""),
    ),
    passage(
        "M16 passages are listed without the session predicate",
        "fault",
        edit(ITEMS, "list_passages", " AND session.session_id = %(session_id)s", ""),
    ),
    passage("M23 a passage id is unique across levels", "worlds", damage=(*PEEK, *ONE_NAME_FOR_ALL_LEVELS)),
    passage(
        "M44 a passage is known at the own level only",
        "model",
        edit(
            ITEMS,
            "store_passages",
            "JOIN visible ON",
            f"JOIN {OWN_TABLE} ON visible.tenant = %(tenant)s"
            " AND visible.agent = (SELECT session.agent FROM session) AND visible.delete_time IS NULL AND",
        ),
    ),
    passage(
        "M39 an import counts what is above",
        "worlds",
        edit(
            ITEMS,
            "store_passages",
            "SELECT CASE WHEN stored.item_id IS NOT NULL",
            "SELECT CASE WHEN vault.peek(%(tenant)s, session.agent, given.name) > session.label THEN 'EXISTS'"
            " WHEN stored.item_id IS NOT NULL",
        ),
        damage=PEEK,
    ),
    passage(
        "M25 a passage id above is taken",
        "worlds",
        edit(
            ITEMS,
            "store_passages",
            "SELECT CASE WHEN stored.item_id IS NOT NULL",
            "SELECT CASE WHEN vault.peek(%(tenant)s, session.agent, given.name) > session.label THEN 'ALREADY_EXISTS'"
            " WHEN stored.item_id IS NOT NULL",
        ),
        damage=PEEK,
    ),
    passage(
        "another content under the same id is the same passage",
        "model",
        edit(ITEMS, "store_passages", "given.content = visible.content AS same", "TRUE AS same"),
    ),
    passage(
        "what comes after a conflict is stored",
        "model",
        edit(
            ITEMS,
            "store_passages",
            "coalesce((SELECT refused.position FROM refused), %(count)s)",
            "%(count)s",
        ),
    ),
    passage(
        "passages of one batch have one create_time",
        "model",
        edit(ITEMS, "store_passages", _IN_PLACE, "interval '0'", count=2),
    ),
    passage("what came before a bad message is lost", "model", setting(servicer, "batches", _without_what_came_before)),
    passage("an id may be twice in a batch", "model", setting(batches, "_has_id", lambda *_: False)),
    passage(
        "a broken import does not tell how far it came",
        "model",
        setting(servicer, "_with_progress", lambda error, _: error),
    ),
    passage(
        "M32 a delete of a passage tells what is above from nothing",
        "worlds",
        edit(
            ITEMS,
            "delete_item",
            "WHEN below.label IS NOT NULL",
            "WHEN vault.peek(%(tenant)s, (SELECT session.agent FROM session), %(name)s) IS NOT NULL",
        ),
        damage=PEEK,
    ),
)
PROMPTS = (
    prompt("M08 the label of a prompt is PUBLIC", "model", setting(wire, "join", lambda _: Label.PUBLIC_TRUSTED)),
    prompt("M78 prompts are remembered without the taint", "egress", remembering(prompts, "read", prompts_remembered)),
    prompt(
        "M78 prompts are remembered without the taint, no egress filter",
        "worlds",
        remembering(prompts, "read", prompts_remembered),
        setting(egress, "may_leave", lambda *_: True),
    ),
    prompt("a tier that is off is rendered", "model", setting(NoteSet, "enabled", lambda *_: True)),
    prompt(
        "the etag is that of the beginning",
        "model",
        setting(prompt_servicer, "etag_of_text", _etag_of_the_beginning),
    ),
)
