"""What a database must show of what callers were promised."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg

from muniment_server.domain.items import ItemKind
from tests.proof.faults.load import Load, Save
from tests.proof.races import ledgers
from tests.support import invariants

_TAINTS = """
SELECT session.session_id::text, conversation.taint
  FROM vault.session JOIN vault.conversation USING (tenant, agent, conversation_id)
"""
_UNAUDITED = """
SELECT 'a session that was opened without audit' AS what, session_id
  FROM vault.session
 WHERE NOT EXISTS (
           SELECT
             FROM muniment_control.audit
            WHERE (audit.method, audit.outcome) = ('OpenSession', 'OK')
              AND (audit.tenant, audit.session_id) = (session.tenant, session.session_id)
       )
 UNION ALL
SELECT 'an audited session that is not there', audit.session_id
  FROM muniment_control.audit
 WHERE (audit.method, audit.outcome) = ('OpenSession', 'OK')
   AND NOT EXISTS (
           SELECT
             FROM vault.session
            WHERE (session.tenant, session.session_id) = (audit.tenant, audit.session_id)
       )
 UNION ALL
SELECT 'a taint that is not what was audited last', session_id
  FROM vault.session JOIN vault.conversation USING (tenant, agent, conversation_id)
 WHERE conversation.taint <> (
           SELECT max(audit.level)
             FROM muniment_control.audit
            WHERE (audit.tenant, audit.session_id) = (session.tenant, session.session_id)
       )
"""

_NOTES = """
    SELECT agent.agent_id, agent.memory_char_limit, agent.user_char_limit, note.level, note.tier, note.name,
           note.content
      FROM (SELECT * FROM muniment_public.item UNION ALL SELECT * FROM muniment_confidential.item) AS note
           JOIN vault.agent USING (tenant, agent)
     WHERE note.kind = 2 AND note.delete_time IS NULL
"""
_LIVE_NOTES = f"SELECT note.name FROM ({_NOTES}) AS note"
_OVERSPENT = f"""
SELECT 'a tier over its budget' AS what, note.agent_id, note.level, note.tier,
       sum(length(note.content)) + 3 * (count(*) - 1) AS used
  FROM ({_NOTES}) AS note
 GROUP BY note.agent_id, note.level, note.tier
HAVING sum(length(note.content)) + 3 * (count(*) - 1)
       > max(CASE WHEN note.tier = 1 THEN note.memory_char_limit ELSE note.user_char_limit END)
"""


def broken(owner: psycopg.Connection[Any], load: Load) -> list[str]:
    """Every promise that the database does not keep, and all in it that contradicts itself."""
    return [
        *invariants.broken(owner),
        *(" ".join(map(str, row)) for row in owner.execute(_UNAUDITED.encode()).fetchall()),
        *_of_writers(owner, load),
        *_of_notes(owner, load),
        *_of_raises(owner, load),
    ]


def taints(owner: psycopg.Connection[Any]) -> dict[str, int]:
    """The taint of every session."""
    return dict(tuple(row) for row in owner.execute(_TAINTS.encode()).fetchall())


def _of_writers(owner: psycopg.Connection[Any], load: Load) -> list[str]:
    """Acknowledged: once. Not acknowledged: at most once. Never sent: never. What is on its way now is left out."""
    acknowledged, unknown = Counter(load.acknowledged), set(load.unknown)
    found = Counter(
        Save(version.level, kind, version.name, _sent(kind, version.content))
        for kind in ItemKind
        for version in ledgers.versions(owner, kind=kind)
        if version.method is not None  # the first blocks are the host's
    )
    return [
        *(f"acknowledged and lost: {save}" for save in acknowledged if found[save] == 0),
        *(f"kept {times} times: {save}" for save, times in found.items() if times > 1),
        *(f"never sent: {save}" for save in found if save not in acknowledged and save not in unknown),
    ]


def _sent(kind: ItemKind, content: str) -> str:
    """What was sent: of a block's text the last line."""
    return content.rpartition("\n")[2] if kind is ItemKind.BLOCK else content


def _of_notes(owner: psycopg.Connection[Any], load: Load) -> list[str]:
    """Deleted: not there any more. And no tier is over its budget, at the level that writes it."""
    live = {str(name) for (name,) in owner.execute(_LIVE_NOTES.encode()).fetchall()}
    return [
        *(f"a note that was deleted is there: {note_id}" for note_id in load.deleted if note_id in live),
        *(" ".join(map(str, row)) for row in owner.execute(_OVERSPENT.encode()).fetchall()),
    ]


def _of_raises(owner: psycopg.Connection[Any], load: Load) -> list[str]:
    raiser, found = load.raiser, taints(owner)
    return [
        f"told {raiser.acknowledged[session]}, asked {raiser.attempted[session]}, at {found.get(session)}: {session}"
        for session in raiser.acknowledged
        if not raiser.acknowledged[session] <= found.get(session, 0) <= raiser.attempted[session]
    ]
