"""The relations that the monitor puts in front of the queries of sessions, broken: see scope.sql."""

from __future__ import annotations

from tests.proof.noninterference import probes
from tests.proof.noninterference.mutants.scheme import Mutant, Patch, edit_scope

_ANY_SESSION = "(SELECT min(other.session_id::text)::uuid FROM session AS other WHERE other.tenant = %(tenant)s)"


def _any_agent(relation: str, equals: str = " = ") -> Patch:
    return edit_scope(f" AND {relation}.agent{equals}(SELECT session.agent FROM session)", "")


def _any_tenant(relation: str, column: str) -> Patch:
    return edit_scope(f"WHERE {relation}.tenant = %(tenant)s AND {relation}.{column}", f"WHERE {relation}.{column}")


def _counted(name: str, patch: Patch) -> Mutant:
    return Mutant(
        name,
        "scores depend on the own agent only",
        (patch,),
        probe=probes.scores_depend_on_the_own_agent_only,
    )


SCOPE = (
    Mutant("M16 every session of the tenant", "fault", (edit_scope(" AND session.session_id = %(session_id)s", ""),)),
    Mutant(
        "M16 some session of the tenant",
        "model",
        (edit_scope("session.session_id = %(session_id)s", f"session.session_id = {_ANY_SESSION}"),),
    ),
    Mutant(
        "M89 the session of any tenant",
        "",
        (_any_tenant("session", "session_id"),),
        covered_by="no two sessions have one id",
    ),
    Mutant(
        "M18 no write locks the session",
        "a raise waits for the writer",
        (edit_scope("session.read_only FOR NO KEY UPDATE", "session.read_only"),),
        probe=probes.a_raise_waits_for_the_writer,
    ),
    Mutant(
        "M18 no delete locks the session",
        "a raise waits for the writer",
        (edit_scope("session.read_only FOR NO KEY UPDATE", "session.read_only"),),
        probe=probes.a_raise_waits_for_the_deleter,
    ),
    Mutant("the settings of any agent", "fault", (edit_scope(" AND agent.session_id = %(session_id)s", ""),)),
    Mutant("M88 the items of any agent", "model", (_any_agent("visible"),)),
    Mutant(
        "M89 the items of any tenant",
        "",
        (_any_tenant("visible", "agent"),),
        covered_by="no two agents have one number",
    ),
    Mutant(
        "M03 the shared blocks of any session",
        "model",
        (edit_scope(" AND shared_visible.session_id = %(session_id)s", ""),),
        about="blocks",
    ),
    Mutant("M88 the items of any agent, compared without others", "alone", (_any_agent("visible"),)),
    Mutant("M88 the terms of any agent are counted, compared without others", "alone", (_any_agent("visible_stat"),)),
    Mutant("M88 the chunks of any agent are sampled, compared without others", "alone", (_any_agent("visible_chunk"),)),
    _counted("the chunks of any agent are sampled", _any_agent("visible_chunk")),
    _counted("the chunks of any agent are counted", _any_agent("visible_stat")),
    Mutant(
        "the chunks of any agent are searched by term",
        "",
        (_any_agent("visible_chunk", " IS NOT DISTINCT FROM "),),
        covered_by="the terms contain the agent",
    ),
    Mutant(
        "the embeddings of any agent are looked at",
        "",
        (_any_agent("visible_meaning"),),
        covered_by="what is compared is a chunk of the agent",
    ),
)
