"""Every guard, broken on purpose, with the check that must notice.

The ids M01 to M89 are those of the threat model's list of leak mutants. A mutant is a patch of the
server's Python, an edit of a named query, or damage done to the schema; some are two at once. Its killer is
one of

* `worlds`: the observer below can tell the two worlds apart, with the model's judgement switched off;
* `model`: the service answers otherwise than the reference model;
* `egress`: an answer above the taint was there, and the egress guard held it back;
* `fault`: another wall (a grant, a constraint) turned it into INTERNAL, or something was said that must not be;
* `walls`: the comparison of the catalogue with the matrix, which stops the server from starting;
* a probe: one pointed check of `probes.py`.

Where another wall stands behind the one that is broken, the mutant alone changes nothing that can be
observed. Such a mutant names its `covered_by`, must pass, and stands beside one that breaks both.
"""

from __future__ import annotations

import hmac
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest

from muniment_server.domain import ids, paging, text
from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import FieldViolation, InvalidArgument, Unauthenticated
from muniment_server.domain.records import SessionIdentity
from muniment_server.rpc import convert, labels, policy, rules, walls
from muniment_server.rpc.credentials import Credentials
from muniment_server.store import control, database, failures, fence, sessions
from tests.noninterference import probes

Patch = Callable[[pytest.MonkeyPatch], None]
ITEMS, HOSTS = fence._QUERIES, control.QUERIES
LEVELS = ("public", "internal", "confidential", "restricted")


@dataclass(frozen=True)
class Mutant:
    """One guard broken."""

    name: str
    killer: str
    patches: tuple[Patch, ...] = ()
    damage: tuple[str, ...] = ()
    probe: Callable[..., None] | None = None
    covered_by: str = ""
    seed: int = 1
    """The first program that kills it."""

    def __str__(self) -> str:
        return self.name


def setting(owner: object, name: str, value: object) -> Patch:
    """Replace an attribute."""
    return lambda monkeypatch: monkeypatch.setattr(owner, name, value)


def edit(queries: Mapping[str, str], query: str, old: str, new: str, *, count: int = 1) -> Patch:
    """Replace a fragment of a named query, which must be there *count* times."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        assert queries[query].count(old) == count, f"{query} does not hold {old!r} {count} times"
        monkeypatch.setitem(queries, query, queries[query].replace(old, new))

    return patch


def cut(queries: Mapping[str, str], query: str, pattern: str) -> Patch:
    """Remove what matches *pattern* from a named query."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        changed, found = re.subn(pattern, "", queries[query])
        assert found, f"{query} holds nothing like {pattern}"
        monkeypatch.setitem(queries, query, changed)

    return patch


def window(name: str, old: str, new: str, *, options: str) -> tuple[str, ...]:
    """Damage: a fragment of a window's text replaced, at every level."""
    return tuple(
        f"""DO $$
            DECLARE found text := pg_get_viewdef('muniment_{level}.{name}'::regclass);
            BEGIN
                ASSERT found LIKE '%{old.replace("'", "''")}%', found;
                EXECUTE 'CREATE OR REPLACE VIEW muniment_{level}.{name} WITH ({options}) AS '
                     || replace(found, '{old.replace("'", "''")}', '{new.replace("'", "''")}');
            END $$"""
        for level in LEVELS
    )


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The Python and the queries of *mutant*, for as long as the block lasts."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for patch in mutant.patches:
            patch(monkeypatch)
        yield


# What the patches put in the place of a guard.


def _look_no_further(self: Any, call: Any) -> Any:
    return call.principal


def _remember_forever(self: Any, token: Any, lifetime: Any) -> Any:
    session = self._sessions.get(token) or self._store.find_session(token, lifetime)
    if session is None:
        raise Unauthenticated
    self._sessions[token] = session
    return session


_principal = Credentials.principal


def _remember_hosts(self: Any, token: Any, lifetime: Any) -> Any:
    known = self.__dict__.setdefault("hosts", {})
    if token not in known:
        known[token] = _principal(self, token, lifetime)
    return known[token]


_authenticate = walls.Authenticate.__call__


