"""Guards around callers, broken: page tokens, sessions and taint, the audit, the policy."""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from muniment_server.agents import undeleting
from muniment_server.domain import text
from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.errors import Unauthenticated
from muniment_server.domain.principals import SessionIdentity
from muniment_server.domain.tokens import TokenKind
from muniment_server.items import paging as item_paging
from muniment_server.monitor import egress, host_scope, interceptors, paging, policy, retry, scopes, session_scope
from muniment_server.monitor.authentication import Credentials
from muniment_server.postgres import epochs, pool
from tests.proof.noninterference import probes
from tests.proof.noninterference.mutants.damage import (
    ANY_CONVERSATION,
    DELETED_ABOVE,
    NO_CLOSE,
    NO_EXPIRY,
    NO_TAINT,
)
from tests.proof.noninterference.mutants.scheme import (
    HOSTS,
    ITEMS,
    Mutant,
    cut,
    edit,
    edit_scope,
    remembering,
    replacing,
    setting,
)

_current = Credentials.current


def _remember_forever(self: Any, token: Any, deadline: Any) -> Any:
    return self.remembered(token, seconds=math.inf) or _current(self, token, deadline)


_principal = Credentials.principal


def _remember_hosts(self: Any, token: Any, deadline: Any) -> Any:
    known = self.__dict__.setdefault("hosts", {})
    if token not in known:
        known[token] = _principal(self, token, deadline)
    return known[token]


def _mac_of(**changes: Any) -> Callable[..., bytes]:
    original = paging.Pager._mac
    return lambda self, body: original(replace(self, **changes), body)


def _fixed_taint(self: Any, *last: str) -> str:
    return str(_token(replace(self, taint=None), *last))


def _any_taint(self: Any, token: str) -> Any:
    return _last(replace(self, taint=None), token)


_token, _last = paging.Pager.token, paging.Pager.last


_connection = pool.Database.connection


def _one_pool_for_two(self: Any, role: str, deadline: Any) -> Any:
    return _connection(self, role.replace("muniment_internal", "muniment_confidential"), deadline)


def _latest_caller() -> Any:
    """Who is calling is kept for all calls of the process, between two interceptors."""
    latest: dict[str, Any] = {}

    def authenticate(self: Any, call: Any, proceed: Any) -> Any:
        if call.token is None:
            raise Unauthenticated
        latest["principal"] = self._credentials.principal(call.token, call.deadline)
        time.sleep(0.002)
        call.principal = latest["principal"]
        return proceed(call)

    return authenticate


_validate = interceptors.Validate.__call__


def _log_requests(self: Any, call: Any, proceed: Any) -> Any:
    interceptors._LOG.info("%s %r", call.method.name, call.request_bytes)
    return _validate(self, call, proceed)


_undelete = undeleting.undelete


def _undelete_at_public(context: Any, agent_id: str, kind: Any, name: str, _: Any) -> None:
    _undelete(context, agent_id, kind, name, Label.PUBLIC)


