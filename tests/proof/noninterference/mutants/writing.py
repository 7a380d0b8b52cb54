"""Guards of writing, broken: the session predicate, own level only, and what must not be said about other levels."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import psycopg

from muniment_server.domain import ids
from muniment_server.domain.classification import Label
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.principals import SessionIdentity
from muniment_server.memories import wire as memories_wire
from muniment_server.monitor import egress, interceptors, retry
from muniment_server.postgres import driver_errors, pool
from tests.proof.noninterference import probes
from tests.proof.noninterference.mutants.damage import (
    NO_TAINT,
    ONE_COUNTER,
    ONE_NAME_FOR_ALL_LEVELS,
    PEEK,
    TOUCHED_AGENTS,
)
from tests.proof.noninterference.mutants.scheme import ITEMS, OWN_TABLE, Mutant, edit, setting

_OF_THE_SESSION = " AND session.session_id = %(session_id)s"


def _never_read_again(self: Any, call: Any) -> Any:
    return call.principal


_authenticate = interceptors.Authenticate.__call__


def _taint_from_metadata(self: Any, call: Any, proceed: Any) -> Any:
    def lowered(call: Any) -> Any:
        for name, value in call.grpc_context.invocation_metadata():
            if name == "x-taint" and isinstance(call.principal, SessionIdentity):
                call.principal = replace(call.principal, taint=Label(int(value)))
        return proceed(call)

    return _authenticate(self, call, lowered)


_domain_error = driver_errors.domain_error


def _in_its_own_words(error: psycopg.Error) -> Exception:
    if isinstance(error, psycopg.errors.CheckViolation):
        return InvalidArgument(FieldViolation("expire_time", str(error.diag.message_detail)))
    return _domain_error(error)


_CHECKED_LATE = edit(ITEMS, "save_item", "JOIN expiry ON NOT expiry.past", "JOIN expiry ON expiry.past IS NOT NULL")

WRITES = (
    Mutant(
        "M14 taint from the metadata",
        "",
        (setting(interceptors.Authenticate, "__call__", _taint_from_metadata),),
        covered_by="session predicate",
    ),
    Mutant(
        "M14 taint from the metadata, view without taint",
        "model",
        (setting(interceptors.Authenticate, "__call__", _taint_from_metadata),),
        damage=NO_TAINT,
    ),
    Mutant("M15 save without the session predicate", "fault", (edit(ITEMS, "save_item", _OF_THE_SESSION, ""),)),
    Mutant("M15 delete without the session predicate", "fault", (edit(ITEMS, "delete_item", _OF_THE_SESSION, ""),)),
    Mutant("M16 get without the session predicate", "fault", (edit(ITEMS, "get_item", _OF_THE_SESSION, ""),)),
    Mutant("M16 list without the session predicate", "fault", (edit(ITEMS, "list_items", _OF_THE_SESSION, ""),)),
    Mutant(
        "M16 search without the session predicate",
        "fault",
        tuple(edit(ITEMS, query, _OF_THE_SESSION, "") for query in ("search_terms", "search_items")),
    ),
    Mutant(
        "M17 the session lock is FOR KEY SHARE",
        "a raise waits for the writer",
        (edit(ITEMS, "save_item", "session.read_only FOR NO KEY UPDATE", "session.read_only FOR KEY SHARE"),),
        probe=probes.a_raise_waits_for_the_writer,
    ),
    Mutant(
        "M18 save does not lock the session",
        "a raise waits for the writer",
        (edit(ITEMS, "save_item", "session.read_only FOR NO KEY UPDATE", "session.read_only"),),
        probe=probes.a_raise_waits_for_the_writer,
    ),
    Mutant(
        "M18 delete does not lock the session",
        "a raise waits for the writer",
        (edit(ITEMS, "delete_item", "session.read_only FOR NO KEY UPDATE", "session.read_only"),),
        probe=probes.a_raise_waits_for_the_deleter,
    ),
    Mutant(
        "M19 written one level below the taint",
        "fault",
        (
            edit(
                ITEMS,
                "save_item",
                "expire_time) SELECT %(tenant)s, session.agent, %(kind)s, %(name)s, %(item_id)s",
                "expire_time, level) SELECT %(tenant)s, session.agent, %(kind)s, %(name)s, %(item_id)s",
            ),
            edit(
                ITEMS,
                "save_item",
                "%(expire_time)s::timestamptz FROM session",
                "%(expire_time)s::timestamptz, greatest(session.taint - 1, 1) FROM session",
            ),
        ),
    ),
    Mutant(
        "M20 a lower row is deleted in place",
        "fault",
        (edit(ITEMS, "delete_item", "UPDATE item AS own", "UPDATE muniment_public.item AS own"),),
    ),
    Mutant(
        "M21 the retry stays on the old connection",
        "model",
        (setting(retry.RetryOnTaintChange, "_current", _never_read_again),),
    ),
    Mutant(
        "M22 get reads the table, not the view",
        "model",
        (edit(ITEMS, "get_item", "FROM visible WHERE visible.tenant", f"FROM {OWN_TABLE} WHERE visible.tenant"),),
    ),
    Mutant(
        "M34 an expired row still stands",
        "model",
        (edit(ITEMS, "save_item", "own.expire_time <= excluded.update_time", "FALSE", count=2),),
    ),
    Mutant(
        "M34 a save continues what expires at that very moment",
        "what expires now is gone",
        (
            edit(
                ITEMS,
                "save_item",
                "own.expire_time <= excluded.update_time AS gone",
                "own.expire_time < excluded.update_time AS gone",
            ),
        ),
        probe=probes.what_expires_now_is_gone,
    ),
    Mutant(
        "a save that only creates replaces what is there",
        "a save only creates",
        (setting(memories_wire, "NO_VERSION", None),),
        probe=probes.a_save_only_creates,
    ),
    Mutant(
        "a save that only creates shadows what is below",
        "a save only creates",
        (
            edit(
                ITEMS,
                "save_item",
                "(coalesce(below.item_id, %(etag_item)s), coalesce(below.revision, 0)) =",
                "(%(etag_item)s::uuid, 0) =",
            ),
        ),
        probe=probes.a_save_only_creates,
    ),
    Mutant(
        "M30 create_time is inherited",
        "model",
        (edit(ITEMS, "save_item", "%(kind)s IN (2, 3)", "%(kind)s IN (1, 2, 3)"),),
    ),
    Mutant(
        "a save overwrites whatever the etag",
        "model",
        (edit(ITEMS, "save_item", "WHERE %(etag_item)s IS NULL OR (own.item_id", "WHERE TRUE OR (own.item_id"),),
    ),
    Mutant(
        "a save's etag is checked against a lower version",
        "model",
        (
            edit(
                ITEMS,
                "save_item",
                "OR (own.item_id, own.revision) = (%(etag_item)s, %(etag_revision)s)",
                "OR EXISTS (SELECT FROM below WHERE (item_id, revision) = (%(etag_item)s, %(etag_revision)s))",
            ),
        ),
    ),
    Mutant(
        "a delete ignores the etag", "model", (edit(ITEMS, "delete_item", "%(etag_item)s::uuid IS NULL OR", "TRUE OR"),)
    ),
    Mutant(
        "an unchanged save is a new revision",
        "model",
        (edit(ITEMS, "save_item", "IS NOT DISTINCT FROM", "IS DISTINCT FROM"),),
    ),
)
EXISTENCE = (
    Mutant("M23 a name is unique across levels", "worlds", damage=(*PEEK, *ONE_NAME_FOR_ALL_LEVELS)),
    Mutant("a CHECK tests the expire time", "fault", (_CHECKED_LATE,)),
    Mutant(
        "M26 the driver's detail is forwarded",
        "",
        (setting(pool, "domain_error", _in_its_own_words),),
        covered_by="check before the insert",
    ),
    Mutant(
        "M26 the driver's detail is forwarded, a CHECK tests the expire time",
        "fault",
        (setting(pool, "domain_error", _in_its_own_words), _CHECKED_LATE),
    ),
    Mutant(
        "M28 ids tell the time",
        "ids are random",
        (setting(ids.RandomIds, "new_uuid", lambda _: uuid.uuid1()),),
        probe=probes.ids_are_random,
    ),
    Mutant("M29 one counter for all levels", "worlds", damage=ONE_COUNTER),
    Mutant("M31 writes touch the agent", "worlds", damage=TOUCHED_AGENTS),
    Mutant(
        "M32 delete tells what is above from nothing",
        "worlds",
        (
            edit(
                ITEMS,
                "delete_item",
                "WHEN below.label IS NOT NULL",
                "WHEN vault.peek(%(tenant)s, (SELECT session.agent FROM session), %(name)s) IS NOT NULL",
            ),
        ),
        damage=PEEK,
    ),
    Mutant(
        "M33 delete reveals what is above",
        "egress",
        (
            edit(
                ITEMS,
                "delete_item",
                "THEN below.label END",
                "THEN greatest(below.label, nullif(vault.peek(%(tenant)s, (SELECT session.agent FROM session),"
                " %(name)s), (SELECT session.label FROM session))) END",
            ),
        ),
        damage=PEEK,
    ),
    Mutant(
        "M33 delete reveals what is above, no egress filter",
        "worlds",
        (
            edit(
                ITEMS,
                "delete_item",
                "THEN below.label END",
                "THEN greatest(below.label, nullif(vault.peek(%(tenant)s, (SELECT session.agent FROM session),"
                " %(name)s), (SELECT session.label FROM session))) END",
            ),
            setting(egress, "may_leave", lambda *_: True),
        ),
        damage=PEEK,
    ),
)