def _taint_from_metadata(self: Any, call: Any, proceed: Any) -> Any:
    def lowered(call: Any) -> Any:
        for name, value in call.grpc_context.invocation_metadata():
            if name == "x-taint" and isinstance(call.principal, SessionIdentity):
                call.principal = replace(call.principal, taint=Classification(int(value)))
        return proceed(call)

    return _authenticate(self, call, lowered)


_connection = database.Database.connection


def _one_pool_for_two(self: Any, role: str, lifetime: Any) -> Any:
    return _connection(self, role.replace("muniment_internal", "muniment_confidential"), lifetime)


_in_our_words = failures.in_our_words


def _in_its_own_words(error: Exception) -> Exception:
    if isinstance(error, psycopg.errors.CheckViolation):
        return InvalidArgument(FieldViolation("expire_time", str(error.diag.message_detail)))
    return _in_our_words(error)


_validate = walls.Validate.__call__


def _log_requests(self: Any, call: Any, proceed: Any) -> Any:
    walls._LOG.info("%s %r", call.method.name, call.request_bytes)
    return _validate(self, call, proceed)


def _read_unaudited(self: Any, query: str, /, *, kind: Any, **parameters: object) -> Any:
    return fence._items(self._execute(query, kind=kind, **parameters).fetchall())


def _mac_of(**changes: Any) -> Callable[..., bytes]:
    original = paging.Pager._mac
    return lambda self, body: original(replace(self, **changes), body)


def _fixed_taint(self: Any, *last: str) -> str:
    return str(_token(replace(self, taint=None), *last))


def _any_taint(self: Any, token: str) -> Any:
    return _last(replace(self, taint=None), token)


_token, _last = paging.Pager.token, paging.Pager.last


# Damage that gives a low session a way to know what is above.

PEEK = (
    """CREATE FUNCTION vault.peek(tenant bigint, agent bigint, name text) RETURNS smallint
       LANGUAGE sql STABLE SECURITY DEFINER AS
       $$ SELECT max(item.level) FROM (
              SELECT * FROM muniment_public.item UNION ALL SELECT * FROM muniment_internal.item UNION ALL
              SELECT * FROM muniment_confidential.item UNION ALL SELECT * FROM muniment_restricted.item) AS item
           WHERE item.tenant = peek.tenant AND item.agent = peek.agent AND (peek.name IS NULL OR item.name = peek.name)
             AND item.delete_time IS NULL $$""",
    """CREATE FUNCTION vault.count(tenant bigint, agent bigint) RETURNS bigint
       LANGUAGE sql STABLE SECURITY DEFINER AS
       $$ SELECT count(*) FROM (
              SELECT * FROM muniment_public.item UNION ALL SELECT * FROM muniment_internal.item UNION ALL
              SELECT * FROM muniment_confidential.item UNION ALL SELECT * FROM muniment_restricted.item) AS item
           WHERE item.tenant = count.tenant AND item.agent = count.agent AND item.delete_time IS NULL $$""",
)
ONE_NAME_FOR_ALL_LEVELS = (
    """CREATE FUNCTION vault.only_one() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
       BEGIN
           IF vault.peek(NEW.tenant, NEW.agent, NEW.name) > NEW.level THEN
               RAISE unique_violation;
           END IF;
           RETURN NEW;
       END $$""",
    *(
        f"CREATE TRIGGER only_one BEFORE INSERT ON muniment_{level}.item FOR EACH ROW EXECUTE FUNCTION vault.only_one()"
        for level in LEVELS
    ),
)
TOUCHED_AGENTS = (
    """CREATE FUNCTION vault.touch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
       BEGIN
           UPDATE vault.agent SET update_time = vault.clock() WHERE (tenant, agent) = (NEW.tenant, NEW.agent);
           RETURN NEW;
       END $$""",
    *(
        f"CREATE TRIGGER touch BEFORE INSERT ON muniment_{level}.item FOR EACH ROW EXECUTE FUNCTION vault.touch()"
        for level in LEVELS
    ),
)
ONE_COUNTER = (
    "CREATE SEQUENCE vault.counter",
    "GRANT USAGE ON SEQUENCE vault.counter TO PUBLIC",
    *(f"ALTER TABLE muniment_{level}.item ALTER revision SET DEFAULT nextval('vault.counter')" for level in LEVELS),
)
EVERYTHING_VISIBLE = (
    """DO $$ BEGIN EXECUTE 'CREATE OR REPLACE VIEW muniment_public.visible AS '
              || pg_get_viewdef('muniment_restricted.visible'::regclass); END $$""",
    # The window that has its owner's rights.
    "ALTER VIEW muniment_public.visible RESET (security_invoker)",
)
_SESSION = "security_barrier = true"
NO_TAINT = (
    # No level at all is asked for: an old connection still finds the session that was raised.
    *(
        statement
        for number, level in enumerate(LEVELS, 1)
        for statement in (
            f"""DO $$
                DECLARE found text := pg_get_viewdef('muniment_{level}.session'::regclass);
                BEGIN
                    ASSERT found LIKE '%(conversation.taint = {number})%', found;
                    EXECUTE 'CREATE OR REPLACE VIEW muniment_{level}.session WITH ({_SESSION}) AS '
                         || replace(found, '(conversation.taint = {number})', 'true');
                END $$""",
        )
    ),
)
NO_CLOSE = window("session", "(session.close_time IS NULL)", "true", options=_SESSION)
NO_EXPIRY = window("session", "(session.expire_time > vault.clock())", "true", options=_SESSION)
_VISIBLE = "security_invoker = true"