_BELOW = "AND agent.known_from <= %(ceiling)s"
_REACHED = "AND agent.ceiling <= %(ceiling)s"
_OF_CONVERSATION = "AND session.ceiling <= %(ceiling)s"
_WITH_CLOSED = HOSTS["find_sessions"].replace(
    "AND (session.close_time IS NULL OR session.close_time >= session.expire_time)", ""
)
assert HOSTS["find_sessions"] != _WITH_CLOSED
_denial = interceptors._denial
_READ_ONLY_IGNORED = setting(
    interceptors,
    "_denial",
    lambda method, caller: _denial(
        method, replace(caller, read_only=False) if isinstance(caller, SessionIdentity) else caller
    ),
)
_KEY = r"AND EXISTS \( SELECT FROM host_key WHERE .*?%\(trusted\)s \)"
_PAGES_AND_TEXT = (
    Mutant("M41 page tokens are not sealed", "fault", (setting(hmac, "compare_digest", lambda a, b: bool(a)),)),
    Mutant("M42 page tokens are anybody's", "model", (setting(paging.Pager, "_mac", _mac_of(credential=b"all")),)),
    Mutant("M42 page tokens are any filter's", "model", (setting(paging.Pager, "_mac", _mac_of(filters=())),)),
    Mutant(
        "M43 page tokens outlive a raise",
        "model",
        (setting(paging.Pager, "token", _fixed_taint), setting(paging.Pager, "last", _any_taint)),
    ),
    Mutant("keys are not normalized", "model", (setting(text, "key", lambda key, **_: key),)),
    Mutant("tags keep repetitions", "model", (setting(text, "tags", lambda tags, **_: list(tags)),)),
    Mutant("pages are one too long", "model", (setting(item_paging, "page_size", lambda asked: (asked or 50) + 1),)),
)
_STATE = (
    Mutant(
        "M45 the conversation's mark is skipped",
        "model",
        (edit(HOSTS, "open_session", "greatest(marked.taint, excluded.taint)", "excluded.taint"),),
    ),
    Mutant(
        "M46 a reset keeps the old sessions",
        "model",
        (
            edit(
                HOSTS, "reset_session", "(closed.close_time IS NULL OR closed.close_time = closed.expire_time)", "FALSE"
            ),
        ),
    ),
    Mutant(
        "M48 RaiseTaint lowers",
        "model",
        (
            edit(HOSTS, "raise_taint", "greatest(found.taint, %(taint)s::smallint), trusted", "%(taint)s, trusted"),
            edit(HOSTS, "raise_taint", "AND (found.taint < %(taint)s OR found.trusted AND NOT %(trusted)s)", ""),
        ),
    ),
    Mutant(
        "M49 the ceiling is not checked first",
        "model",
        (setting(host_scope.HostScope, "require_ceiling", lambda *_, **__: None),),
    ),
    Mutant(
        "M49 the ceiling is not checked on open",
        "model",
        (
            setting(host_scope.HostScope, "require_ceiling", lambda *_, **__: None),
            edit(HOSTS, "open_session", "host_key.ceiling >= coalesce(%(taint)s::smallint, 1)", "TRUE"),
        ),
    ),
    Mutant(
        "M50 the ceiling is not checked on raise",
        "model",
        (
            setting(host_scope.HostScope, "require_ceiling", lambda *_, **__: None),
            edit(HOSTS, "raise_taint", "host_key.ceiling >= %(taint)s::smallint", "TRUE"),
        ),
    ),
    Mutant(
        "a host reads sessions of agents above its ceiling",
        "egress",
        (edit(HOSTS, "get_session", _BELOW, ""), edit(HOSTS, "get_session", _OF_CONVERSATION, "")),
        about="hosts",
    ),
    Mutant(
        "a host closes sessions of agents above its ceiling",
        "model",
        (edit(HOSTS, "close_session", _BELOW, ""), edit(HOSTS, "close_session", _OF_CONVERSATION, "")),
        about="hosts",
    ),
    Mutant(
        "a host raises sessions of agents above its ceiling",
        "egress",
        (edit(HOSTS, "raise_taint", _BELOW, ""), edit(HOSTS, "raise_taint", _OF_CONVERSATION, "")),
        about="hosts",
    ),
    Mutant(
        "a host resets sessions of agents above its ceiling",
        "egress",
        tuple(
            edit(HOSTS, query, guard, "")
            for query in ("lock_session", "reset_session")
            for guard in (_BELOW, _OF_CONVERSATION)
        ),
        about="hosts",
    ),
    *(
        Mutant(
            f"M51 {query} goes by the ceiling that was looked up",
            "a key is read again",
            (cut(HOSTS, query, _KEY),),
            probe=probes.a_key_is_read_again,
        )
        for query in ("open_session", "raise_taint", "reset_session")
    ),
    Mutant(
        "M51 renew_session goes by the key that was looked up",
        "a key is read again",
        (cut(HOSTS, "renew_session", r"AND EXISTS \( SELECT FROM host_key WHERE .*?%\(host_key_id\)s \)"),),
        probe=probes.a_key_is_read_again,
    ),
    Mutant("a host lists sessions of agents above its ceiling", "model", (edit(HOSTS, "list_sessions", _BELOW, ""),)),
    Mutant("a host opens sessions of agents above its ceiling", "model", (edit(HOSTS, "open_session", _BELOW, ""),)),
    Mutant("a host reads agents above its ceiling", "egress", (edit(HOSTS, "get_agent", _BELOW, ""),)),
    Mutant("a host lists agents above its ceiling", "egress", (edit(HOSTS, "list_agents", _BELOW, ""),)),
    Mutant(
        "a host updates agents above its ceiling",
        "model",
        (edit(HOSTS, "update_agent", "AND updated.ceiling <= %(ceiling)s", ""),),
    ),
    Mutant(
        "the ceiling of the agent is not checked on open",
        "model",
        (
            edit(HOSTS, "open_session", "WHERE wanted.ceiling >= wanted.taint", ""),
            edit(
                HOSTS,
                "open_session",
                "wanted.ceiling, wanted.taint,",
                "greatest(wanted.ceiling, wanted.taint), wanted.taint,",
            ),
        ),
    ),
    Mutant(
        "the ceiling of the agent is not checked on raise",
        "fault",
        (edit(HOSTS, "raise_taint", "AND found.ceiling >= %(taint)s", ""),),
    ),
    Mutant(
        "M90 a host reads sessions of conversations above its key",
        "worlds",
        (edit(HOSTS, "get_session", _OF_CONVERSATION, ""), setting(egress, "may_leave", lambda *_: True)),
        about="hosts",
    ),
    Mutant(
        "M90 a host lists sessions of conversations above its key",
        "worlds",
        (edit(HOSTS, "list_sessions", _OF_CONVERSATION, ""), setting(egress, "may_leave", lambda *_: True)),
        about="hosts",
    ),
    *(
        Mutant(f"M90 {query} goes above its key", killer, (edit(HOSTS, query, _OF_CONVERSATION, ""),), about="hosts")
        for query, killer in (("raise_taint", "egress"), ("close_session", "model"))
    ),
    Mutant(
        "M90 renew_session goes above its key",
        "egress",
        tuple(
            edit(HOSTS, "renew_session", f"{_OF_CONVERSATION} {rest}", rest)
            for rest in (_BELOW, "AND (%(key_trusted)s")
        ),
        about="hosts",
    ),
    Mutant(
        "M91 the name of a conversation above a key is taken",
        "egress",
        (edit(HOSTS, "open_session", "AND conversation.ceiling <= %(ceiling)s", ""),),
        about="hosts",
    ),
    Mutant(
        "M92 a low key sees the storage of levels above it",
        "worlds",
        (
            setting(host_scope.HostScope, "ceiling", property(lambda _: Classification.RESTRICTED)),
            setting(egress, "may_leave", lambda *_: True),
        ),
        about="hosts",
    ),
    Mutant(
        "M93 a conversation begins at the ceiling of its agent",
        "egress",
        (edit(HOSTS, "open_session", "least(owner.ceiling, %(ceiling)s::smallint)", "owner.ceiling"),),
        about="hosts",
    ),
    Mutant(
        "M93 a key raises a conversation above the one that began it",
        "fault",
        (
            edit(
                HOSTS,
                "raise_taint",
                "AND found.ceiling >= %(taint)s",
                "AND (SELECT owner.ceiling FROM owner) >= %(taint)s",
            ),
        ),
        about="hosts",
    ),
    Mutant(
        "M94 a key that knows an agent changes it",
        "model",
        (edit(HOSTS, "update_agent", "AND updated.ceiling <= %(ceiling)s", "AND updated.known_from <= %(ceiling)s"),),
        about="hosts",
    ),
    Mutant("M51 the cache is never refreshed", "model", (setting(Credentials, "current", _remember_forever),)),
    Mutant(
        "M51 refusals on a remembered session are not confirmed",
        "closed is closed",
        (setting(retry.RetryOnTaintChange, "_UNCONFIRMED", ()),),
        probe=probes.closed_is_closed,
    ),
    Mutant(
        "M51 a host key is remembered",
        "revoked is revoked",
        (setting(Credentials, "principal", _remember_hosts),),
        probe=probes.revoked_is_revoked,
    ),
    Mutant("M69 the view does not ask for the taint", "model", damage=NO_TAINT),
    Mutant(
        "M69 the view does not ask for the taint, no egress filter",
        "model",
        (setting(egress, "may_leave", lambda *_: True),),
        damage=NO_TAINT,
    ),
    Mutant("M70 the view shows closed sessions", "model", damage=NO_CLOSE),
    Mutant(
        "M99 a reset leaves the sessions that have expired",
        "expired is not closed",
        (
            edit(
                HOSTS, "reset_session", "(closed.close_time IS NULL OR closed.close_time = closed.expire_time)", "FALSE"
            ),
        ),
        probe=probes.expired_is_not_closed,
    ),
    Mutant(
        "M99 a closed session has expired",
        "model",
        (replacing(scopes._LOOKUPS, TokenKind.SESSION, (_WITH_CLOSED, scopes._FoundSession)),),
    ),
    Mutant(
        "M96 a session is in any conversation of its name",
        "a session is in one conversation",
        damage=ANY_CONVERSATION,
        probe=probes.a_session_is_in_one_conversation,
    ),
    Mutant("M70 the view shows expired sessions", "model", damage=NO_EXPIRY),
)
OTHER = (
    Mutant(
        "M73 reads are not audited",
        "every effect is audited",
        (setting(session_scope.SessionScope, "record_read", lambda *_: None),),
        probe=probes.every_effect_is_audited,
    ),
    Mutant(
        "M73 saves are not audited",
        "every effect is audited",
        (edit(ITEMS, "save_item", "WHERE new.item_id IS NULL OR new.change_id", "WHERE FALSE AND new.change_id"),),
        probe=probes.every_effect_is_audited,
    ),
    Mutant(
        "M73 deletes are not audited",
        "every effect is audited",
        (edit(ITEMS, "delete_item", "WHERE result.outcome <> 'NOT_FOUND'", "WHERE FALSE"),),
        probe=probes.every_effect_is_audited,
    ),
    Mutant("M74 requests are logged", "fault", (setting(interceptors.Validate, "__call__", _log_requests),)),
    Mutant("M77 one pool for two levels", "model", (setting(pool.Database, "connection", _one_pool_for_two),)),
    Mutant(
        "idle connections are used whatever their epoch",
        "an overtaken server is not used",
        (setting(epochs.EpochGuard, "is_behind", lambda *_: False),),
        probe=probes.an_overtaken_server_is_not_used,
    ),
    Mutant(
        "new connections are admitted whatever their epoch",
        "an overtaken server is not used",
        (setting(epochs.EpochGuard, "check", lambda *_: None),),
        probe=probes.an_overtaken_server_is_not_used,
    ),
    Mutant(
        "the highest epoch is known to one process only",
        "an overtaken server is not used",
        (setting(epochs, "_replace", lambda *_: None),),
        probe=probes.an_overtaken_server_is_not_used,
    ),
    Mutant(
        "hosts erase above their ceilings",
        "",
        (edit(HOSTS, "begin_erasure", "%(kind)s, owner.ceiling, vault.clock()", "%(kind)s, 4, vault.clock()"),),
        covered_by="an agent above the ceiling is not found",
        about="erasing",
    ),
    Mutant(
        "hosts erase above their ceilings, of agents above them",
        "model",
        (
            edit(HOSTS, "begin_erasure", "%(kind)s, owner.ceiling, vault.clock()", "%(kind)s, 4, vault.clock()"),
            edit(HOSTS, "begin_erasure", _REACHED, ""),
        ),
        about="erasing",
    ),
    Mutant(
        "tags of earlier revisions do not count",
        "model",
        (edit(HOSTS, "find_erased", "ELSE revision.tags @> ARRAY[%(tag)s::text] END", "ELSE FALSE END"),),
        about="erasing",
    ),
    Mutant(
        "what is erased stays in the index",
        "nothing of what is erased is left",
        (edit(HOSTS, "unindex_erased", " AND unindexed.name = ANY(", " AND FALSE AND unindexed.name = ANY("),),
        probe=probes.nothing_of_what_is_erased_is_left,
    ),
    Mutant(
        "the embedding of the next turn keeps what is erased",
        "nothing of what is erased is left",
        (edit(HOSTS, "unindex_erased", " AND cleared.prior = ANY(", " AND FALSE AND cleared.prior = ANY("),),
        probe=probes.nothing_of_what_is_erased_is_left,
    ),
    Mutant(
        "the level of an undelete is not held to the ceiling of the key",
        "model",
        (setting(host_scope.HostScope, "require_ceiling", lambda *_, **__: None),),
        about="undeleting",
    ),
    Mutant(
        "the level of an undelete is not held to the ceiling of the agent",
        "fault",
        (edit(HOSTS, "open_own_session", "WHERE owner.ceiling >= %(level)s", ""),),
        about="undeleting",
    ),
    Mutant(
        "a host undeletes items of agents above its ceiling",
        "model",
        (edit(HOSTS, "open_own_session", _REACHED, ""),),
        about="undeleting",
    ),
    Mutant(
        "an item comes back at another level, by the code of a noun",
        "model",
        (setting(undeleting, "undelete", _undelete_at_public),),
        about="undeleting",
    ),
    Mutant("an item comes back at a lower level", "worlds", damage=DELETED_ABOVE, about="undeleting"),
    Mutant("a view shows what is deleted above", "grants", damage=DELETED_ABOVE),
    Mutant(
        "an item that has expired comes back",
        "model",
        (edit(ITEMS, "get_deleted_item", "(last.expire_time IS NULL OR last.expire_time > session.time)", "TRUE"),),
        about="undeleting",
    ),
    Mutant(
        "who is calling is kept for all calls of the process",
        "beside",
        (remembering(interceptors.Authenticate, "__call__", _latest_caller),),
    ),
    Mutant(
        "M86 the policy allows all",
        "fault",
        (setting(policy.Method, "allows", lambda *_: True),),
    ),
    Mutant(
        "a read-only session writes, past the policy",
        "model",
        (_READ_ONLY_IGNORED,),
        about="hosts",
    ),
    Mutant(
        "a read-only session writes, past the predicate",
        "",
        (edit_scope(" AND NOT session.read_only", ""),),
        covered_by="the policy of the method",
        about="hosts",
    ),
    Mutant(
        "a read-only session writes",
        "model",
        (_READ_ONLY_IGNORED, edit_scope(" AND NOT session.read_only", "")),
        about="hosts",
    ),
    Mutant(
        "a reset makes a read-only session one that writes",
        "model",
        (edit(HOSTS, "reset_session", "found.read_only, %(token_hash)s", "FALSE, %(token_hash)s"),),
        about="hosts",
    ),
    Mutant(
        "M87 a method without policy is served",
        "no policy, no start",
        (setting(policy, "_gaps", lambda _: iter(())), setting(policy, "Flow", lambda number: number)),
        probe=probes.no_policy_no_start,
    ),
    Mutant(
        "M88 any agent's memories",
        "model",
        (
            edit(
                ITEMS,
                "get_item",
                " AND visible.agent = (SELECT session.agent FROM session)",
                "",
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
                " AND visible.agent = (SELECT session.agent FROM session)",
                "",
            ),
        ),
    ),
    Mutant("M89 sessions of any tenant", "model", (edit(HOSTS, "get_agent", "agent.tenant = %(tenant)s AND ", ""),)),
)
PAGES_AND_TEXT = tuple(replace(mutant, about="pages") for mutant in _PAGES_AND_TEXT)
STATE = tuple(replace(mutant, about="hosts") for mutant in _STATE)
