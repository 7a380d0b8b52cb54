"""Guards of integrity, broken: the order of flow, the join, the reset, where an integrity comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muniment_server.domain.classification import Integrity, Label
from muniment_server.domain.principals import SessionIdentity
from muniment_server.monitor import host_scope, interceptors
from tests.proof.noninterference import probes
from tests.proof.noninterference.mutants.scheme import HOSTS, Mutant, Patch, edit, setting

_NUMERIC_ORDER = (
    # The number of PUBLIC is below that of INTERNAL_TRUSTED, and yet it must not flow there.
    "GRANT USAGE ON SCHEMA muniment_public TO muniment_internal_trusted",
    "GRANT SELECT ON muniment_public.item TO muniment_internal_trusted",
    """DO $$ BEGIN EXECUTE 'CREATE OR REPLACE VIEW muniment_internal_trusted.visible WITH (security_invoker = true) AS '
              || rtrim(pg_get_viewdef('muniment_internal_trusted.visible'::regclass), ';')
              || ' UNION ALL SELECT *, 2::smallint FROM muniment_public.item WHERE delete_time IS NULL'; END $$""",
)
_authenticate = interceptors.Authenticate.__call__


def _integrity_from_metadata(self: Any, call: Any, proceed: Any) -> Any:
    def trusted(call: Any) -> Any:
        for name, value in call.grpc_context.invocation_metadata():
            if name == "x-integrity" and isinstance(call.principal, SessionIdentity):
                label = Label.of(call.principal.taint.level, Integrity(int(value)))
                call.principal = replace(call.principal, taint=label)
        return proceed(call)

    return _authenticate(self, call, trusted)


_NO_INTEGRITY = tuple(
    f"""DO $$
        DECLARE found text := pg_get_viewdef('muniment_{level}_trusted.session'::regclass);
        BEGIN
            ASSERT found LIKE '%(conversation.trusted = true)%', found;
            EXECUTE 'CREATE OR REPLACE VIEW muniment_{level}_trusted.session WITH (security_barrier = true) AS '
                 || replace(found, '(conversation.trusted = true)', 'true');
        END $$"""
    for level in ("public", "internal", "confidential", "restricted")
)
_UNCHECKED = setting(host_scope.HostScope, "require_integrity", lambda *_, **__: None)


def _of_an_untrusted_key(name: str, *patches: Patch) -> Mutant:
    return Mutant(
        f"an untrusted key {name}",
        "what is trusted is out of reach",
        patches,
        probe=probes.an_untrusted_key_reaches_nothing_trusted,
    )


_UNTRUSTED_KEYS = (
    *(
        _of_an_untrusted_key(name, _UNCHECKED, edit(HOSTS, query, " AND host_key.trusted >= %(trusted)s", ""))
        for name, query in (
            ("opens what is trusted", "open_session"),
            ("vouches for what it reveals", "raise_taint"),
            ("resets to what is trusted", "reset_session"),
        )
    ),
    _of_an_untrusted_key(
        "taints by opening", edit(HOSTS, "open_session", " WHERE marked.trusted <= %(key_trusted)s", "")
    ),
    *(
        _of_an_untrusted_key(f"{name} {whose}", *(edit(HOSTS, query, guard, "") for query in queries))
        for name, queries, of in (
            ("raises", ("raise_taint",), "session"),
            ("closes", ("close_session",), "session"),
            ("renews", ("renew_session",), "session"),
            ("resets", ("lock_session", "reset_session"), "session"),
            ("sees", ("get_session",), "conversation"),
            ("lists", ("list_sessions",), "conversation"),
        )
        for whose, guard in (
            ("what is trusted", f"NOT {of}.trusted AND "),
            ("what others have begun", f" AND left({of}.conversation_id, 1) = '~'"),
        )
    ),
)

INTEGRITY = (
    *_UNTRUSTED_KEYS,
    Mutant("M100 labels flow by their numbers", "grants", damage=_NUMERIC_ORDER),
    Mutant("M100 labels flow by their numbers, served", "worlds", damage=_NUMERIC_ORDER, trusted=True),
    Mutant(
        "M101 a raise is the higher number",
        "model",
        (
            edit(
                HOSTS,
                "raise_taint",
                "found.trusted AND %(trusted)s FROM",
                "found.trusted AND (%(trusted)s OR found.taint > %(taint)s) FROM",
            ),
        ),
        about="hosts",
    ),
    Mutant(
        "M101 a session opened untrusted leaves its conversation trusted",
        "model",
        (
            edit(
                HOSTS,
                "open_session",
                "trusted = marked.trusted AND (excluded.trusted OR coalesce(%(taint)s::smallint < marked.taint,"
                " FALSE))",
                "trusted = marked.trusted",
            ),
        ),
        about="hosts",
    ),
    Mutant(
        "M102 a reset keeps what was trusted",
        "model",
        (edit(HOSTS, "reset_session", ", trusted = %(trusted)s FROM found", " FROM found"),),
        about="hosts",
    ),
    Mutant(
        "M103 integrity from the metadata",
        "",
        (setting(interceptors.Authenticate, "__call__", _integrity_from_metadata),),
        covered_by="session predicate",
    ),
    Mutant(
        "M103 integrity from the metadata, view without integrity",
        "model",
        (setting(interceptors.Authenticate, "__call__", _integrity_from_metadata),),
        damage=_NO_INTEGRITY,
    ),
)