_FENCED = " AND session.session_id = %(session_id)s"
_TAG_FILTER = "seen.tags @> %(tags)s::text[]"
_SHADOW = r"AND NOT EXISTS \( SELECT FROM visible AS above WHERE .*? AND above\.level > seen\.level \)"

LATTICE = (
    Mutant("M01 can_flow_to is <", "model", (setting(Classification, "can_flow_to", lambda a, b: a < b),)),
    Mutant("M02 can_flow_to is >=", "model", (setting(Classification, "can_flow_to", lambda a, b: a >= b),)),
    Mutant("M03 can_flow_to is ==", "model", (setting(Classification, "can_flow_to", lambda a, b: a == b),)),
    Mutant("M04 can_flow_to is always true", "model", (setting(Classification, "can_flow_to", lambda a, b: True),)),
    Mutant("M05 get takes the lowest", "model", (edit(ITEMS, "get_item", "visible.level DESC", "visible.level"),)),
    Mutant("M05 list takes the lowest", "model", (edit(ITEMS, "list_items", "visible.level DESC", "visible.level"),)),
    Mutant(
        "M05 search takes the lowest",
        "model",
        (edit(ITEMS, "search_items", "above.level > seen", "above.level < seen"),),
    ),
    Mutant(
        "M06 a deleted version still shadows",
        "model",
        damage=window("visible", "(delete_time IS NULL)", "true", options=_VISIBLE),
    ),
    Mutant("M07 the contract's rules are not enforced", "model", (setting(rules.Rules, "check", lambda *_: None),)),
    Mutant("M08 the label of an answer is PUBLIC", "model", (setting(convert, "join", lambda levels: 1),)),
    Mutant("M08 the label of an answer is the highest", "egress", (setting(convert, "join", lambda levels: 4),)),
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
                "AND above.level > seen.level",
                "AND above.level > seen.level AND above.tags @> %(tags)s::text[]",
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
                "AND above.level > seen.level",
                "AND above.level > seen.level AND above.search @@ (SELECT wanted.words FROM wanted)",
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
                "AS own_bytes FROM visible WHERE",
                "AS own_bytes FROM (SELECT * FROM visible AS v WHERE v.tenant = %(tenant)s AND v.agent = session.agent"
                " AND v.name > %(after)s ORDER BY v.name LIMIT %(limit)s) AS visible WHERE",
            ),
        ),
    ),
    Mutant("M10 search has no shadow", "model", (cut(ITEMS, "search_items", _SHADOW),)),
    Mutant(
        "M12 scores count over all levels",
        "worlds",
        (edit(ITEMS, "search_items", "::float8 AS score", "::float8 / vault.count(seen.tenant, seen.agent) AS score"),),
        damage=PEEK,
    ),
    Mutant(
        "M13 ties are left to chance",
        "model",
        (edit(ITEMS, "search_items", " DESC, found.name", " DESC, found.name DESC"),),
    ),
)
WRITES = (
    Mutant(
        "M14 taint from the metadata",
        "",
        (setting(walls.Authenticate, "__call__", _taint_from_metadata),),
        covered_by="fence",
    ),
    Mutant(
        "M14 taint from the metadata, window without taint",
        "model",
        (setting(walls.Authenticate, "__call__", _taint_from_metadata),),
        damage=NO_TAINT,
    ),
    Mutant("M15 save without the fence", "fault", (edit(ITEMS, "save_item", _FENCED, ""),)),
    Mutant("M15 delete without the fence", "fault", (edit(ITEMS, "delete_item", _FENCED, ""),)),
    Mutant("M16 get without the fence", "model", (edit(ITEMS, "get_item", _FENCED, ""),)),
    Mutant("M16 list without the fence", "model", (edit(ITEMS, "list_items", _FENCED, ""),)),
    Mutant("M16 search without the fence", "model", (edit(ITEMS, "search_items", _FENCED, ""),)),
    Mutant(
        "M17 the fence locks FOR KEY SHARE",
        "a raise waits for the writer",
        (edit(ITEMS, "save_item", "%(session_id)s FOR NO KEY UPDATE", "%(session_id)s FOR KEY SHARE"),),
        probe=probes.a_raise_waits_for_the_writer,
    ),
    Mutant(
        "M18 the fence does not lock",
        "a raise waits for the writer",
        (edit(ITEMS, "save_item", "%(session_id)s FOR NO KEY UPDATE", "%(session_id)s"),),
        probe=probes.a_raise_waits_for_the_writer,
    ),
    Mutant(
        "M18 delete's fence does not lock",
        "a raise waits for the writer",
        (edit(ITEMS, "delete_item", "%(session_id)s FOR NO KEY UPDATE", "%(session_id)s"),),
        probe=probes.a_raise_waits_for_the_deleter,
    ),
    Mutant(
        "M19 written one level below the taint",
        "fault",
        (
            edit(
                ITEMS,
                "save_item",
                "expire_time) SELECT %(tenant)s, fence.agent, %(kind)s, %(name)s, %(item_id)s",
                "expire_time, level) SELECT %(tenant)s, fence.agent, %(kind)s, %(name)s, %(item_id)s",
            ),
            edit(
                ITEMS,
                "save_item",
                "%(expire_time)s::timestamptz FROM fence",
                "%(expire_time)s::timestamptz, greatest(fence.taint - 1, 1) FROM fence",
            ),
        ),
    ),
    Mutant(
        "M20 a lower row is deleted in place",
        "fault",
        (edit(ITEMS, "delete_item", "UPDATE item AS own", "UPDATE muniment_public.item AS own"),),
    ),
    Mutant(
        "M21 the retry stays on the old connection", "model", (setting(walls.FollowTaint, "_look", _look_no_further),)
    ),
    Mutant(
        "M22 get reads the table, not the window",
        "model",
        (edit(ITEMS, "get_item", "FROM visible", "FROM item AS visible"),),
    ),
    Mutant(
        "M34 an expired row still stands",
        "model",
        (edit(ITEMS, "save_item", "own.expire_time <= excluded.update_time", "FALSE", count=4),),
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
        "a save's etag is judged against a lower version",
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
        (edit(ITEMS, "save_item", "IS NOT DISTINCT FROM", "IS DISTINCT FROM", count=3),),
    ),
)
EXISTENCE = (
    Mutant("M23 a name is unique across levels", "worlds", damage=(*PEEK, *ONE_NAME_FOR_ALL_LEVELS)),
    Mutant("M26 the driver's detail is forwarded", "fault", (setting(database, "in_our_words", _in_its_own_words),)),
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
                "WHEN below.level IS NOT NULL",
                "WHEN vault.peek(%(tenant)s, (SELECT fence.agent FROM fence), %(name)s) IS NOT NULL",
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
                "THEN below.level END",
                "THEN greatest(below.level, nullif(vault.peek(%(tenant)s, (SELECT fence.agent FROM fence), %(name)s),"
                " (SELECT fence.taint FROM fence))) END",
            ),
        ),
        damage=PEEK,
    ),
    Mutant(
        "M33 delete reveals what is above, no egress guard",
        "worlds",
        (
            edit(
                ITEMS,
                "delete_item",
                "THEN below.level END",
                "THEN greatest(below.level, nullif(vault.peek(%(tenant)s, (SELECT fence.agent FROM fence), %(name)s),"
                " (SELECT fence.taint FROM fence))) END",
            ),
            setting(labels, "may_leave", lambda *_: True),
        ),
        damage=PEEK,
    ),
)
PAGES_AND_TEXT = (
    Mutant("M41 page tokens are not sealed", "model", (setting(hmac, "compare_digest", lambda a, b: bool(a)),)),
    Mutant("M42 page tokens are anybody's", "model", (setting(paging.Pager, "_mac", _mac_of(credential=b"all")),)),
    Mutant("M42 page tokens are any filter's", "model", (setting(paging.Pager, "_mac", _mac_of(filters=())),)),
    Mutant(
        "M43 page tokens outlive a raise",
        "model",
        (setting(paging.Pager, "token", _fixed_taint), setting(paging.Pager, "last", _any_taint)),
    ),
    Mutant("keys are not normalised", "model", (setting(text, "key", lambda key: key),)),
    Mutant("tags keep repetitions", "model", (setting(text, "tags", list),)),
    Mutant("pages are one too long", "model", (setting(paging, "page_size", lambda asked: (asked or 50) + 1),)),
)
STATE = (
    Mutant(
        "M45 the conversation's mark is skipped",
        "model",
        (edit(HOSTS, "open_session", "greatest(marked.taint, excluded.taint)", "excluded.taint"),),
    ),
    Mutant(
        "M46 a reset keeps the old sessions",
        "model",
        (edit(HOSTS, "reset_session", "AND closed.close_time IS NULL", "AND FALSE"),),
    ),
    Mutant("M48 RaiseTaint lowers", "model", (edit(HOSTS, "raise_taint", "AND found.taint < %(taint)s", ""),)),
    Mutant(
        "M49 the ceiling is not checked first",
        "model",
        (setting(sessions.Sessions, "_check_ceiling", lambda *_, **__: None),),
    ),
    Mutant(
        "M49 the ceiling is not checked on open",
        "model",
        (
            setting(sessions.Sessions, "_check_ceiling", lambda *_, **__: None),
            edit(HOSTS, "open_session", "%(taint)s::smallint <= (", "0 < ("),
        ),
    ),
    Mutant(
        "M50 the ceiling is not checked on raise",
        "model",
        (
            setting(sessions.Sessions, "_check_ceiling", lambda *_, **__: None),
            edit(HOSTS, "raise_taint", "greatest(session.taint, %(taint)s::smallint) <= (", "0 < ("),
        ),
    ),
    Mutant(
        "a host reads sessions above its ceiling",
        "egress",
        (edit(HOSTS, "get_session", "AND conversation.taint <= %(ceiling)s", ""),),
    ),
    Mutant(
        "a host closes sessions above its ceiling",
        "model",
        (edit(HOSTS, "close_session", "AND session.taint <= %(ceiling)s", ""),),
    ),
    Mutant("M51 the cache is never refreshed", "model", (setting(Credentials, "fresh_session", _remember_forever),)),
    Mutant(
        "M51 refusals on a remembered session are not confirmed",
        "closed is closed",
        (setting(walls.FollowTaint, "_UNCONFIRMED", ()),),
        probe=probes.closed_is_closed,
    ),
    Mutant(
        "M51 a host key is remembered",
        "revoked is revoked",
        (setting(Credentials, "principal", _remember_hosts),),
        probe=probes.revoked_is_revoked,
    ),
    Mutant("M69 the window does not ask for the taint", "egress", damage=NO_TAINT),
    Mutant(
        "M69 the window does not ask for the taint, no egress guard",
        "worlds",
        (setting(labels, "may_leave", lambda *_: True),),
        damage=NO_TAINT,
    ),
    Mutant("M70 the window shows closed sessions", "model", damage=NO_CLOSE),
    Mutant("M70 the window shows expired sessions", "model", damage=NO_EXPIRY),
)
GRANTS = (
    *(
        Mutant(
            f"M52-57 {LEVELS[low]} may read {LEVELS[high]}",
            "walls",
            damage=(
                f"GRANT USAGE ON SCHEMA muniment_{LEVELS[high]} TO muniment_{LEVELS[low]}",
                f"GRANT SELECT ON muniment_{LEVELS[high]}.item TO muniment_{LEVELS[low]}",
            ),
        )
        for low in range(4)
        for high in range(low + 1, 4)
    ),
    Mutant(
        "M52 public may read restricted: nothing asks for it",
        "",
        damage=(
            "GRANT USAGE ON SCHEMA muniment_restricted TO muniment_public",
            "GRANT SELECT ON muniment_restricted.item TO muniment_public",
        ),
        covered_by="windows",
    ),
    Mutant(
        "M58 restricted may insert below",
        "walls",
        damage=("GRANT INSERT ON muniment_public.item TO muniment_restricted",),
    ),
    Mutant(
        "M59 restricted may update below",
        "walls",
        damage=("GRANT UPDATE (content) ON muniment_public.item TO muniment_restricted",),
    ),
    Mutant("M60 an owner's window over all levels", "walls", damage=EVERYTHING_VISIBLE),
    Mutant("M60 an owner's window over all levels, served", "egress", damage=EVERYTHING_VISIBLE),
    Mutant(
        "M60 an owner's window over all levels, no egress guard",
        "worlds",
        (setting(labels, "may_leave", lambda *_: True),),
        damage=EVERYTHING_VISIBLE,
    ),
    Mutant("no egress guard", "", (setting(labels, "may_leave", lambda *_: True),), covered_by="grants"),
    Mutant(
        "M61 a level may update its window on sessions",
        "walls",
        damage=("GRANT UPDATE ON muniment_internal.session TO muniment_internal",),
    ),
    Mutant(
        "M61 a level may update taints",
        "walls",
        damage=("GRANT UPDATE (taint) ON vault.conversation TO muniment_internal",),
    ),
    Mutant(
        "M61 a level lowers its own taint",
        "no level lowers a taint",
        damage=("GRANT UPDATE (taint) ON vault.conversation TO muniment_internal",),
        probe=probes.no_level_lowers_a_taint,
    ),
    Mutant(
        "M62 a level is a member of the next",
        "walls",
        damage=("GRANT muniment_confidential TO muniment_internal",),
    ),
    Mutant(
        "M62 a level reads all data",
        "walls",
        damage=("GRANT pg_read_all_data TO muniment_public",),
    ),
    Mutant(
        "M63 a level bypasses row security",
        "walls",
        damage=("ALTER ROLE muniment_public BYPASSRLS",),
    ),
    Mutant(
        "M63 a level is superuser",
        "walls",
        damage=("ALTER ROLE muniment_public SUPERUSER",),
    ),
    Mutant(
        "M64 a level owns its table", "walls", damage=("ALTER TABLE muniment_internal.item OWNER TO muniment_internal",)
    ),
    Mutant(
        "M65 a table does not pin its level",
        "walls",
        damage=("ALTER TABLE muniment_internal.item DROP CONSTRAINT item_is_internal",),
    ),
    Mutant(
        "M65 a table pins no level any more",
        "walls",
        damage=(
            "ALTER TABLE muniment_internal.item DROP CONSTRAINT item_is_internal",
            "ALTER TABLE muniment_internal.item ADD CONSTRAINT item_is_internal CHECK (level = 2) NOT VALID",
        ),
    ),
    Mutant("M66 a level may delete", "walls", damage=("GRANT DELETE ON muniment_internal.item TO muniment_internal",)),
    Mutant(
        "M66 a level may truncate", "walls", damage=("GRANT TRUNCATE ON muniment_internal.item TO muniment_internal",)
    ),
    Mutant(
        "M68 a level may update its audit",
        "walls",
        damage=("GRANT UPDATE ON muniment_internal.audit TO muniment_internal",),
    ),
    Mutant(
        "M68 a level may read its audit",
        "walls",
        damage=("GRANT SELECT ON muniment_internal.audit TO muniment_internal",),
    ),
    Mutant(
        "M71 a window without its barrier",
        "walls",
        damage=("ALTER VIEW muniment_internal.session RESET (security_barrier)",),
    ),
    Mutant("control may read items", "walls", damage=("GRANT SELECT ON muniment_public.item TO muniment_control",)),
    Mutant("everybody may read sessions", "walls", damage=("GRANT SELECT ON vault.session TO PUBLIC",)),
    Mutant(
        "a level may make temporary tables",
        "walls",
        damage=(
            """DO $$ BEGIN
                   EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO muniment_public', current_database());
               END $$""",
        ),
    ),
    Mutant("M32 a function with its owner's rights", "walls", damage=PEEK),
)
OTHER = (
    Mutant(
        "M73 reads are not audited",
        "every effect is audited",
        (setting(fence.Fence, "_audited", _read_unaudited),),
        probe=probes.every_effect_is_audited,
    ),
    Mutant(
        "M73 saves are not audited",
        "every effect is audited",
        (edit(ITEMS, "save_item", "WHERE put.item_id IS NULL OR put.change_id", "WHERE FALSE AND put.change_id"),),
        probe=probes.every_effect_is_audited,
    ),
    Mutant(
        "M73 deletes are not audited",
        "every effect is audited",
        (edit(ITEMS, "delete_item", "WHERE result.outcome <> 'NOT_FOUND'", "WHERE FALSE"),),
        probe=probes.every_effect_is_audited,
    ),
    Mutant("M74 requests are logged", "fault", (setting(walls.Validate, "__call__", _log_requests),)),
    Mutant("M77 one pool for two levels", "model", (setting(database.Database, "connection", _one_pool_for_two),)),
    Mutant("M86 the policy allows all", "fault", (setting(walls.Authorize, "_allowed", staticmethod(lambda _: True)),)),
    Mutant(
        "M87 a method without policy is served",
        "no policy, no start",
        (setting(policy, "_holes", lambda _: iter(())),),
        probe=probes.no_policy_no_start,
    ),
    Mutant(
        "M88 any agent's memories",
        "model",
        (
            edit(
                ITEMS,
                "get_item",
                "(visible.agent, visible.kind, visible.name) = (session.agent, %(kind)s, %(name)s)",
                "(visible.kind, visible.name) = (%(kind)s, %(name)s)",
            ),
        ),
    ),
    Mutant(
        "M88 any agent's memories in a list",
        "model",
        (
            edit(
                ITEMS,
                "list_items",
                "(visible.agent, visible.kind) = (session.agent, %(kind)s)",
                "visible.kind = %(kind)s",
            ),
        ),
    ),
    Mutant("M89 sessions of any tenant", "model", (edit(HOSTS, "get_agent", "agent.tenant = %(tenant)s AND ", ""),)),
)
_FIRST = {
    "M05 get takes the lowest": 2,
    "M09 search filters tags before the shadow": 4,
    "a delete ignores the etag": 2,
    "M26 the driver's detail is forwarded": 2,
    "M42 page tokens are any filter's": 3,
    "M43 page tokens outlive a raise": 4,
    "tags keep repetitions": 3,
    "M45 the conversation's mark is skipped": 6,
    "M48 RaiseTaint lowers": 2,
    "a host closes sessions above its ceiling": 3,
    "M88 any agent's memories in a list": 2,
    "M89 sessions of any tenant": 2,
    "M06 a deleted version still shadows": 3,
    "M12 scores count over all levels": 2,
    "M33 delete reveals what is above": 3,
    "M33 delete reveals what is above, no egress guard": 3,
    "M69 the window does not ask for the taint": 6,
    "M69 the window does not ask for the taint, no egress guard": 10,
    "M70 the window shows closed sessions": 2,
    "M70 the window shows expired sessions": 2,
}
"""The first program that kills, where the first of all does not: it saves time and promises nothing."""
MUTANTS = tuple(
    replace(mutant, seed=_FIRST.get(mutant.name, 1))
    for mutant in (*LATTICE, *ORDER, *WRITES, *EXISTENCE, *PAGES_AND_TEXT, *STATE, *GRANTS, *OTHER)
)
